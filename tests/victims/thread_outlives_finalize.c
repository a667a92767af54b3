/* A thread that calls MPI and still makes allowed calls after MPI_Finalize. */
#include "victim.h"
#include <pthread.h>

static pthread_barrier_t barrier;

static void *work(void *argument)
{
    int flag = 0, all = 0;
    (void)argument;
    call_comm_rank(100);
    pthread_barrier_wait(&barrier);
    pthread_barrier_wait(&barrier); /* MPI is finalized now */
    for (int i = 0; i < 100000; i++) {
        MPI_Finalized(&flag);
        all += flag;
    }
    printf("finalized %d times\n", all);
    return NULL;
}

static void at_exit(void)
{
    int flag = 0;
    for (int i = 0; i < 100000; i++)
        MPI_Finalized(&flag);
    printf("at exit %d\n", flag);
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;

    atexit(at_exit);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_barrier_init(&barrier, NULL, 2);
    pthread_create(&thread, NULL, work, NULL);
    pthread_barrier_wait(&barrier);
    MPI_Finalize();
    pthread_barrier_wait(&barrier);
    pthread_join(thread, NULL);
    return 0;
}
