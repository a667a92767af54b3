/* MPI_Sendrecv and MPI_Sendrecv_replace: two messages in one call. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), other = 1 - rank, out[8] = {0}, in[8];
    MPI_Status status;
    MPI_Sendrecv(out, 1 + rank, MPI_INT, other, 20 + rank, in, 8, MPI_INT, other, 20 + other,
                 MPI_COMM_WORLD, &status);
    MUST(status.MPI_SOURCE == other && status.MPI_TAG == 20 + other);
    MPI_Sendrecv(out, 2, MPI_DOUBLE, other, 5, in, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 3, MPI_INT, other, 6, other, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_replace(out, 4, MPI_INT, rank, 7, rank, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    MUST(status.MPI_TAG == 7);
    /* A line of ranks: 0 has no left neighbour, 1 no right one. */
    MPI_Sendrecv(out, 2, MPI_INT, rank == 0 ? 1 : MPI_PROC_NULL, 8, in, 8, MPI_INT,
                 rank == 0 ? MPI_PROC_NULL : 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
