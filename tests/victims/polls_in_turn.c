/* Rank 0 alternately tests two requests and probes two communicators without success; then rank 1 sends. */
#include "victim.h"

enum { TIMES = 10000 };

int main(int argc, char **argv)
{
    MPI_Comm first, second;
    MPI_Request requests[2];
    int rank, flag, got[2];

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &first);
    MPI_Comm_dup(MPI_COMM_WORLD, &second);
    if (rank == 0) {
        for (int i = 0; i < 2; i++)
            MPI_Irecv(&got[i], 1, MPI_INT, 1, i, first, &requests[i]);
        for (int i = 0; i < TIMES; i++) {
            MPI_Iprobe(1, 7, first, &flag, MPI_STATUS_IGNORE);
            MPI_Testall(2, requests, &flag, MPI_STATUSES_IGNORE);
            MPI_Iprobe(1, 7, second, &flag, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    else if (rank == 1)
        for (int i = 0; i < 2; i++)
            MPI_Send(&i, 1, MPI_INT, 0, i, first);
    MPI_Comm_free(&first);
    MPI_Comm_free(&second);
    MPI_Finalize();
    return 0;
}
