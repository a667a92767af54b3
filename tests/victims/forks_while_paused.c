/* Forks while the recorder is paused; the child resumes it and calls local procedures. The parent ends without
 * MPI_Finalize, so that its file stays as both left it. */
#include "victim.h"
#include <sys/wait.h>

int main(int argc, char **argv)
{
    int status = -1;

    MPI_Init(&argc, &argv);
    call_comm_rank(2);
    MPI_Pcontrol(0);
    pid_t child = fork();
    if (child == 0) {
        MPI_Pcontrol(1);
        call_comm_rank(100);
        _exit(0);
    }
    waitpid(child, &status, 0);
    MPI_Pcontrol(1);
    call_comm_rank(1);
    _exit(status == 0 ? 3 : 4);
}
