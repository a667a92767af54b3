/* A wait for more requests than one window of the recorder has slots, and tests of them before. */
#include "conformity.h"

#define MANY 34803

int main(void)
{
    static int in[MANY];
    static MPI_Request requests[MANY];
    static MPI_Status statuses[MANY];
    int rank = begin(), flag = -1, out = 0;
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < MANY; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, rank, 3, MPI_COMM_WORLD, &requests[i]);
        for (int i = 0; i < 10; i++)
            MPI_Testall(MANY, requests, &flag, MPI_STATUSES_IGNORE);
        MUST(!flag);
        for (int i = 0; i < MANY; i++)
            MPI_Send(&out, 1, MPI_INT, rank, 3, MPI_COMM_WORLD);
        MPI_Waitall(MANY, requests, way ? statuses : MPI_STATUSES_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
