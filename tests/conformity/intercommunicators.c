/* Intercommunicators of rank 0 and ranks 1 to 3: created, used, merged. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), in[64] = {0}, out[64], left = rank == 0, group_size = left ? 1 : 3;
    int counts[3] = {left ? 6 : 2, 2, 2};
    /* Roots: rank 0 alone in its group; rank 2 of the world, which is rank 1 of the other group. */
    int from_left = left ? MPI_ROOT : 0;
    int from_right = left ? 1 : rank == 2 ? MPI_ROOT : MPI_PROC_NULL;
    MPI_Comm local, inter, merged, twin;
    MPI_Comm_split(MPI_COMM_WORLD, left, rank, &local);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, left ? 1 : 0, 12, &inter);
    if (left)
        MPI_Send(in, 2, MPI_INT, 2, 5, inter);
    else if (rank == 3)
        MPI_Recv(in, 2, MPI_INT, 0, 5, inter, MPI_STATUS_IGNORE);
    MPI_Barrier(inter);
    MPI_Bcast(in, 10, MPI_INT, from_left, inter);
    MPI_Bcast(in, 10, MPI_INT, from_right, inter);
    MPI_Gather(in, 2, MPI_INT, out, 2, MPI_INT, from_left, inter);
    MPI_Gather(in, 2, MPI_INT, out, 2, MPI_INT, from_right, inter);
    MPI_Scatter(in, 3, MPI_INT, out, 3, MPI_INT, from_left, inter);
    MPI_Scatter(in, 3, MPI_INT, out, 3, MPI_INT, from_right, inter);
    MPI_Reduce(in, out, 4, MPI_INT, MPI_SUM, from_left, inter);
    MPI_Allgather(in, 1, MPI_INT, out, 1, MPI_INT, inter);
    MPI_Alltoall(in, 2, MPI_INT, out, 2, MPI_INT, inter);
    MPI_Allreduce(in, out, 5, MPI_INT, MPI_SUM, inter);
    /* A count for each rank of the local group, 6 elements in all. */
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, inter);
    MPI_Reduce_scatter_block(in, out, 6 / group_size, MPI_INT, MPI_SUM, inter);
    MPI_Comm_dup(inter, &twin);
    MPI_Intercomm_merge(inter, left, &merged);
    MPI_Barrier(merged);
    MPI_Comm_free(&merged);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&inter);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, left ? 1 : 0, 13, &inter);
    MPI_Comm_free(&inter);
    MPI_Intercomm_create(local, 0, MPI_COMM_WORLD, left ? 1 : 0, 12, &inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&local);
    MPI_Finalize();
    return 0;
}
