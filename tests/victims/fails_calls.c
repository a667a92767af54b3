/* Calls that return errors, under MPI_ERRORS_RETURN, on two ranks: refused sends and collective calls
 * between good ones, then truncated messages with every way to receive. Prints how many calls of each
 * rank failed, and how many messages were truncated. */
#include "victim.h"

enum { SHORT = 2, LONG = 8 };

static int failed, truncated;

static int class_of(int code)
{
    int class = MPI_SUCCESS;
    if (code != MPI_SUCCESS)
        MPI_Error_class(code, &class);
    return class;
}

/* Counts a call and whether its message was truncated. */
static int tell(int code)
{
    failed += code != MPI_SUCCESS;
    truncated += class_of(code) == MPI_ERR_TRUNCATE;
    return class_of(code);
}

/* Counts a call on several requests; returns how many of them are completed. */
static int tell_several(int code, int count, MPI_Status *statuses)
{
    int done = count;
    failed += code != MPI_SUCCESS;
    if (class_of(code) == MPI_ERR_IN_STATUS) {
        for (int i = 0; i < count; i++) {
            int class = class_of(statuses[i].MPI_ERROR);
            truncated += class == MPI_ERR_TRUNCATE;
            done -= class == MPI_ERR_PENDING;
        }
    }
    return done;
}

static void post(int *buffer, MPI_Request *requests, int tag)
{
    for (int i = 0; i < 3; i++)
        MPI_Irecv(buffer + LONG * i, i == 1 ? SHORT : LONG, MPI_INT, 0, tag + i, MPI_COMM_WORLD,
                  requests + i);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void send(const int *buffer, int tag)
{
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 3; i++)
        MPI_Send(buffer, LONG, MPI_INT, 1, tag + i, MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char **argv)
{
    int rank, value[LONG] = {0}, sum[LONG], buffer[3 * LONG], flag, index, indices[3], outcount;
    MPI_Request requests[3], request;
    MPI_Status statuses[3], status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);

    /* Refused calls, which must not be confused with the calls after them. */
    if (rank == 0) {
        tell(MPI_Send(value, 3, MPI_DATATYPE_NULL, 1, 5, MPI_COMM_WORLD));
        MPI_Send(value, 3, MPI_INT, 1, 5, MPI_COMM_WORLD);
        tell(MPI_Isend(value, 4, MPI_INT, 77, 5, MPI_COMM_WORLD, &request));
    } else {
        tell(MPI_Recv(value, 3, MPI_DATATYPE_NULL, 0, 5, MPI_COMM_WORLD, &status));
        MPI_Recv(value, LONG, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
        tell(MPI_Reduce(value, sum, 1, MPI_INT, MPI_SUM, 55, MPI_COMM_WORLD));
    }
    MPI_Allreduce(value, sum, LONG, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(value, LONG, MPI_INT, 0, MPI_COMM_WORLD);

    /* Sends to MPI_PROC_NULL transfer nothing. */
    MPI_Send(value, LONG, MPI_INT, MPI_PROC_NULL, 6, MPI_COMM_WORLD);

    /* One message, longer than its buffer. */
    if (rank == 0) {
        for (int tag = 10; tag < 16; tag++)
            MPI_Send(value, LONG, MPI_INT, 1, tag, MPI_COMM_WORLD);
    } else {
        tell(MPI_Recv(buffer, SHORT, MPI_INT, 0, 10, MPI_COMM_WORLD, &status));
        tell(MPI_Recv(buffer, SHORT, MPI_INT, MPI_ANY_SOURCE, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
        MPI_Irecv(buffer, SHORT, MPI_INT, 0, 12, MPI_COMM_WORLD, &request);
        tell(MPI_Wait(&request, MPI_STATUS_IGNORE));
        MPI_Irecv(buffer, SHORT, MPI_INT, 0, 13, MPI_COMM_WORLD, &request);
        do {
            flag = 1;
        } while (tell(MPI_Test(&request, &flag, &status)) == MPI_SUCCESS && !flag);
        MPI_Irecv(buffer, SHORT, MPI_INT, 0, 14, MPI_COMM_WORLD, &request);
        tell(MPI_Waitany(1, &request, &index, &status));
        tell(MPI_Sendrecv(value, 1, MPI_INT, 1, 20, buffer, SHORT, MPI_INT, 0, 15, MPI_COMM_WORLD,
                          &status));
        MPI_Recv(buffer, LONG, MPI_INT, 1, 20, MPI_COMM_WORLD, &status);
    }

    /* One of three in an array. */
    if (rank == 0) {
        for (int tag = 30; tag < 80; tag += 10)
            send(value, tag);
    } else {
        int left;
        post(buffer, requests, 30);
        /* MPICH leaves the requests after the failed one pending. */
        if (tell_several(MPI_Waitall(3, requests, statuses), 3, statuses) < 3)
            tell_several(MPI_Waitall(3, requests, statuses), 3, statuses);
        post(buffer, requests, 40);
        left = 3;
        while (left > 0) {
            int code = MPI_Waitsome(3, requests, &outcount, indices, statuses);
            if (outcount <= 0)
                break;
            tell_several(code, outcount, statuses);
            left -= outcount;
        }
        post(buffer, requests, 50);
        left = 3;
        while (left > 0) {
            int code = MPI_Testsome(3, requests, &outcount, indices, statuses);
            if (outcount < 0)
                break;
            tell_several(code, outcount, statuses);
            left -= outcount;
        }
        post(buffer, requests, 60);
        do {
            int code = MPI_Testall(3, requests, &flag, statuses);
            tell_several(code, 3, statuses);
            if (code != MPI_SUCCESS)
                break;
        } while (!flag);
        post(buffer, requests, 70);
        /* If statuses are ignored, the failed request is unknown. */
        failed += MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS;
        failed += MPI_Waitall(3, requests, MPI_STATUSES_IGNORE) != MPI_SUCCESS;
        truncated++;
    }
    /* One rank prints, so that the order of lines is fixed. */
    int own[2] = {failed, truncated}, all[4];
    MPI_Gather(own, 2, MPI_INT, all, 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("failed %d %d truncated %d %d\n", all[0], all[2], all[1], all[3]);
    fflush(stdout);
    MPI_Finalize();
    return 0;
}
