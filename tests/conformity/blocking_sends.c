/* Blocking sends in all modes, receives with and without a status, wildcards, MPI_PROC_NULL, empty messages. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), values[10] = {0}, size = 0;
    char *buffer = malloc(4096);
    MPI_Status status;
    if (rank == 0) {
        MPI_Send(values, 10, MPI_INT, 1, 7, MPI_COMM_WORLD);
        MPI_Buffer_attach(buffer, 4096);
        MPI_Bsend(values, 3, MPI_DOUBLE, 1, 8, MPI_COMM_WORLD);
        MPI_Buffer_detach(&buffer, &size);
        MPI_Ssend(values, 5, MPI_CHAR, 1, 9, MPI_COMM_WORLD);
        MPI_Recv(values, 0, MPI_INT, 1, 10, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Rsend(values, 2, MPI_INT, 1, 11, MPI_COMM_WORLD);
        MPI_Send(values, 4, MPI_INT, 1, 12, MPI_COMM_WORLD);
        MPI_Send(NULL, 0, MPI_INT, 1, 13, MPI_COMM_WORLD);
        MPI_Send(values, 10, MPI_INT, MPI_PROC_NULL, 14, MPI_COMM_WORLD);
        MPI_Ssend(values, 10, MPI_INT, MPI_PROC_NULL, 14, MPI_COMM_WORLD);
    } else {
        MPI_Request ready;
        MPI_Recv(values, 10, MPI_INT, 0, 7, MPI_COMM_WORLD, &status);
        MUST(status.MPI_SOURCE == 0 && status.MPI_TAG == 7);
        /* A buffer larger than the message. */
        MPI_Recv(values, 40, MPI_CHAR, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(values, 40, MPI_CHAR, MPI_ANY_SOURCE, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Irecv(values, 2, MPI_INT, 0, 11, MPI_COMM_WORLD, &ready);
        MPI_Send(values, 0, MPI_INT, 0, 10, MPI_COMM_WORLD);
        MPI_Wait(&ready, MPI_STATUS_IGNORE);
        MPI_Recv(values, 10, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MUST(status.MPI_SOURCE == 0 && status.MPI_TAG == 12);
        MPI_Recv(NULL, 0, MPI_INT, 0, MPI_ANY_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Recv(values, 10, MPI_INT, MPI_PROC_NULL, 15, MPI_COMM_WORLD, &status);
        MUST(status.MPI_SOURCE == MPI_PROC_NULL && status.MPI_TAG == MPI_ANY_TAG);
        MPI_Recv(values, 10, MPI_INT, MPI_PROC_NULL, 15, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
