/* Every millisecond, ranks meet in a barrier and send a word around a ring; the argument is the duration in
 * tenths of a second. Then each rank prints the number of words that it received. */
#include "victim.h"
#include <time.h>

int main(int argc, char **argv)
{
    int rank, size, received = 0, tenths = argc > 1 ? atoi(argv[1]) : 10;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int turn = 0; turn < 100 * tenths; turn++) {
        int word = turn, other = -1;
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Sendrecv(&word, 1, MPI_INT, (rank + 1) % size, 3, &other, 1, MPI_INT,
                     (rank + size - 1) % size, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        received += other == turn;
        usleep(1000);
    }
    MPI_Finalize();
    if (rank == 0)
        printf("%d words received\n", received);
    return 0;
}
