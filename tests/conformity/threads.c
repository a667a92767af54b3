/* MPI_THREAD_MULTIPLE: requests that one thread makes and another completes, communicators of all threads,
   and a thread whose first call waits for more requests than a window has slots. */
#include "conformity.h"
#include <pthread.h>

#define MANY 40000

static MPI_Request some[3], many[MANY];
static int in[MANY];
static MPI_Comm twin;

static void *complete(void *argument)
{
    int out = 0;
    MPI_Send(&out, 1, MPI_INT, 0, 2, twin);
    MPI_Send(&out, 1, MPI_INT, 0, 1, twin);
    MPI_Wait(&some[1], MPI_STATUS_IGNORE);
    MPI_Irecv(&in[5], 1, MPI_INT, 0, 3, twin, &some[2]);
    MPI_Send(&out, 1, MPI_INT, 0, 3, twin);
    MPI_Comm_free(&twin);
    return argument;
}

static void *complete_many(void *argument)
{
    MPI_Waitall(MANY, many, MPI_STATUSES_IGNORE);
    return argument;
}

static void run(void *(*what)(void *))
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, what, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

int main(void)
{
    int provided = -1, out = 0;
    MPI_Comm again;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_MULTIPLE, &provided);
    MUST(provided == MPI_THREAD_MULTIPLE);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Irecv(&in[0], 1, MPI_INT, 0, 1, twin, &some[0]);
    MPI_Irecv(&in[1], 1, MPI_INT, 0, 2, twin, &some[1]);
    run(complete);
    MPI_Waitall(3, some, MPI_STATUSES_IGNORE);
    /* The handle of the freed communicator may be reused. */
    MPI_Comm_dup(MPI_COMM_SELF, &again);
    MPI_Sendrecv(&out, 1, MPI_INT, 0, 9, &in[2], 1, MPI_INT, 0, 9, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
    MPI_Barrier(again);
    for (int i = 0; i < MANY; i++)
        MPI_Irecv(&in[i], 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &many[i]);
    for (int i = 0; i < MANY; i++)
        MPI_Send(&out, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    run(complete_many);
    MPI_Comm_free(&again);
    MPI_Finalize();
    return 0;
}
