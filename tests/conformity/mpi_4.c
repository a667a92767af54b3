/* Additions of MPI-4: combined non-blocking messages, persistent collectives, partitioned messages. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), other = 1 - rank, in[64] = {0}, out[64], flag = 0;
    MPI_Request request;
    MPI_Isendrecv(out, 2 + rank, MPI_INT, other, 1 + rank, in, 8, MPI_INT, other, MPI_ANY_TAG,
                  MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Isendrecv_replace(out, 3, MPI_INT, other, 5, other, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Allreduce_init(in, out, 4, MPI_INT, MPI_SUM, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&request);
    MPI_Bcast_init(in, 5, MPI_INT, 1, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
    MPI_Start(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);

    /* Nothing is sent before the receiver has tested three times. */
    if (rank == 0) {
        MPI_Recv(NULL, 0, MPI_INT, 1, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Psend_init(out, 4, 3, MPI_INT, 1, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        MPI_Pready(1, request);
        MPI_Pready_range(2, 3, request);
        MPI_Pready(0, request);
    } else {
        MPI_Precv_init(in, 4, 3, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
        MPI_Start(&request);
        for (int i = 0; i < 3; i++)
            MPI_Parrived(request, 2, &flag);
        MUST(!flag);
        MPI_Send(NULL, 0, MPI_INT, 0, 7, MPI_COMM_WORLD);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Finalize();
    return 0;
}
