// Programs with unevenly distributed computation.
#include "job.h"

#include <math.h>

static void random_load(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        double u = uniform((unsigned)job->rank, 7);
        compute(job, job->flops / job->p * (0.85 - 0.15 * log(1 - 0.999 * u)));
        allreduce(8, MPI_COMM_WORLD);
    }
}

static void triangular(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / job->p * (2.0 * job->rank + 1) / job->p);
        allreduce(1024, MPI_COMM_WORLD);
    }
}

// Indivisible blocks: some ranks have one more than others.
static void blocks(const struct job *job) {
    int blocks = 3000, mine = blocks / job->p + (job->rank < blocks % job->p);
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / blocks * mine);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// A refined mesh: the smaller the parts, the more uneven they are.
static void growing(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    for (int i = 0; i < 2; i++) {
        int before, after;
        double u = uniform((unsigned)job->rank, 11);
        compute(job, job->flops / 2 / job->p * (1 + 0.08 * whole_log2(job->p) * (u - 0.5)));
        MPI_Cart_shift(grid, 0, 1, &before, &after);
        exchange(2048, after, before, grid);
        MPI_Cart_shift(grid, 1, 1, &before, &after);
        exchange(2048, after, before, grid);
    }
    allreduce(8, grid);
}

// The operating system occasionally takes a core away; every step ends in a reduction.
static void system_noise(const struct job *job) {
    for (int i = 0; i < 4; i++) {
        compute(job, job->flops / 4 / job->p);
        if (uniform((unsigned)job->rank, 100u + (unsigned)i) < 0.02)
            compute(job, 4e6 * uniform((unsigned)job->rank, 200u + (unsigned)i));
        allreduce(8, MPI_COMM_WORLD);
    }
}

// Computation becomes faster when the data of a rank fit into the cache.
static void cache(const struct job *job) {
    double each = job->bytes / job->p, fits = each / (each + 1e6);
    for (int i = 0; i < 2; i++) {
        compute(job, job->flops / 2 / job->p * (1 + 0.5 * fits));
        exchange(8192, (job->rank + 1) % job->p, (job->rank + job->p - 1) % job->p, MPI_COMM_WORLD);
    }
}

const struct entry uneven[] = {{"random-load", random_load},   {"triangular", triangular},
                               {"blocks", blocks},             {"growing-imbalance", growing},
                               {"system-noise", system_noise}, {"cache", cache},
                               {0, 0}};
