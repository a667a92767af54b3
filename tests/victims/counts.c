/* A known number of calls of some twenty functions on 2 ranks. The test knows the sequence. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, size, one = 1, sum = 0, flag = 0, value[4] = {0}, all[2], count;
    MPI_Comm twin;
    MPI_Datatype pair;
    MPI_Request requests[2];
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    for (int i = 0; i < 5; i++) {
        if (rank == 0)
            MPI_Send(value, 1, pair, 1, i, twin);
        else
            MPI_Recv(value, 1, pair, 0, i, twin, &status);
    }
    if (rank == 1)
        MPI_Get_count(&status, pair, &count); /* forwarded, never recorded */
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(&value[0], 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&value[1], 1, MPI_INT, 1 - rank, 7, MPI_COMM_WORLD, &requests[1]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    }
    MPI_Irecv(&value[0], 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&value[1], 1, MPI_INT, 1 - rank, 8, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], &status);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Sendrecv(&value[0], 1, MPI_INT, 1 - rank, 9, &value[2], 1, MPI_INT, 1 - rank, 9, twin,
                 MPI_STATUS_IGNORE);
    for (int i = 0; i < 4; i++)
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(value, 4, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Bcast(value, 4, MPI_INT, 1, MPI_COMM_WORLD);
    MPI_Reduce(&one, &sum, 1, MPI_INT, MPI_SUM, 0, twin);
    MPI_Allgather(&one, 1, MPI_INT, all, 1, MPI_INT, twin);
    MPI_Iprobe(MPI_ANY_SOURCE, 99, twin, &flag, MPI_STATUS_IGNORE);
    (void)MPI_Wtime(); /* forwarded, never recorded */
    MPI_Type_free(&pair);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
