/* Persistent requests: started many times, alone and together; waited for while inactive; freed. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), other = 1 - rank, in[4], out[4] = {0}, index = -1, flag = -1, count = -1;
    int indices[2];
    MPI_Request requests[2], modes[3];
    MPI_Status status;

    MPI_Recv_init(in, 4, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out, 2, MPI_INT, other, 1, MPI_COMM_WORLD, &requests[1]);
    /* Nothing was started. */
    MPI_Wait(&requests[0], &status);
    MPI_Waitany(2, requests, &index, MPI_STATUS_IGNORE);
    MUST(index == MPI_UNDEFINED);
    MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
    MUST(count == MPI_UNDEFINED);
    MPI_Test(&requests[1], &flag, MPI_STATUS_IGNORE);
    MUST(flag);
    for (int i = 0; i < 3; i++) {
        MPI_Start(&requests[0]);
        MPI_Start(&requests[1]);
        MPI_Wait(&requests[0], &status);
        MUST(status.MPI_SOURCE == other && requests[0] != MPI_REQUEST_NULL);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 2; i++) {
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Start(&requests[rank]);
    /* One of them is inactive. */
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Start(&requests[1 - rank]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    if (rank == 0) {
        MPI_Ssend_init(out, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &modes[0]);
        MPI_Bsend_init(out, 2, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD, &modes[1]);
        MPI_Rsend_init(out, 3, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &modes[2]);
        MPI_Startall(3, modes);
        MPI_Waitall(3, modes, MPI_STATUSES_IGNORE);
        for (int i = 0; i < 3; i++)
            MPI_Request_free(&modes[i]);
    } else {
        MPI_Recv(in, 1, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
