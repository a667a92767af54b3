/* The example that the workflows of this folder measure: Jacobi iterations on a square, divided by rows. Replace it by
 * your program. Argument: iterations. */
#include "gammachi.h"
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { N = 1024 };

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    int rank, ranks, iterations = argc > 1 ? atoi(argv[1]) : 2000;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int rows = N / ranks, up = rank > 0 ? rank - 1 : MPI_PROC_NULL, down = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL;
    double *old = calloc((rows + 2) * N, sizeof *old), *new = calloc((rows + 2) * N, sizeof *new), all = 0;
    for (int j = 0; j < N; j++)
        old[j] = new[j] = rank == 0;
    for (int turn = 0; turn < iterations; turn++) {
        MPI_Sendrecv(old + N, N, MPI_DOUBLE, up, 0, old + (rows + 1) * N, N, MPI_DOUBLE, down, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        MPI_Sendrecv(old + rows * N, N, MPI_DOUBLE, down, 1, old, N, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        double change = 0;
        gammachi_region_begin("smooth");
        for (int i = 1; i <= rows; i++)
            for (int j = 1; j < N - 1; j++) {
                new[i * N + j] = (old[(i - 1) * N + j] + old[(i + 1) * N + j] + old[i * N + j - 1] + old[i * N + j + 1]) / 4;
                change += (new[i * N + j] - old[i * N + j]) * (new[i * N + j] - old[i * N + j]);
            }
        gammachi_region_end("smooth");
        MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        double *swap = old;
        old = new;
        new = swap;
    }
    if (rank == 0)
        printf("change %g\n", all);
    MPI_Finalize();
    return 0;
}
