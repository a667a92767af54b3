/* The small program that every language here repeats; program.expected has its events. It is also valid C++.
   Two ranks. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MUST(condition)                                                 \
    do {                                                                \
        if (!(condition)) {                                             \
            fprintf(stderr, "line %d: failed: %s\n", __LINE__, #condition); \
            exit(70);                                                   \
        }                                                               \
    } while (0)

static int rank, size, other;

static void blocking(void)
{
    int values[4] = {1, 2, 3, 0}, count = -1;
    double out[2] = {1.5, 2.5}, in[2] = {0, 0};
    MPI_Status status;
    if (rank == 0) {
        MPI_Send(values, 3, MPI_INT, 1, 1, MPI_COMM_WORLD);
        MPI_Send(values, 0, MPI_INT, 1, 2, MPI_COMM_WORLD);
    } else {
        MPI_Probe(MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
        MPI_Recv(values, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_INT, &count);
        MUST(status.MPI_SOURCE == 0 && status.MPI_TAG == 1 && count == 3 && values[2] == 3);
        MPI_Recv(values, 4, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
    MPI_Send(values, 1, MPI_INT, MPI_PROC_NULL, 3, MPI_COMM_WORLD);
    MPI_Sendrecv(out, 2, MPI_DOUBLE, other, 4, in, 2, MPI_DOUBLE, other, 4, MPI_COMM_WORLD, &status);
    MUST(in[1] == 2.5 && status.MPI_SOURCE == other);
}

static void non_blocking(void)
{
    int in[2] = {-1, -1};
    MPI_Request requests[2];
    MPI_Status statuses[2];
    for (int way = 0; way < 2; way++) {
        MPI_Irecv(&in[way], 1, MPI_INT, other, 5, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(&rank, 1, MPI_INT, other, 5, MPI_COMM_WORLD, &requests[1]);
        if (way == 0)
            MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        else
            MPI_Waitall(2, requests, statuses);
        MUST(in[way] == other && requests[0] == MPI_REQUEST_NULL);
    }
    MUST(statuses[0].MPI_SOURCE == other && statuses[0].MPI_TAG == 5);
    MPI_Irecv(&in[0], 1, MPI_INT, other, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, other, 6, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[0], &statuses[0]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

static void collective(void)
{
    int values[4] = {rank, 1, 2, 3}, both[2] = {-1, -1}, mine = 10 + rank, sum = 1;
    double part[2] = {1, 2}, whole[2] = {0, 0};
    MPI_Bcast(values, 4, MPI_INT, 0, MPI_COMM_WORLD);
    MUST(values[0] == 0);
    MPI_Reduce(part, whole, 2, MPI_DOUBLE, MPI_SUM, 1, MPI_COMM_WORLD);
    MUST(rank == 0 || whole[1] == 4);
    MPI_Allgather(&mine, 1, MPI_INT, both, 1, MPI_INT, MPI_COMM_WORLD);
    MUST(both[1] == 11);
    MPI_Alltoall(both, 1, MPI_INT, values, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MUST(sum == 2);
}

static void communicators(void)
{
    MPI_Comm twin, half;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Barrier(twin);
    MPI_Comm_split(twin, rank, 0, &half);
    MPI_Barrier(half);
    MPI_Comm_free(&half);
    MPI_Comm_free(&twin);
    MUST(twin == MPI_COMM_NULL);
}

static void the_rest(void)
{
    int values[6] = {0, 1, 2, 3, 4, 5}, in[6] = {0};
    static int memory[16] = {-1};
    MPI_Datatype three;
    MPI_Request requests[2];
    MPI_Win window;

    MPI_Type_contiguous(3, MPI_INT, &three);
    MPI_Type_commit(&three);
    if (rank == 0)
        MPI_Send(values, 2, three, 1, 7, MPI_COMM_WORLD);
    else
        MPI_Recv(in, 2, three, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Type_free(&three);
    MUST(rank == 0 || in[5] == 5);

    MPI_Recv_init(in, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(values, 1, MPI_INT, other, 8, MPI_COMM_WORLD, &requests[1]);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);

    MPI_Win_create(memory, sizeof memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
    MPI_Win_fence(0, window);
    MPI_Put(&rank, 1, MPI_INT, other, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    MUST(memory[0] == other);
}

int main(int argc, char **argv)
{
    alarm(120);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MUST(size == 2);
    other = 1 - rank;
    blocking();
    non_blocking();
    collective();
    communicators();
    the_rest();
    MPI_Finalize();
    return 0;
}
