/* 8 threads with 64 KB of stack that make 40,000 cheap calls each: more than one window. */
#include "victim.h"
#include <pthread.h>

static void *work(void *argument)
{
    (void)argument;
    call_comm_rank(40000);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[8];
    pthread_attr_t attributes;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_attr_init(&attributes);
    if (provided != MPI_THREAD_MULTIPLE || pthread_attr_setstacksize(&attributes, 65536) != 0)
        return 9;
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], &attributes, work, NULL) != 0)
            return 7;
    for (int i = 0; i < 8; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
