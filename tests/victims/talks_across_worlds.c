/* Two parents spawn two children, and both worlds make an intercommunicator of mixed groups whose first ranks are
 * children; messages between the parents, and to a child, use it. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, merged_rank, value = 7;
    MPI_Comm parent, inter, merged, half, pair;

    MPI_Init(&argc, &argv);
    MPI_Comm_get_parent(&parent);
    if (parent == MPI_COMM_NULL)
        MPI_Comm_spawn(argv[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &inter,
                       MPI_ERRCODES_IGNORE);
    else
        inter = parent;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    /* The children are the first ranks. */
    MPI_Intercomm_merge(inter, parent == MPI_COMM_NULL, &merged);
    MPI_Comm_rank(merged, &merged_rank);
    MPI_Comm_split(merged, merged_rank % 2, merged_rank, &half);
    MPI_Intercomm_create(half, 0, merged, merged_rank % 2 == 0, 9, &pair);
    if (parent == MPI_COMM_NULL && rank == 0) {
        MPI_Send(&value, 1, MPI_INT, 1, 3, pair);
        MPI_Send(&value, 1, MPI_INT, 0, 4, pair);
    } else if (parent == MPI_COMM_NULL) {
        MPI_Recv(&value, 1, MPI_INT, 1, 3, pair, MPI_STATUS_IGNORE);
    } else if (rank == 1) {
        MPI_Recv(&value, 1, MPI_INT, 1, 4, pair, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(merged);
    MPI_Comm_free(&pair);
    MPI_Comm_free(&half);
    MPI_Comm_free(&merged);
    MPI_Comm_disconnect(&inter);
    MPI_Finalize();
    return 0;
}
