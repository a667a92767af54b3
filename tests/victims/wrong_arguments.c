/* Wrong arguments under an error handler that counts. It is set on one communicator; MPI_COMM_WORLD
 * and MPI_COMM_SELF keep theirs, which end the job. Each call must fail once, as without the
 * recorder: if the recorder passed a wrong handle or wrong memory to MPI, that would end the job.
 * The argument selects the call. */
#include "victim.h"

static int handled;

static void count(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    handled++;
}

int main(int argc, char **argv)
{
    int which = atoi(argv[1]), code = -1, class = -1, value[4] = {0}, rank, flag;
    MPI_Comm twin;
    MPI_Errhandler handler;
    MPI_Request request;
    MPI_Datatype uncommitted;

    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_SELF, &twin);
    MPI_Comm_create_errhandler(count, &handler);
    MPI_Comm_set_errhandler(twin, handler);
    MPI_Type_contiguous(2, MPI_INT, &uncommitted);
    switch (which) {
    case 0: code = MPI_Send(value, 1, MPI_DATATYPE_NULL, 0, 1, twin); break;
    case 1: code = MPI_Irecv(value, 1, MPI_DATATYPE_NULL, 0, 1, twin, &request); break;
    case 2: code = MPI_Bcast(value, 1, MPI_DATATYPE_NULL, 0, twin); break;
    case 3: code = MPI_Allreduce(value, value + 1, -3, MPI_INT, MPI_SUM, twin); break;
    case 4: code = MPI_Send(value, -1, MPI_INT, 0, 1, twin); break;
    case 5: code = MPI_Recv(value, 1, MPI_INT, 77, 1, twin, MPI_STATUS_IGNORE); break;
    case 6: code = MPI_Send(value, 1, uncommitted, 0, 1, twin); break;
    case 7: code = MPI_Gatherv(value, 1, MPI_INT, value, NULL, NULL, MPI_INT, 0, twin); break;
    case 8: code = MPI_Alltoallv(value, NULL, NULL, MPI_INT, value, NULL, NULL, MPI_INT, twin); break;
    case 9: code = MPI_Bcast(value, 1, MPI_INT, 55, twin); break;
    case 10: code = MPI_Comm_split(twin, -5, 0, NULL); break;
    case 11: code = MPI_Isend(value, 1, MPI_INT, 0, 1, twin, NULL); break;
    default:
        /* Errors without a communicator go to the handler of MPI_COMM_SELF or MPI_COMM_WORLD. */
        MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
        MPI_Comm_set_errhandler(MPI_COMM_SELF, handler);
        switch (which) {
        case 12: code = MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE); break;
        case 13: code = MPI_Waitall(3, NULL, MPI_STATUSES_IGNORE); break;
        case 14: code = MPI_Wait(NULL, MPI_STATUS_IGNORE); break;
        case 15: code = MPI_Comm_rank(MPI_COMM_NULL, &rank); break;
        case 16: code = MPI_Send(value, 1, MPI_INT, 0, 1, MPI_COMM_NULL); break;
        case 17: code = MPI_Comm_dup(MPI_COMM_NULL, &twin); break;
        case 18: code = MPI_Barrier(MPI_COMM_NULL); break;
        case 19: code = MPI_Test(NULL, &flag, MPI_STATUS_IGNORE); break;
        case 20: code = MPI_Testsome(2, NULL, &flag, value, MPI_STATUSES_IGNORE); break;
        case 21: code = MPI_Startall(2, NULL); break;
        case 22: code = MPI_Type_free(NULL); break;
        case 23: code = MPI_Comm_free(NULL); break;
        case 24: code = MPI_Request_free(NULL); break;
        case 25: code = MPI_Waitany(2, NULL, &flag, MPI_STATUS_IGNORE); break;
        default: return 77;
        }
    }
    MPI_Error_class(code, &class);
    printf("%d: class %d handled %d\n", which, class, handled);
    fflush(stdout);
    _exit(0);
}
