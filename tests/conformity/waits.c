/* Non-blocking messages and every wait procedure: null, inactive and completed requests, with and without statuses,
   in small and larger arrays. Rank 1 sends only on request, so it is known which requests complete. */
#include "conformity.h"

#define MANY 40

static void ask(void) { MPI_Send(NULL, 0, MPI_INT, 1, 99, MPI_COMM_WORLD); }
static void asked(void) { MPI_Recv(NULL, 0, MPI_INT, 0, 99, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
static void give(int count, int tag)
{
    int values[MANY] = {0};
    MPI_Send(values, count, MPI_INT, 0, tag, MPI_COMM_WORLD);
}

static void receiver(void)
{
    static int in[MANY], out[MANY];
    int index = -1, count = -1, indices[MANY];
    MPI_Request requests[MANY], none = MPI_REQUEST_NULL;
    MPI_Status status, statuses[MANY];

    MPI_Irecv(in, 4, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[0]);
    ask();
    MPI_Wait(&requests[0], &status);
    MUST(status.MPI_SOURCE == 1 && status.MPI_TAG == 1 && requests[0] == MPI_REQUEST_NULL);
    MPI_Wait(&none, &status);
    MPI_Wait(&none, MPI_STATUS_IGNORE);

    /* MPI_Waitall with receives, sends and null requests. */
    MPI_Irecv(&in[0], 1, MPI_INT, 1, 2, MPI_COMM_WORLD, &requests[0]);
    requests[1] = MPI_REQUEST_NULL;
    MPI_Irecv(&in[1], 8, MPI_INT, 1, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(out, 3, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[3]);
    MPI_Issend(out, 2, MPI_INT, 1, 5, MPI_COMM_WORLD, &requests[4]);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(5, requests, MPI_STATUSES_IGNORE);
    MPI_Waitall(0, requests, MPI_STATUSES_IGNORE);

    /* More requests than fit a small array, with and without statuses. */
    for (int way = 0; way < 2; way++) {
        for (int i = 0; i < MANY; i++)
            MPI_Irecv(&in[i], 1, MPI_INT, 1, 10, MPI_COMM_WORLD, &requests[i]);
        ask();
        MPI_Waitall(MANY, requests, way ? statuses : MPI_STATUSES_IGNORE);
    }
    MUST(statuses[MANY - 1].MPI_SOURCE == 1 && statuses[MANY - 1].MPI_TAG == 10);

    /* MPI_Waitany: the last of three messages is sent first. */
    for (int i = 0; i < 3; i++)
        MPI_Irecv(&in[i], 4, MPI_INT, 1, 20 + i, MPI_COMM_WORLD, &requests[i]);
    ask();
    MPI_Waitany(3, requests, &index, &status);
    MUST(index == 2 && status.MPI_TAG == 22);
    ask();
    MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    MUST(index == 0);
    ask();
    MPI_Waitany(3, requests, &index, MPI_STATUS_IGNORE);
    MUST(index == 1);
    MPI_Waitany(3, requests, &index, &status);
    MUST(index == MPI_UNDEFINED);
    MPI_Waitany(0, requests, &index, MPI_STATUS_IGNORE);
    MUST(index == MPI_UNDEFINED);

    /* MPI_Waitsome: one request at a time, of a larger array, with and without statuses. */
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, 1, 30 + i, MPI_COMM_WORLD, &requests[i]);
    for (int i = 0; i < MANY; i++) {
        ask();
        MPI_Waitsome(MANY, requests, &count, indices, i % 2 ? statuses : MPI_STATUSES_IGNORE);
        MUST(count == 1 && indices[0] == MANY - 1 - i);
    }
    MPI_Waitsome(MANY, requests, &count, indices, MPI_STATUSES_IGNORE);
    MUST(count == MPI_UNDEFINED);

    /* MPI_PROC_NULL. */
    MPI_Isend(out, 3, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Irecv(in, 3, MPI_INT, MPI_PROC_NULL, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
}

static void sender(void)
{
    static int values[MANY];
    MPI_Request request;
    asked();
    give(2, 1);
    give(1, 2);
    give(3, 3);
    MPI_Recv(values, 3, MPI_INT, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Irecv(values, 3, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (int way = 0; way < 2; way++) {
        asked();
        for (int i = 0; i < MANY; i++)
            give(1, 10);
    }
    for (int i = 0; i < 3; i++) {
        asked();
        give(1 + i, 20 + (i + 2) % 3);
    }
    for (int i = MANY - 1; i >= 0; i--) {
        asked();
        give(1, 30 + i);
    }
    /* Every mode of a non-blocking send, from a rank to itself. */
    MPI_Request requests[4];
    char *buffer = malloc(1024);
    int size;
    MPI_Buffer_attach(buffer, 1024);
    MPI_Irecv(&values[0], 1, MPI_INT, 1, 50, MPI_COMM_WORLD, &requests[0]);
    MPI_Ibsend(&values[4], 1, MPI_INT, 1, 50, MPI_COMM_WORLD, &requests[1]);
    MPI_Irecv(&values[1], 1, MPI_INT, 1, 51, MPI_COMM_WORLD, &requests[2]);
    MPI_Irsend(&values[4], 1, MPI_INT, 1, 51, MPI_COMM_WORLD, &requests[3]);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    MPI_Buffer_detach(&buffer, &size);
}

int main(void)
{
    if (begin() == 0)
        receiver();
    else
        sender();
    MPI_Finalize();
    return 0;
}
