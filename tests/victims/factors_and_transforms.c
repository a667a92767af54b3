/* Mostly dgetrf, then a transform distributed among the ranks (FFTW's MPI interface, which Debian builds for
 * Open MPI only; omitted with the argument "alone"), in regions "factors" and "transforms". */
#include "victim.h"

#include <dlfcn.h>
#include <stddef.h>

#include "gammachi.h"

static void *function(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);

    if (!found)
        printf("missing %s\n", name), exit(3);
    return found;
}

static void load(const char *library)
{
    if (!dlopen(library, RTLD_NOW | RTLD_GLOBAL))
        printf("missing %s\n", library), exit(3);
}

/* Three factorisations of order n, and some cheap calls of daxpy. */
static void factors(int n)
{
    void (*dgetrf)(int *, int *, double *, int *, int *, int *) = function("dgetrf_");
    void (*daxpy)(int *, double *, double *, int *, double *, int *) = function("daxpy_");
    double *a = malloc(sizeof *a * n * n), half = 0.5;
    int *pivots = malloc(sizeof *pivots * n), info, one = 1;

    for (int time = 0; time < 3; time++) {
        for (int i = 0; i < n * n; i++)
            a[i] = (double)rand() / RAND_MAX + (i % (n + 1) == 0) * n;
        gammachi_region_begin("factors");
        dgetrf(&n, &n, a, &n, pivots, &info);
        daxpy(&n, &half, a, &one, a + n, &one);
        gammachi_region_end("factors");
        if (info)
            exit(4);
    }
    free(a);
    free(pivots);
}

static void transforms(ptrdiff_t n)
{
    load("libfftw3.so.3");
    load("libfftw3_mpi.so.3");
    ((void (*)(void))function("fftw_mpi_init"))();
    ptrdiff_t planes, first;
    ptrdiff_t points = ((ptrdiff_t(*)(ptrdiff_t, ptrdiff_t, ptrdiff_t, MPI_Comm, ptrdiff_t *, ptrdiff_t *))
                            function("fftw_mpi_local_size_3d"))(n, n, n, MPI_COMM_WORLD, &planes, &first);
    double *data = ((void *(*)(size_t))function("fftw_malloc"))(sizeof(double) * 2 * points);
    void *plan = ((void *(*)(ptrdiff_t, ptrdiff_t, ptrdiff_t, void *, void *, MPI_Comm, int, unsigned))
                      function("fftw_mpi_plan_dft_3d"))(n, n, n, data, data, MPI_COMM_WORLD, -1, 64);
    memset(data, 0, sizeof(double) * 2 * points);
    gammachi_region_begin("transforms");
    for (int time = 0; time < 4; time++)
        ((void (*)(void *))function("fftw_execute"))(plan);
    gammachi_region_end("transforms");
    ((void (*)(void *))function("fftw_destroy_plan"))(plan);
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    load("libopenblas.so.0");
    factors(300);
    if (argc < 2)
        transforms(32);
    MPI_Finalize();
    return 0;
}
