/* Iterates: computes (or sleeps), exchanges with its neighbours, reduces. Now and then one rank takes longer.
 *   iterates MILLISECONDS FACTOR COUNT EVERY SEED sleep|spin
 * COUNT slow iterations, FACTOR times as long, one in EVERY in the mean (at least 10 lie between two). Each writes
 * "SLOW UNIX_TIME RANK" when it ends. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now_s(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void work(double s, int spins)
{
    volatile double x = 1;
    struct timespec time = {(time_t)s, (long)((s - (time_t)s) * 1e9)};

    if (!spins) {
        nanosleep(&time, NULL);
        return;
    }
    for (double until = now_s(CLOCK_MONOTONIC) + s; now_s(CLOCK_MONOTONIC) < until;)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001;
}

int main(int argc, char **argv)
{
    int rank, size, in = 0, out = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    double length_s = atof(argv[1]) * 1e-3, factor = atof(argv[2]);
    int count = atoi(argv[3]), every = atoi(argv[4]), spins = strcmp(argv[6], "spin") == 0;
    int next = 70;

    srand(atoi(argv[5]));
    for (int step = 0; count >= 0; step++) {
        int to = (rank + 1) % size, from = (rank + size - 1) % size, culprit = -1;
        /* All ranks draw the same numbers. */
        double share = 0.95 + 0.1 * (rand() / (double)RAND_MAX);

        if (step == next) {
            culprit = rand() % size;
            next += 10 + rand() % (every > 10 ? 2 * every - 20 : 1);
            count--;
        }
        work(length_s * share * (rank == culprit && count >= 0 ? factor : 1), spins);
        MPI_Sendrecv(&out, 1, MPI_INT, to, 1, &in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        out = 0;
        if (rank == culprit && count >= 0) {
            fprintf(stderr, "SLOW %.6f %d\n", now_s(CLOCK_REALTIME), rank);
            fflush(stderr);
        }
    }
    MPI_Finalize();
    return 0;
}
