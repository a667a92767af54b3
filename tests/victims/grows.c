/* Meets every tenth of a second until a file exists; rank 1 takes two megabytes more each time.
 *   grows FILE */
#include "victim.h"

static char *volatile kept;

int main(int argc, char **argv)
{
    int rank, goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (goes_on) {
        if (rank == 1) {
            char *more = malloc(2 << 20);
            memset(more, 1, 2 << 20);
            kept = more;
        }
        usleep(100000);
        goes_on = access(argv[1], F_OK) != 0;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
