/* Computes in functions of known shares of the thread's CPU time.
 *   computes_in_functions SECONDS        in the first thread: two thirds in heavy, one third in light
 *   computes_in_functions SECONDS dies   the same; then rank 1 kills itself
 *   computes_in_functions SECONDS N      in N threads that make no MPI call, too
 *   computes_in_functions SECONDS refused  the kernel refuses perf_event_open, as in some containers
 *   computes_in_functions SECONDS fixed  a fixed amount of work, about SECONDS, however long it takes */
#define _GNU_SOURCE
#include "victim.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

static double cpu_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static volatile double result;

/* A burst of some 20 us. */
static double __attribute__((noinline)) burst(double x)
{
    for (int i = 0; i < 20000; i++)
        x = x * 0.999999 + 1e-6;
    return x;
}

/* Each function computes until the thread's CPU clock shows the given time. The clock is read rarely: it takes
 * time in the kernel, where nothing is sampled. */
void __attribute__((noinline)) heavy(double until_s)
{
    do
        result = burst(result);
    while (cpu_s() < until_s);
}

void __attribute__((noinline)) light(double until_s)
{
    do
        result = burst(result) + 1e-9;
    while (cpu_s() < until_s);
}

static void compute(double seconds)
{
    double begin = cpu_s(), part = 0.009, now = begin;

    while (now < begin + seconds) {
        heavy(now + 2 * part);
        now = cpu_s();
        light(now + part);
        now = cpu_s();
    }
}

static void compute_fixed(double seconds)
{
    for (long i = 0; i < seconds * 1900; i++)
        result = burst(result);
}

static void *compute_in_thread(void *seconds)
{
    compute(*(double *)seconds);
    return NULL;
}

static int refuse_perf_events(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};

    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    int dies = argc > 2 && !strcmp(argv[2], "dies"), threads = argc > 2 ? atoi(argv[2]) : 0;
    int rank, provided;
    pthread_t thread[64];

    if (argc > 2 && !strcmp(argv[2], "refused") && refuse_perf_events())
        return 9;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < threads && i < 64; i++)
        if (pthread_create(&thread[i], NULL, compute_in_thread, &seconds))
            return 9;
    for (int i = 0; i < 10; i++) {
        if (argc > 2 && !strcmp(argv[2], "fixed"))
            compute_fixed(seconds);
        else
            compute(seconds / 10);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    if (dies && rank == 1)
        raise(SIGKILL);
    for (int i = 0; i < threads && i < 64; i++)
        pthread_join(thread[i], NULL);
    MPI_Finalize();
    return 0;
}
