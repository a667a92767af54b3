/* A program that calls PMPI_ functions itself. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum;

    PMPI_Init(&argc, &argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    PMPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    PMPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("%d of %d\n", sum, size);
    PMPI_Finalize();
    return 0;
}
