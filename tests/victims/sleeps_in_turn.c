/* Sleeps and meets in turn until a file exists.
 *   sleeps_in_turn FILE   rank 1 sleeps for 20 ms, the others for 10 ms */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (goes_on) {
        usleep(rank == 1 ? 20000 : 10000);
        MPI_Barrier(MPI_COMM_WORLD);
        goes_on = access(argv[1], F_OK) != 0;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
