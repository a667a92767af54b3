/* Calls functions of libraries only where these are present: without BLAS and FFTW it takes its fallback. */
#include "victim.h"

extern void dgemm_(void) __attribute__((weak));
extern void cblas_dgemm(void) __attribute__((weak));
extern void fftw_execute(void *) __attribute__((weak));
extern int MPI_Comm_rank(MPI_Comm, int *) __attribute__((weak));

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (dgemm_)
        dgemm_();
    if (cblas_dgemm)
        cblas_dgemm();
    if (fftw_execute)
        fftw_execute(NULL);
    printf("dgemm_ %d, cblas_dgemm %d, fftw_execute %d, MPI_Comm_rank %d\n", !!dgemm_, !!cblas_dgemm, !!fftw_execute,
           !!MPI_Comm_rank);
    MPI_Finalize();
    return 0;
}
