// Dense linear algebra on grids of ranks.
#include "job.h"

#include <math.h>

// Like HPL: a column of ranks factorises the panel and sends it along the rows; the rest is updated.
static void lu(const struct job *job) {
    enum { PANELS = 16 };
    int extents[2], mine[2];
    MPI_Comm grid = grid_of(job->p, 2, extents), rows, columns;
    MPI_Cart_sub(grid, (int[]){0, 1}, &rows);
    MPI_Cart_sub(grid, (int[]){1, 0}, &columns);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    double n = sqrt(job->bytes / 8);
    for (int panel = 0; panel < PANELS; panel++) {
        double left = 1.0 - (panel + 0.5) / PANELS, height = n * left / extents[0];
        int owner = panel % extents[1];
        if (mine[1] == owner) {
            for (int pivot = 0; pivot < 4; pivot++)
                allreduce(256, columns);
            compute(job, job->flops * left / PANELS / 50 / extents[0]);
        }
        MPI_Bcast(payload, count_of(8 * height * n / PANELS / 4), MPI_BYTE, owner, rows);
        MPI_Bcast(payload, count_of(8 * n * left / extents[1] * n / PANELS / 4), MPI_BYTE,
                  panel % extents[0], columns);
        compute(job, 3 * job->flops * left * left / PANELS / job->p);
    }
}

static void summa(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents), rows, columns;
    MPI_Cart_sub(grid, (int[]){0, 1}, &rows);
    MPI_Cart_sub(grid, (int[]){1, 0}, &columns);
    for (int step = 0; step < extents[1]; step++) {
        MPI_Bcast(payload, count_of(job->bytes / 2 / job->p), MPI_BYTE, step, rows);
        MPI_Bcast(payload, count_of(job->bytes / 2 / job->p), MPI_BYTE, step % extents[0], columns);
        compute(job, 4 * job->flops / job->p / extents[1]);
    }
}

static void cannon(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    for (int step = 0; step < extents[0]; step++)
        for (int d = 0; d < 2; d++) {
            int before, after;
            MPI_Cart_shift(grid, d, 1, &before, &after);
            exchange(job->bytes / 2 / job->p, before, after, grid);
            compute(job, 2 * job->flops / job->p / extents[0]);
        }
}

const struct entry factorisations[] = {{"lu", lu}, {"summa", summa}, {"cannon", cannon}, {0, 0}};
