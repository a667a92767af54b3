/* Shared by victims of which one rank dies: 2 ranks (or, with an argument, one that dies) make 1000 calls and a barrier; then
 * rank 1 makes 500 more and dies. */
#include "victim.h"

static void die(void);

int main(int argc, char **argv)
{
    int rank, in = 0;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 || argc > 1) {
        call_comm_rank(500);
        die();
    }
    MPI_Recv(&in, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
