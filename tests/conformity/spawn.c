/* A parent that spawns one more process, exchanges messages with it over the intercommunicator and disconnects. */
#include "conformity.h"

int main(int argc, char **argv)
{
    int value = 0, rank = -1;
    MPI_Comm parent, child, merged;
    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent != MPI_COMM_NULL) {
        MPI_Recv(&value, 1, MPI_INT, 0, 3, parent, MPI_STATUS_IGNORE);
        MPI_Intercomm_merge(parent, 1, &merged);
        MPI_Comm_rank(merged, &rank);
        MUST(rank == 1);
        MPI_Send(&value, 1, MPI_INT, 0, 4, merged);
        MPI_Comm_free(&merged);
        MPI_Comm_disconnect(&parent);
    } else {
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &child,
                       MPI_ERRCODES_IGNORE);
        MPI_Send(&value, 1, MPI_INT, 0, 3, child);
        MPI_Intercomm_merge(child, 0, &merged);
        MPI_Recv(&value, 1, MPI_INT, 1, 4, merged, MPI_STATUS_IGNORE);
        MPI_Comm_free(&merged);
        MPI_Comm_disconnect(&child);
    }
    MPI_Finalize();
    return 0;
}
