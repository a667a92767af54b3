/* sleeps_in_join: the main threads sleep in pthread_join while rank 0's second thread is in MPI_Recv for the 0.4 s
 * that rank 1's second thread sleeps. */
#include "victim.h"
#include <pthread.h>
#include <time.h>

static void *work(void *argument)
{
    int rank = *(int *)argument, word = 7;
    const struct timespec while_ = {0, 400000000};

    if (rank == 0) {
        MPI_Recv(&word, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        nanosleep(&while_, NULL);
        MPI_Send(&word, 1, MPI_INT, 0, 1, MPI_COMM_WORLD);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided, rank;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 9;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (pthread_create(&thread, NULL, work, &rank) != 0)
        return 7;
    pthread_join(thread, NULL);
    MPI_Finalize();
    return 0;
}
