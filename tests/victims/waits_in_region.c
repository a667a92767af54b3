/* All ranks wait for rank 1 in region "solve", and then, outside of it, longer for rank 0. */
#include "gammachi.h"
#include "victim.h"

int main(int argc, char **argv)
{
    int rank;
    double mine = 1, sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_begin("solve");
    if (rank == 1)
        usleep(400000);
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    gammachi_region_end("solve");
    if (rank == 0)
        usleep(600000);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
