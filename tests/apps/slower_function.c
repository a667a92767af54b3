/* Ranks compute in turn, two at a time, so that two cores suffice, and meet in each iteration.
 *   slower_function ITERATIONS LOOPS                       LOOPS: what takes a millisecond
 *   slower_function ITERATIONS LOOPS RANK FUNCTION MS      one function takes MS longer on one rank
 *   slower_function measure                                prints LOOPS */
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FUNCTIONS = 5, AT_A_TIME = 2 };
static const double usual_ms[FUNCTIONS] = {3, 2, 2.5, 0.5, 1};
static const double turn_ms = 11;
static volatile double result;

#define FUNCTION(name)                                \
    static __attribute__((noinline)) void name(long n) \
    {                                                 \
        double x = result;                            \
        for (long i = 0; i < n; i++)                  \
            x = x * 0.999999 + 1e-6;                  \
        result = x;                                   \
    }
FUNCTION(assemble)
FUNCTION(exchange_flux)
FUNCTION(gradient)
FUNCTION(limiter)
FUNCTION(update)
static void (*const functions[FUNCTIONS])(long) = {assemble, exchange_flux, gradient, limiter, update};

static double seconds(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static void sleep_ms(double ms)
{
    struct timespec time = {(long)(ms / 1000), (long)(ms * 1e6) % 1000000000};

    nanosleep(&time, NULL);
}

static void step(long loops, int slower, double more_ms)
{
    for (int i = 0; i < FUNCTIONS; i++)
        functions[i]((long)(loops * (usual_ms[i] + (i == slower ? more_ms : 0))));
}

/* Other programs must not take the cores while the ranks compute. */
static int set_policy(int policy, int priority)
{
    struct sched_param parameter = {.sched_priority = priority};

    return sched_setscheduler(0, policy, &parameter);
}

int main(int argc, char **argv)
{
    int rank, size, iterations = argc > 1 ? atoi(argv[1]) : 1;
    long loops = argc > 2 ? atol(argv[2]) : 0;

    if (argc > 1 && !strcmp(argv[1], "measure")) {
        double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
        assemble(300000000);
        printf("%ld\n", (long)(300000 / (seconds(CLOCK_THREAD_CPUTIME_ID) - begin)));
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int slower = argc > 5 && rank == atoi(argv[3]) ? atoi(argv[4]) : -1;
    double more_ms = argc > 5 ? atof(argv[5]) : 0, sum, one = 1;
    if (set_policy(SCHED_RR, 1))
        return 7;
    for (int i = 0; i < iterations; i++) {
        sleep_ms(rank / AT_A_TIME * turn_ms);
        step(loops, slower, more_ms);
        sleep_ms((size - 1 - rank) / AT_A_TIME * turn_ms);
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    set_policy(SCHED_OTHER, 0);
    MPI_Finalize();
    return 0;
}
