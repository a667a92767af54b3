/* 2 ranks with 6 threads each under MPI_THREAD_MULTIPLE: thread i of a rank exchanges 500 messages with
 * thread i of the other and computes in between; half of the threads end long before the others. */
#include "victim.h"
#include <pthread.h>

static int rank;

static void *work(void *argument)
{
    long number = (long)argument;
    int other = 1 - rank, in = 0, out = (int)number;
    int rounds = number % 2 ? 500 : 50;
    volatile double x = 1;

    for (int i = 0; i < rounds; i++) {
        MPI_Sendrecv(&out, 1, MPI_INT, other, (int)number, &in, 1, MPI_INT, other, (int)number,
                     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        for (int k = 0; k < 1000; k++)
            x = x * 1.0000001;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t threads[6];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 9;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (long i = 0; i < 6; i++)
        if (pthread_create(&threads[i], NULL, work, (void *)i) != 0)
            return 7;
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
