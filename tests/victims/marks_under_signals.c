/* A timer's signal handler calls MPI while the program does KIND (regions, work, blas, transforms, threads) without
 * a pause, until the handler has run often enough. Prints the number of rounds. */
#include "gammachi.h"
#include "victim.h"
#include <dlfcn.h>
#include <pthread.h>
#include <sys/time.h>

enum { OFTEN = 300 };
static volatile sig_atomic_t ticks;

static void tick(int signal)
{
    int flag;
    (void)signal;
    MPI_Initialized(&flag);
    ticks += flag;
}

static void *short_lived(void *unused)
{
    sigset_t all;
    (void)unused;
    sigfillset(&all);
    pthread_sigmask(SIG_UNBLOCK, &all, NULL);
    call_comm_rank(3000);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    long times = 0;
    const char *kind = argc > 1 ? argv[1] : "regions";
    struct sigaction action;
    struct itimerval often = {{0, 300}, {0, 300}}, never = {{0, 0}, {0, 0}};
    double x[16] = {1}, y[16] = {1};
    sigset_t alarms;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    double (*dot)(int, const double *, int, const double *, int) = NULL;
    void *(*plan_1d)(int, void *, void *, int, unsigned) = NULL;
    void (*execute)(void *) = NULL;
    void *plan = NULL;
    if (!strcmp(kind, "blas")) {
        dlopen("libopenblas.so.0", RTLD_NOW | RTLD_GLOBAL);
        *(void **)&dot = dlsym(RTLD_DEFAULT, "cblas_ddot");
    } else if (!strcmp(kind, "transforms")) {
        dlopen("libfftw3.so.3", RTLD_NOW | RTLD_GLOBAL);
        *(void **)&plan_1d = dlsym(RTLD_DEFAULT, "fftw_plan_dft_1d");
        *(void **)&execute = dlsym(RTLD_DEFAULT, "fftw_execute");
        plan = plan_1d(8, x, y, -1, 64);
    }
    memset(&action, 0, sizeof action);
    action.sa_handler = tick;
    action.sa_flags = SA_RESTART;
    sigaction(SIGALRM, &action, NULL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    /* The ending threads must be interrupted, not the one that waits for them. */
    if (!strcmp(kind, "threads"))
        pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    for (; ticks < OFTEN; times++) {
        if (dot) {
            dot(16, x, 1, y, 1);
        } else if (plan) {
            execute(plan);
        } else if (!strcmp(kind, "work")) {
            gammachi_work(1, 8);
        } else if (!strcmp(kind, "threads")) {
            pthread_t thread;
            if (pthread_create(&thread, NULL, short_lived, NULL) != 0)
                return 7;
            pthread_join(thread, NULL);
        } else {
            gammachi_region_begin("dense");
            gammachi_region_end("dense");
        }
    }
    setitimer(ITIMER_REAL, &never, NULL);
    printf("%ld times\n", times);
    MPI_Finalize();
    return 0;
}
