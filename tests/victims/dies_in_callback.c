/* 2 ranks (or, with an argument, one that dies) make 1000 calls and a barrier; then rank 1 makes 500 more and calls abort() inside
 * MPI_Reduce_local: the operation's function is the program's own. */
#include "victim.h"

static void die(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)count, (void)type;
    abort();
}

int main(int argc, char **argv)
{
    int rank, in = 0, out = 0;
    MPI_Op op;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 || argc > 1) {
        call_comm_rank(499);
        MPI_Op_create(die, 1, &op);
        MPI_Reduce_local(&in, &out, 1, MPI_INT, op);
    }
    MPI_Recv(&in, 1, MPI_INT, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
