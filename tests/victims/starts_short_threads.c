/* starts_short_threads N: starts N threads, one after the other, each of which makes 10 calls. */
#include "victim.h"
#include <pthread.h>

static void *work(void *nothing)
{
    call_comm_rank(10);
    return nothing;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (int i = 0; i < atoi(argv[1]); i++)
        if (pthread_create(&thread, NULL, work, NULL) || pthread_join(thread, NULL))
            return 8;
    MPI_Finalize();
    return 0;
}
