/* Every test procedure, on messages that a rank sends to itself, so that the results are known. */
#include "conformity.h"

#define MANY 40

int main(void)
{
    int rank = begin(), flag = -1, index = -1, count = -1, indices[MANY], in[MANY], out = 0;
    MPI_Request requests[MANY], none = MPI_REQUEST_NULL;
    MPI_Status status, statuses[MANY];

    MPI_Test(&none, &flag, &status);
    MUST(flag);
    MPI_Irecv(in, 2, MPI_INT, rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MUST(!flag);
    MPI_Send(&out, 1, MPI_INT, rank, 1, MPI_COMM_WORLD);
    MPI_Request_get_status(requests[0], &flag, MPI_STATUS_IGNORE);
    MUST(flag);
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MUST(flag && requests[0] == MPI_REQUEST_NULL);

    for (int way = 0; way < 2; way++) {
        MPI_Status *wanted = way ? statuses : MPI_STATUSES_IGNORE;
        for (int i = 0; i < MANY; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, rank, 10, MPI_COMM_WORLD, &requests[i]);
        MPI_Testall(MANY, requests, &flag, wanted);
        MUST(!flag);
        for (int i = 0; i < MANY; i++)
            MPI_Send(&out, 1, MPI_INT, rank, 10, MPI_COMM_WORLD);
        MPI_Testall(MANY, requests, &flag, wanted);
        MUST(flag && requests[MANY - 1] == MPI_REQUEST_NULL);
        MPI_Testall(2, requests, &flag, wanted);
        MUST(flag);

        for (int i = 0; i < 3; i++)
            MPI_Irecv(&in[i], 4, MPI_INT, rank, 60 + i, MPI_COMM_WORLD, &requests[i]);
        MPI_Testany(3, requests, &index, &flag, &status);
        MUST(!flag);
        MPI_Send(&out, 1, MPI_INT, rank, 61, MPI_COMM_WORLD);
        MPI_Testany(3, requests, &index, &flag, way ? &status : MPI_STATUS_IGNORE);
        MUST(flag && index == 1);
        MPI_Testsome(3, requests, &count, indices, wanted);
        MUST(count == 0);
        MPI_Send(&out, 1, MPI_INT, rank, 62, MPI_COMM_WORLD);
        MPI_Send(&out, 1, MPI_INT, rank, 60, MPI_COMM_WORLD);
        MPI_Testsome(3, requests, &count, indices, wanted);
        MUST(count == 2);
        MPI_Testsome(3, requests, &count, indices, wanted);
        MUST(count == MPI_UNDEFINED);
        MPI_Testany(3, requests, &index, &flag, &status);
        MUST(flag && index == MPI_UNDEFINED);
    }
    MPI_Finalize();
    return 0;
}
