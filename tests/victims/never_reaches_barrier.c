/* 3 ranks: after 5 barriers rank 2 computes for ever, rank 1 waits in the sixth, rank 0 for a message
 * from rank 1. It never ends by itself. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, in = 0;
    volatile double x = 1;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(10);
    for (int i = 0; i < 5; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Recv(&in, 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (rank == 2)
        for (;;)
            x = x * 1.0000001;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
