/* Twelve sleeps, divided among the ranks, in the region "solve": time that scales whatever the machine's load.
 * Argument: the length of a sleep in milliseconds. */
#include "gammachi.h"
#include "victim.h"

enum { SLEEPS = 12 };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_begin("solve");
    for (int i = rank; i < SLEEPS; i += ranks)
        usleep(1000 * (useconds_t)atoi(argv[1]));
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_end("solve");
    MPI_Finalize();
    return 0;
}
