/* The dot products of an iterative solver, with many calls of MPI_Allreduce. Each iteration multiplies two vectors of
   1,000 doubles and sums over the ranks with MPI_Allreduce of one double. The argument is the number of iterations.
   Prints the sum, which is known, and the seconds of rank 0's loop. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { LENGTH = 1000 };

int main(int argc, char **argv)
{
    static double x[LENGTH], y[LENGTH];
    long iterations = argc > 1 ? atol(argv[1]) : 1000000;
    int rank, ranks;
    double total = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < LENGTH; i++) {
        x[i] = 1;
        y[i] = 0.5;
    }
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (long k = 0; k < iterations; k++) {
        double own = 0, sum;
        for (int i = 0; i < LENGTH; i++)
            own += x[i] * y[i];
        MPI_Allreduce(&own, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        total += sum;
        x[k % LENGTH] = sum / (0.5 * LENGTH * ranks); /* 1: the next product needs this one */
    }
    double seconds = MPI_Wtime() - begin;
    if (rank == 0)
        printf("total %.1f of %.1f seconds %.6f\n", total, 0.5 * LENGTH * ranks * iterations, seconds);
    MPI_Finalize();
    return total == 0.5 * LENGTH * ranks * iterations ? 0 : 1;
}
