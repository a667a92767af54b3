/* Jacobi steps of the Laplacian on a periodic 4-D lattice of l³ × (l · ranks) sites, split in the last
 * dimension, in region "lattice", with declared work, which only the program can know.
 *     mpicc -O3 -march=native -I pmpi-shim/include tests/apps/lattice/main.c -o lattice
 *     gammachi run -- mpirun -n 2 ./lattice 32 20
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#include "gammachi.h"

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int l = argc > 1 ? atoi(argv[1]) : 24, steps = argc > 2 ? atoi(argv[2]) : 20, rank, size;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    size_t slice = (size_t)l * l * l, sites = slice * (l + 2);
    double *a = calloc(sites, sizeof *a), *b = calloc(sites, sizeof *b);
    for (size_t i = 0; i < sites; i++) a[i] = (double)(i % 13);
    int up = (rank + 1) % size, down = (rank + size - 1) % size, count = (int)slice;
    gammachi_region_begin("lattice");
    for (int step = 0; step < steps; step++) {
        MPI_Request halo[4];
        MPI_Irecv(a, count, MPI_DOUBLE, down, 1, MPI_COMM_WORLD, &halo[0]);
        MPI_Irecv(a + slice * (l + 1), count, MPI_DOUBLE, up, 2, MPI_COMM_WORLD, &halo[1]);
        MPI_Isend(a + slice * l, count, MPI_DOUBLE, up, 1, MPI_COMM_WORLD, &halo[2]);
        MPI_Isend(a + slice, count, MPI_DOUBLE, down, 2, MPI_COMM_WORLD, &halo[3]);
        MPI_Waitall(4, halo, MPI_STATUSES_IGNORE);
        for (int t = 1; t <= l; t++)
            for (int z = 0; z < l; z++)
                for (int y = 0; y < l; y++) {
                    size_t row = slice * t + (size_t)l * (l * z + y);
                    const double *o = a + row, *after = o + slice, *before = o - slice;
                    const double *z1 = a + slice * t + (size_t)l * (l * ((z + 1) % l) + y);
                    const double *z2 = a + slice * t + (size_t)l * (l * ((z + l - 1) % l) + y);
                    const double *y1 = a + slice * t + (size_t)l * (l * z + (y + 1) % l);
                    const double *y2 = a + slice * t + (size_t)l * (l * z + (y + l - 1) % l);
                    double *to = b + row;
                    for (int x = 0; x < l; x++)
                        to[x] = 0.125 * (after[x] + before[x] + z1[x] + z2[x] + y1[x] + y2[x]
                                         + o[x + 1 < l ? x + 1 : 0] + o[x > 0 ? x - 1 : l - 1]);
                }
        /* Seven additions and a multiplication per site; a site is read once and written (8 + 16 bytes: a
         * store first reads its line). */
        gammachi_work(8.0 * slice * l, 24.0 * slice * l);
        double *other = a;
        a = b, b = other;
    }
    gammachi_region_end("lattice");
    if (rank == 0) printf("%g\n", a[slice]);
    MPI_Finalize();
    return 0;
}
