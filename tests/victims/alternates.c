/* Computes and meets in turn until a file exists.
 *   alternates FILE   rank 1 computes twice as long as the others */
#include "victim.h"

#include <time.h>
#include <unistd.h>

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

int main(int argc, char **argv)
{
    int rank, goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    while (goes_on) {
        double until_s = cpu_s() + (rank == 1 ? 0.01 : 0.005);

        while (cpu_s() < until_s)
            ;
        MPI_Barrier(MPI_COMM_WORLD);
        goes_on = access(argv[1], F_OK) != 0;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
