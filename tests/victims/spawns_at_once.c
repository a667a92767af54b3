/* Both ranks spawn at the same time, each over MPI_COMM_SELF: two and three children. */
#include "victim.h"

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank, sum = 0;
    MPI_Comm parent, children;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_get_parent(&parent);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (parent == MPI_COMM_NULL) {
        MPI_Comm_spawn(words[0], MPI_ARGV_NULL, 2 + rank, MPI_INFO_NULL, 0, MPI_COMM_SELF, &children,
                       MPI_ERRCODES_IGNORE);
        MPI_Barrier(children);
        MPI_Comm_disconnect(&children);
        MPI_Barrier(MPI_COMM_WORLD);
    } else {
        MPI_Barrier(parent);
        MPI_Comm_disconnect(&parent);
    }
    MPI_Finalize();
    return 0;
}
