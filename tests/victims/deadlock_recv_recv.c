/* The classic deadlock: each of 2 ranks first receives from the other, with tag 7. Further ranks
 * wait in a barrier. It never ends by itself. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, in = 0;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(10);
    if (rank < 2) {
        MPI_Recv(&in, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&in, 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
