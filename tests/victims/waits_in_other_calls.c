/* Three ranks; in each step one is 200 ms late: with a probed message, at a fence, at the duplication of a
 * communicator, and with a message that is received before one that was sent earlier. */
#include <mpi.h>
#include <unistd.h>

static void late(int rank, int who) {
    if (rank == who) usleep(200000);
}

int main(int argc, char **argv) {
    int rank, value, *memory;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Win window;
    /* Debian's Open MPI has no MPI_Win_create within one host. */
    MPI_Win_allocate(sizeof *memory, sizeof *memory, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);

    MPI_Barrier(MPI_COMM_WORLD);
    late(rank, 1);
    if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 0, 3, MPI_COMM_WORLD);
    if (rank == 0) {
        MPI_Status status;
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }

    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Win_fence(0, window);
    late(rank, 2);
    if (rank == 0) MPI_Put(&rank, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    MPI_Win_fence(0, window);

    MPI_Comm again;
    late(rank, 1);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);

    if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 0, 4, again);
    late(rank, 2);
    if (rank == 2) MPI_Send(&rank, 1, MPI_INT, 0, 4, again);
    if (rank == 0) {
        MPI_Recv(&value, 1, MPI_INT, 2, 4, again, MPI_STATUS_IGNORE);
        MPI_Recv(&value, 1, MPI_INT, 1, 4, again, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&again);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
