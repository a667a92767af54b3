/* Rank 1 enters MPI_Finalize 0.7 s after rank 0 (there is no handshake with a rank that is inside
 * MPI_Finalize). */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(1);
    if (rank == 1)
        usleep(700000);
    MPI_Finalize();
    if (rank == 0)
        puts("finalized");
    return 0;
}
