// Programs that move all their data between all ranks.
#include "job.h"

#include <math.h>

static void transpose(const struct job *job) {
    int each = count_of(job->bytes / 8 / job->p / job->p);
    compute(job, job->flops / job->p);
    MPI_Alltoall(payload, each, MPI_BYTE, payload + PAYLOAD / 2, each, MPI_BYTE, MPI_COMM_WORLD);
    compute(job, job->flops / job->p);
}

// A three-dimensional FFT in pencils: transposes within rows and columns of a grid of ranks.
static void pencils(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents), rows, columns;
    MPI_Cart_sub(grid, (int[]){0, 1}, &rows);
    MPI_Cart_sub(grid, (int[]){1, 0}, &columns);
    for (int i = 0; i < job->iterations; i++) {
        int each = count_of(job->bytes / job->p / extents[1]);
        compute(job, job->flops / 2 / job->p);
        MPI_Alltoall(payload, each, MPI_BYTE, payload + PAYLOAD / 2, each, MPI_BYTE, rows);
        each = count_of(job->bytes / job->p / extents[0]);
        compute(job, job->flops / 2 / job->p);
        MPI_Alltoall(payload, each, MPI_BYTE, payload + PAYLOAD / 2, each, MPI_BYTE, columns);
    }
}

// All pairs of bodies: the bodies move around a ring of ranks.
static void ring(const struct job *job) {
    int next = (job->rank + 1) % job->p, previous = (job->rank + job->p - 1) % job->p;
    for (int step = 0; step < job->p; step++) {
        compute(job, 2 * job->flops / job->p / job->p);
        exchange(job->bytes / 64 / job->p, next, previous, MPI_COMM_WORLD);
    }
}

// A sort by splitters: one rank gathers samples of all ranks, then exchanges over a hypercube.
static void sample_sort(const struct job *job) {
    int samples = 8 * job->p;
    compute(job, job->flops / job->p);
    MPI_Gather(payload, count_of(samples), MPI_BYTE, payload + PAYLOAD / 2, count_of(samples), MPI_BYTE, 0,
               MPI_COMM_WORLD);
    if (job->rank == 0)
        compute(job, 20.0 * job->p * job->p * (1 + whole_log2(job->p)));
    MPI_Bcast(payload, count_of(samples), MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int bit = 1; bit < job->p; bit *= 2) {
        int peer = job->rank ^ bit;
        if (peer < job->p)
            exchange(job->bytes / 2 / job->p, peer, peer, MPI_COMM_WORLD);
        compute(job, job->flops / 20 / job->p);
    }
}

const struct entry transposes[] = {
    {"transpose", transpose}, {"pencils", pencils}, {"ring", ring}, {"sample-sort", sample_sort}, {0, 0}};
