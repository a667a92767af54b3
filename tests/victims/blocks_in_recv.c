/* Rank 0 waits forever in MPI_Recv, rank 1 outside MPI; the test ends them. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, in = 0;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(100);
    if (rank == 0)
        MPI_Recv(&in, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else
        for (;;)
            pause();
    MPI_Finalize();
    return 0;
}
