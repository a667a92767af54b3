/* Iterations of two regions, "smooth" and "norm", that sleep 6 and 3 ms, a row sent around a ring, and sums over all ranks.
 * Options, each NAME=VALUE:
 *   iterations=30
 *   smooth=all:300 or smooth=2:300   additional microseconds in smooth, on all ranks or on one; likewise norm=
 *   bytes=800                        size of the row
 *   sums=1                           sums per iteration
 *   order=0213                       order of the ranks in the ring; at most ten ranks
 *   spin=1                           computes for about as long instead of sleeping
 *   dies=1                           the last rank is killed in the middle of the run */
#include "victim.h"
#include "gammachi.h"

static int rank, size, spins;
static volatile double sink;

static const char *option(int argc, char **argv, const char *name, const char *otherwise)
{
    size_t length = strlen(name);
    for (int i = 1; i < argc; i++)
        if (strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
            return argv[i] + length + 1;
    return otherwise;
}

/* Additional microseconds of this rank from an option. */
static int more(const char *text)
{
    int who, microseconds;
    if (sscanf(text, "all:%d", &microseconds) == 1)
        return microseconds;
    if (sscanf(text, "%d:%d", &who, &microseconds) == 2)
        return who == rank ? microseconds : 0;
    return 0;
}

static void work(const char *region, int microseconds)
{
    gammachi_region_begin(region);
    if (!spins)
        usleep(microseconds);
    for (long i = 0; spins && i < 200L * microseconds; i++)
        sink = sink * 0.5 + 1;
    gammachi_region_end(region);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int iterations = atoi(option(argc, argv, "iterations", "30"));
    int bytes = atoi(option(argc, argv, "bytes", "800"));
    int sums = atoi(option(argc, argv, "sums", "1"));
    int dies = atoi(option(argc, argv, "dies", "0"));
    spins = atoi(option(argc, argv, "spin", "0"));
    int smooth = 6000 + more(option(argc, argv, "smooth", ""));
    int norm = 3000 + more(option(argc, argv, "norm", ""));
    const char *order = option(argc, argv, "order", "0123456789");
    int at = 0;
    while (order[at] - '0' != rank)
        at++;
    int right = order[(at + 1) % size] - '0', left = order[(at + size - 1) % size] - '0';
    char *row = calloc(bytes, 1), *received = calloc(bytes, 1);
    double part = 1, sum;

    for (int iteration = 0; iteration < iterations; iteration++) {
        work("smooth", smooth);
        MPI_Sendrecv(row, bytes, MPI_CHAR, right, 1, received, bytes, MPI_CHAR, left, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        if (dies && iteration == iterations / 2 && rank == size - 1)
            raise(SIGKILL);
        work("norm", norm);
        for (int i = 0; i < sums; i++)
            MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
