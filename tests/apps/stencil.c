/* Jacobi's iteration for Laplace's equation on a square, its rows divided among the ranks: two exchanges of a
   row with the neighbours and one residual of all ranks per iteration.

   Usage: stencil N ITERATIONS [SLOW_RANK TIMES]
   SLOW_RANK does the work of its rows TIMES times. Prints the residual, and the seconds of the loop. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, ranks;

static void exchange(double *grid, int n, int rows)
{
    int above = rank == 0 ? MPI_PROC_NULL : rank - 1;
    int below = rank == ranks - 1 ? MPI_PROC_NULL : rank + 1;
    MPI_Sendrecv(grid + n, n, MPI_DOUBLE, above, 1, grid + (rows + 1) * n, n, MPI_DOUBLE, below, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Sendrecv(grid + rows * n, n, MPI_DOUBLE, below, 2, grid, n, MPI_DOUBLE, above, 2, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}

static double smooth(const double *from, double *to, int n, int rows)
{
    double change = 0;
    for (int row = 1; row <= rows; row++)
        for (int column = 1; column < n - 1; column++) {
            const double *at = from + row * n + column;
            double value = 0.25 * (at[-1] + at[1] + at[-n] + at[n]);
            change += (value - *at) * (value - *at);
            to[row * n + column] = value;
        }
    return change;
}

static double residual(double change)
{
    double sum = 0;
    MPI_Allreduce(&change, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3) {
        fprintf(stderr, "usage: stencil N ITERATIONS [SLOW_RANK TIMES]\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int n = atoi(argv[1]), iterations = atoi(argv[2]);
    int times = argc > 4 && atoi(argv[3]) == rank ? atoi(argv[4]) : 1;
    int rows = (n - 2) / ranks;
    size_t cells = (size_t)(rows + 2) * n;
    double *grid = calloc(cells, sizeof *grid), *next = calloc(cells, sizeof *next);
    for (int row = 0; row < rows + 2; row++)
        grid[(size_t)row * n] = next[(size_t)row * n] = 1;
    double left = 0;
    MPI_Barrier(MPI_COMM_WORLD);
    double begin = MPI_Wtime();
    for (int iteration = 0; iteration < iterations; iteration++) {
        exchange(grid, n, rows);
        double change = 0;
        for (int again = 0; again < times; again++)
            change = smooth(grid, next, n, rows);
        left = residual(change);
        double *other = grid;
        grid = next;
        next = other;
    }
    if (rank == 0)
        printf("residual %.6e\nseconds %.6f\n", left, MPI_Wtime() - begin);
    free(grid);
    free(next);
    MPI_Finalize();
    return 0;
}
