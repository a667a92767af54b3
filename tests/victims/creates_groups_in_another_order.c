/* A duplicate and a communicator of the same group, made from one parent, in another order on every second
 * rank, as MPI allows; then messages and collective operations on each. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, size, value[64] = {0}, sum[64];
    MPI_Comm duplicate, of_group;
    MPI_Group group;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_group(MPI_COMM_WORLD, &group);
    if (rank % 2 == 0) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &of_group);
        MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request);
    } else {
        MPI_Comm_idup(MPI_COMM_WORLD, &duplicate, &request);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 0, &of_group);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int i = 0; i < 10; i++) {
        if (rank % 2 == 0 && rank + 1 < size) {
            MPI_Send(value, 10, MPI_INT, rank + 1, 1, of_group);
            MPI_Send(value, 20, MPI_INT, rank + 1, 1, duplicate);
        } else if (rank % 2 == 1) {
            MPI_Recv(value, 10, MPI_INT, rank - 1, 1, of_group, MPI_STATUS_IGNORE);
            MPI_Recv(value, 20, MPI_INT, rank - 1, 1, duplicate, MPI_STATUS_IGNORE);
        }
        MPI_Allreduce(value, sum, 1, MPI_INT, MPI_SUM, of_group);
        MPI_Bcast(value, 1, MPI_INT, 0, duplicate);
    }
    MPI_Comm_free(&of_group);
    MPI_Comm_free(&duplicate);
    MPI_Group_free(&group);
    MPI_Finalize();
    return 0;
}
