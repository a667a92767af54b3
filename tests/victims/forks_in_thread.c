/* A second thread forks while it has a window; the child makes many calls. */
#include "victim.h"
#include <pthread.h>
#include <sys/wait.h>

static void *work(void *argument)
{
    int status = -1;
    (void)argument;
    call_comm_rank(10);
    pid_t pid = fork();
    if (pid == 0) {
        call_comm_rank(100000);
        _exit(11);
    }
    waitpid(pid, &status, 0);
    printf("child ends with %#x\n", status);
    call_comm_rank(10);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_create(&thread, NULL, work, NULL);
    pthread_join(thread, NULL);
    call_comm_rank(10);
    MPI_Finalize();
    return 0;
}
