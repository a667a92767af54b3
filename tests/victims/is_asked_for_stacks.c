/* Rank 0 waits in a barrier for the others: rank 1 computes, rank 2 does so with all signals blocked, rank 3 with
 * handlers of its own for the signals that the recorder may use, and rank 4 sleeps. A rank that meets a signal that
 * somebody sent ends with 9. */
#define _GNU_SOURCE
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

static volatile double sum;

__attribute__((noinline)) static void never_ends(void)
{
    for (;;)
        sum += 1e-9;
}

static void is_met(int number)
{
    (void)number;
    _exit(9);
}

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1)
        never_ends();
    if (rank == 2) {
        sigset_t all;

        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, NULL);
        never_ends();
    }
    if (rank == 3) {
        struct sigaction own = {.sa_handler = is_met};

        sigaction(SIGSTKFLT, &own, NULL);
        sigaction(SIGPROF, &own, NULL);
        never_ends();
    }
    if (rank == 4) {
        struct timespec minutes = {600, 0};

        if (nanosleep(&minutes, NULL) != 0)
            _exit(9);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
