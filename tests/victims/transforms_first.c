/* Threads whose first event is an FFTW call. */
#include "victim.h"
#include <dlfcn.h>
#include <pthread.h>

enum { THREADS = 4, POINTS = 64, TIMES = 3000 };
static void (*execute_dft)(void *, void *, void *);
static void *plan;

static void *transform(void *unused)
{
    double x[2 * POINTS] = {1}, y[2 * POINTS];
    (void)unused;
    for (int i = 0; i < TIMES; i++)
        execute_dft(plan, x, y);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    double x[2 * POINTS], y[2 * POINTS];
    pthread_t threads[THREADS];

    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    if (!dlopen("libfftw3.so.3", RTLD_NOW | RTLD_GLOBAL))
        return 3;
    void *(*plan_1d)(int, void *, void *, int, unsigned);
    *(void **)&plan_1d = dlsym(RTLD_DEFAULT, "fftw_plan_dft_1d");
    *(void **)&execute_dft = dlsym(RTLD_DEFAULT, "fftw_execute_dft");
    plan = plan_1d(POINTS, x, y, -1, 64 | 2 /* any alignment */);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, transform, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
