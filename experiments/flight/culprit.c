/* Exchanges with its neighbours and reduces, until one rank does something wrong after a while.
 *   culprit KIND RANK SECONDS
 * KIND: none, kill (SIGKILL), stop (SIGSTOP), loop (computes for ever), deadlock (RANK and the next one receive first),
 * lost (RANK does not send), exit (without MPI_Finalize) */
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void compute(double s)
{
    volatile double x = 1;

    for (double until = now_s() + s; now_s() < until;)
        for (int i = 0; i < 1000; i++)
            x = x * 1.0000001;
}

int main(int argc, char **argv)
{
    int rank, size, in = 0, out = 0, goes_on = 1, wrong = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *kind = argv[1];
    int culprit = atoi(argv[2]) % size;
    double until = now_s() + atof(argv[3]);

    for (int step = 0; goes_on; step++) {
        int to = (rank + 1) % size, from = (rank + size - 1) % size;

        compute(0.002);
        wrong = now_s() > until;
        MPI_Bcast(&wrong, 1, MPI_INT, 0, MPI_COMM_WORLD);
        if (wrong && strcmp(kind, "none") == 0)
            goes_on = 0;
        if (wrong && rank == culprit) {
            struct timespec time;

            clock_gettime(CLOCK_REALTIME, &time);
            fprintf(stderr, "WRONG %ld.%09ld\n", (long)time.tv_sec, time.tv_nsec);
            fflush(stderr);
            if (strcmp(kind, "kill") == 0)
                raise(SIGKILL);
            if (strcmp(kind, "stop") == 0)
                raise(SIGSTOP);
            if (strcmp(kind, "exit") == 0)
                _exit(0);
            if (strcmp(kind, "loop") == 0)
                compute(1e9);
        }
        if (wrong && strcmp(kind, "deadlock") == 0 && (rank == culprit || rank == (culprit + 1) % size)) {
            int other = rank == culprit ? (culprit + 1) % size : culprit;

            MPI_Recv(&in, 1, MPI_INT, other, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(&out, 1, MPI_INT, other, 9, MPI_COMM_WORLD);
        }
        if (wrong && strcmp(kind, "lost") == 0 && rank == culprit)
            MPI_Recv(&in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else
            MPI_Sendrecv(&out, 1, MPI_INT, to, 1, &in, 1, MPI_INT, from, 1, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        MPI_Allreduce(MPI_IN_PLACE, &out, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        out = 0;
    }
    MPI_Finalize();
    return 0;
}
