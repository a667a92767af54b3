/* forks_and_execs [child]: between calls a forked child execs this program, which calls no MPI; another child is
 * started by system(), a third by vfork. They inherit the environment with the preloaded library. */
#include "victim.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
    char path[4096], command[4200];
    ssize_t length;
    int status = 0;
    pid_t child;

    if (argc > 1) {
        printf("child\n");
        fflush(stdout);
        return 12;
    }
    length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = 0;
    MPI_Init(&argc, &argv);
    call_comm_rank(10);
    child = fork();
    if (child == 0) {
        execl(path, path, "child", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("fork and exec %d\n", WEXITSTATUS(status));
    fflush(stdout);
    call_comm_rank(10);
    snprintf(command, sizeof command, "'%s' child", path);
    status = system(command);
    printf("system %d\n", WEXITSTATUS(status));
    fflush(stdout);
    child = vfork();
    if (child == 0) {
        execl(path, path, "child", (char *)NULL);
        _exit(1);
    }
    waitpid(child, &status, 0);
    printf("vfork and exec %d\n", WEXITSTATUS(status));
    call_comm_rank(10);
    MPI_Finalize();
    return 0;
}
