/* Forks after MPI_Init: one child executes /bin/true, one calls local MPI procedures many times and
 * ends with _exit, one with exit, one with SIGKILL; the parent continues. */
#include "victim.h"
#include <sys/wait.h>

static int child(int kind)
{
    pid_t pid = fork();
    int status = -1;
    if (pid == 0) {
        switch (kind) {
        case 0:
            execl("/bin/true", "true", (char *)NULL);
            _exit(9);
        case 1:
            call_comm_rank(100000);
            _exit(11);
        case 2: {
            /* The child's own file, with the lowest free descriptor. */
            FILE *file = tmpfile();
            fprintf(file, "the child's own\n");
            rewind(file);
            char line[32] = "";
            fgets(line, sizeof line, file);
            _exit(strcmp(line, "the child's own\n") == 0 ? 12 : 9);
        }
        default:
            call_comm_rank(10);
            kill(getpid(), SIGKILL);
        }
    }
    waitpid(pid, &status, 0);
    return status;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    for (int kind = 0; kind < 4; kind++) {
        call_comm_rank(10);
        printf("child %d ends with %#x\n", kind, child(kind));
    }
    printf("system() gives %#x\n", system("exit 3"));
    call_comm_rank(10);
    MPI_Finalize();
    return 0;
}
