/* Runs of polls that find nothing. A message is sent only after a given number of polls, to the rank itself or
   by the other rank on request, so the number of polls is known. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), flag = 1, count = -1, index, indices[2], in[2], out = 0, nothing = 0;
    MPI_Message message;
    MPI_Request requests[2];
    MPI_Comm twin;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    if (rank == 1) {
        MPI_Recv(&in, 0, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(&out, 1, MPI_INT, 0, 2, MPI_COMM_WORLD);
        MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
        MPI_Comm_free(&twin);
        MPI_Finalize();
        return 0;
    }
    MPI_Irecv(in, 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[0]);
    for (int i = 0; i < 1000; i++) {
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
        nothing += !flag;
    }
    MUST(nothing == 1000);
    MPI_Send(&out, 0, MPI_INT, 1, 1, MPI_COMM_WORLD);
    /* This message arrives after the other. */
    MPI_Recv(&in[1], 1, MPI_INT, 1, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MUST(flag);

    for (int i = 0; i < 7; i++)
        MPI_Iprobe(MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    /* Calls that are not recorded do not end a run; another communicator has its own run. */
    for (int i = 0; i < 3; i++) {
        MPI_Wtime();
        MPI_Iprobe(0, 5, twin, &flag, MPI_STATUS_IGNORE);
    }
    /* Alternating kinds are a run each; any other call ends them. */
    MPI_Irecv(in, 1, MPI_INT, 0, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, 0, 7, MPI_COMM_WORLD, &requests[1]);
    for (int i = 0; i < 4; i++) {
        MPI_Iprobe(0, 5, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    }
    for (int i = 0; i < 5; i++)
        MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 6; i++)
        MPI_Testany(2, requests, &index, &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 7; i++)
        MPI_Testsome(2, requests, &count, indices, MPI_STATUSES_IGNORE);
    for (int i = 0; i < 8; i++)
        MPI_Improbe(0, 5, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
    for (int i = 0; i < 9; i++)
        MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++) {
        MPI_Test(&requests[i % 2], &flag, MPI_STATUS_IGNORE);
        if (i == 1)
            MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    }
    MPI_Send(&out, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    MPI_Send(&out, 1, MPI_INT, 0, 7, MPI_COMM_WORLD);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
