/* After 5 barriers, or as many as the argument says, the last rank computes forever, and the others wait in the next one.
 * It never ends by itself. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, size, barriers = argc > 1 ? atoi(argv[1]) : 5;
    volatile double x = 1;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(10);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (int i = 0; i < barriers; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == size - 1)
        for (;;)
            x = x * 1.0000001;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
