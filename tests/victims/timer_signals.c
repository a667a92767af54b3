/* A profiling timer interrupts the program constantly while windows change. */
#include "victim.h"
#include <sys/time.h>

static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    (void)signal;
    ticks++;
}

int main(int argc, char **argv)
{
    struct sigaction action;
    struct itimerval often = {{0, 50}, {0, 50}};
    struct itimerval never = {{0, 0}, {0, 0}};

    MPI_Init(&argc, &argv);
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    call_comm_rank(2000000);
    setitimer(ITIMER_REAL, &never, NULL);
    puts(ticks > 0 ? "interrupted" : "not interrupted");
    MPI_Finalize();
    return 0;
}
