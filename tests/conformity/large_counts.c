/* The large-count procedures of MPI-4: events with the base names and counts of 64 bits. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), in[64] = {0}, out[64];
    MPI_Count counts[2] = {1, 3}, four = 4;
    MPI_Aint offsets[2] = {0, 4};
    MPI_Datatype type, huge;
    MPI_Request request;
    MPI_Count to[2] = {rank, 2}, from[2] = {rank == 0 ? 0 : 2, rank == 0 ? 1 : 2};

    MPI_Type_contiguous_c(four, MPI_INT, &type);
    MPI_Type_commit(&type);
    if (rank == 0) {
        MPI_Send_c(in, 3, type, 1, 1, MPI_COMM_WORLD);
        MPI_Isend_c(in, 2, type, 1, 2, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv_c(out, 4, type, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv_c(out, 4, type, 0, MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Sendrecv_c(in, 2, MPI_INT, 1 - rank, 3, out, 8, MPI_INT, 1 - rank, 3, MPI_COMM_WORLD,
                   MPI_STATUS_IGNORE);
    MPI_Bcast_c(in, 5, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Allreduce_c(in, out, 6, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allgatherv_c(in, counts[rank], MPI_INT, out, counts, offsets, MPI_INT, MPI_COMM_WORLD);
    MPI_Alltoallv_c(in, to, offsets, MPI_INT, out, from, offsets, MPI_INT, MPI_COMM_WORLD);

    /* More bytes than fit 32 bits, to MPI_PROC_NULL. */
    MPI_Type_contiguous_c((MPI_Count)1 << 30, MPI_INT, &huge);
    MPI_Type_commit(&huge);
    MPI_Send_c(in, 1, huge, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
    MPI_Send_c(in, 3, huge, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
    MPI_Send_c(in, (MPI_Count)1 << 33, MPI_CHAR, MPI_PROC_NULL, 4, MPI_COMM_WORLD);
    MPI_Recv_c(in, (MPI_Count)1 << 33, MPI_CHAR, MPI_PROC_NULL, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv_c(in, (MPI_Count)1 << 33, MPI_CHAR, MPI_PROC_NULL, 4, in, (MPI_Count)1 << 33,
                   MPI_CHAR, MPI_PROC_NULL, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&huge);
    MPI_Type_free(&type);
    MPI_Finalize();
    return 0;
}
