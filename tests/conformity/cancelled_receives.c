/* Receives that are cancelled, and requests that are freed while they are active. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), other = 1 - rank, in[4], out = 0, flag = 0;
    MPI_Request requests[3];
    MPI_Status status, statuses[3];

    MPI_Irecv(in, 4, MPI_INT, other, 70, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    MUST(flag);

    MPI_Irecv(in, 4, MPI_INT, other, 71, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(in, 4, MPI_INT, other, 72, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(&out, 1, MPI_INT, other, 72, MPI_COMM_WORLD, &requests[2]);
    MPI_Cancel(&requests[0]);
    MPI_Waitall(3, requests, statuses);
    MPI_Test_cancelled(&statuses[0], &flag);
    MUST(flag);

    /* Without asking for the status. */
    MPI_Irecv(in, 4, MPI_INT, other, 73, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Waitall(1, requests, MPI_STATUSES_IGNORE);

    if (rank == 0) {
        MPI_Isend(&out, 1, MPI_INT, 1, 74, MPI_COMM_WORLD, &requests[0]);
        MPI_Request_free(&requests[0]);
        MPI_Recv(in, 1, MPI_INT, 1, 75, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, 1, MPI_INT, 0, 74, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&out, 1, MPI_INT, 0, 75, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
