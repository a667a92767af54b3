/* Communicators on the same ranks, made from different parents, in another order on every second rank, as
 * MPI allows; then messages and collective operations on each. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, size, value[64] = {0}, sum[64];
    MPI_Comm first, second, of_first, of_second;
    MPI_Request requests[2];
    MPI_Status statuses[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    if (rank % 2 == 0) {
        MPI_Comm_idup(first, &of_first, requests);
        MPI_Comm_idup(second, &of_second, requests + 1);
    } else {
        MPI_Comm_idup(second, &of_second, requests + 1);
        MPI_Comm_idup(first, &of_first, requests);
    }
    MPI_Waitall(2, requests, statuses);
    for (int i = 0; i < 10; i++) {
        if (rank % 2 == 0 && rank + 1 < size) {
            MPI_Send(value, 10, MPI_INT, rank + 1, 1, of_first);
            MPI_Send(value, 20, MPI_INT, rank + 1, 1, of_second);
        } else if (rank % 2 == 1) {
            MPI_Recv(value, 20, MPI_INT, rank - 1, 1, of_second, MPI_STATUS_IGNORE);
            MPI_Recv(value, 10, MPI_INT, rank - 1, 1, of_first, MPI_STATUS_IGNORE);
        }
        MPI_Allreduce(value, sum, 1, MPI_INT, MPI_SUM, of_first);
        MPI_Bcast(value, 1, MPI_INT, 0, of_second);
    }
    MPI_Comm_free(&of_second);
    MPI_Comm_free(&of_first);
    MPI_Comm_free(&second);
    MPI_Comm_free(&first);
    MPI_Finalize();
    return 0;
}
