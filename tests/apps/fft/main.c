/* A forward transform of n × n × n complex points with FFTW's MPI interface, repeated in region "fft":
 *     mpicc -I pmpi-shim/include tests/apps/fft/main.c -lfftw3_mpi -lfftw3 -lm -o fft
 *     gammachi run --flops -- mpirun -n 2 ./fft 256 3
 */
#include <fftw3-mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "gammachi.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    fftw_mpi_init();
    ptrdiff_t n = argc > 1 ? atoi(argv[1]) : 128, planes, first;
    int times = argc > 2 ? atoi(argv[2]) : 5, rank;
    ptrdiff_t points = fftw_mpi_local_size_3d(n, n, n, MPI_COMM_WORLD, &planes, &first);
    fftw_complex *data = fftw_alloc_complex((size_t)points);
    fftw_plan plan =
        fftw_mpi_plan_dft_3d(n, n, n, data, data, MPI_COMM_WORLD, FFTW_FORWARD, FFTW_ESTIMATE);
    for (ptrdiff_t i = 0; i < points; i++) data[i][0] = (double)(i % 7), data[i][1] = 0;
    fftw_execute(plan);
    MPI_Barrier(MPI_COMM_WORLD);
    gammachi_region_begin("fft");
    double begin = MPI_Wtime();
    for (int i = 0; i < times; i++) fftw_execute(plan);
    double each = (MPI_Wtime() - begin) / times;
    gammachi_region_end("fft");
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("%.3f s per transform\n", each);
    fftw_destroy_plan(plan);
    fftw_free(data);
    MPI_Finalize();
    return 0;
}
