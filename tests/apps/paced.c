/* Two regions of work and two kinds of communication per iteration, for predictions of the effect of changes: an
   exchange with the next and the previous rank after "smooth", a sum over all ranks after "solve".

       mpicc -O2 -I pmpi-shim/include tests/apps/paced.c -o paced
       paced ITERATIONS UNITS BYTES [RANK SPEED [REGION SPEED]]

   A unit of work takes about a microsecond. Region smooth has UNITS of them, more on higher ranks, solve half as many;
   every third iteration has twice as many. RANK (-1: none) and REGION (smooth, solve) compute SPEED times as fast.
   Prints the seconds of the loop. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gammachi.h"

static volatile double sink;

static void work(double units)
{
    double value = sink;
    for (long left = (long)(units * 400); left > 0; left--)
        value = value * 0.999999 + 1.5e-6;
    sink = value;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc < 4) return MPI_Abort(MPI_COMM_WORLD, 2);
    int iterations = atoi(argv[1]), bytes = atoi(argv[3]), rank, ranks;
    double units = atof(argv[2]), speed[2] = {1, 1};
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc > 5 && atoi(argv[4]) == rank) speed[0] = speed[1] = atof(argv[5]);
    if (argc > 7 && strcmp(argv[6], "smooth") == 0) speed[0] *= atof(argv[7]);
    if (argc > 7 && strcmp(argv[6], "solve") == 0) speed[1] *= atof(argv[7]);
    char *out = calloc(1, bytes + 1), *in = calloc(1, bytes + 1);
    int next = (rank + 1) % ranks, last = (rank + ranks - 1) % ranks;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime(), sum = 0, all = 0;
    for (int i = 0; i < iterations; i++) {
        double length = i % 3 == 2 ? 2 * units : units;
        gammachi_region_begin("smooth");
        work(length * (1 + 0.3 * rank / ranks) / speed[0]);
        gammachi_region_end("smooth");
        MPI_Sendrecv(out, bytes, MPI_CHAR, next, 1, in, bytes, MPI_CHAR, last, 1, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        gammachi_region_begin("solve");
        work(0.5 * length * (1.3 - 0.3 * rank / ranks) / speed[1]);
        gammachi_region_end("solve");
        sum += sink;
        MPI_Allreduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("seconds %f\n", MPI_Wtime() - begin);
    free(out);
    free(in);
    return MPI_Finalize();
}
