// Kinds that were put aside before predictions from the structure of runs were tuned: they only judge them.
#include "job.h"

#include <math.h>

// Conjugate gradients on a grid: a halo, a product of a sparse matrix, and two sums a step.
static void krylov(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    double side = sqrt(job->bytes / 8);
    for (int i = 0; i < 6; i++) {
        for (int dimension = 0; dimension < 2; dimension++) {
            int below, above;
            MPI_Cart_shift(grid, dimension, 1, &below, &above);
            exchange(8 * side / extents[1 - dimension], above, below, grid);
            exchange(8 * side / extents[1 - dimension], below, above, grid);
        }
        compute(job, 0.8 * job->flops / job->p / 6);
        allreduce(8, grid);
        compute(job, 0.2 * job->flops / job->p / 6);
        allreduce(8, grid);
    }
}

// Faces of boxes with non-blocking messages, and a time step that all agree on.
static void explicit_step(const struct job *job) {
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    int bytes = count_of(8 * pow(job->bytes / 8 / job->p, 2.0 / 3));
    for (int i = 0; i < 4; i++) {
        MPI_Request requests[12];
        for (int dimension = 0; dimension < 3; dimension++) {
            int peers[2];
            MPI_Cart_shift(grid, dimension, 1, &peers[0], &peers[1]);
            for (int side = 0; side < 2; side++) {
                int at = 4 * dimension + 2 * side;
                MPI_Irecv(payload, bytes, MPI_BYTE, peers[side], 2 * dimension + side, grid, &requests[at]);
                MPI_Isend(payload, bytes, MPI_BYTE, peers[side], 2 * dimension + 1 - side, grid, &requests[at + 1]);
            }
        }
        MPI_Waitall(12, requests, MPI_STATUSES_IGNORE);
        compute(job, job->flops / job->p / 4);
        allreduce(8, grid);
    }
}

// A two-dimensional transform: two transposes a step.
static void transform(const struct job *job) {
    for (int i = 0; i < 2; i++) {
        for (int half = 0; half < 2; half++) {
            compute(job, job->flops / job->p / 4);
            int bytes = count_of(job->bytes / job->p / job->p / 2);
            MPI_Alltoall(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, MPI_COMM_WORLD);
        }
        compute(job, job->flops / job->p / 50);
    }
}

// A bitonic sort: log² p exchanges of whole blocks between pairs.
static void bitonic(const struct job *job) {
    int stages = whole_log2(job->p);
    compute(job, 0.5 * job->flops / job->p);
    for (int stage = 1; stage <= stages; stage++)
        for (int step = stage - 1; step >= 0; step--) {
            int peer = job->rank ^ (1 << step);
            if (peer < job->p)
                exchange(job->bytes / job->p / 4, peer, peer, MPI_COMM_WORLD);
            compute(job, 0.02 * job->flops / job->p);
        }
}

// All pairs of bodies: blocks go round, and the last step adds up energies.
static void bodies(const struct job *job) {
    int right = (job->rank + 1) % job->p, left = (job->rank + job->p - 1) % job->p;
    for (int i = 0; i < job->p; i++) {
        compute(job, job->flops / job->p / job->p);
        exchange(job->bytes / 64 / job->p, right, left, MPI_COMM_WORLD);
    }
    allreduce(24, MPI_COMM_WORLD);
}

// Centres of clusters: each rank assigns its points, sums of all centres are added.
static void clusters(const struct job *job) {
    for (int i = 0; i < 5; i++) {
        compute(job, job->flops / job->p / 5);
        allreduce(40000, MPI_COMM_WORLD);
        compute(job, 2e4);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// A right-looking Cholesky factorisation on a grid with shrinking work.
static void cholesky(const struct job *job) {
    int extents[2], mine[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents), row, column;
    MPI_Cart_coords(grid, job->rank, 2, mine);
    row = part_of(grid, rows);
    column = part_of(grid, columns);
    double n = sqrt(job->bytes / 8);
    int panels = 24;
    for (int k = 0; k < panels; k++) {
        double left = 1 - (double)k / panels;
        if (mine[1] == k % extents[1])
            compute(job, 0.1 * left * job->flops / panels / extents[0]);
        MPI_Bcast(payload, count_of(8 * left * n * n / panels / extents[0]), MPI_BYTE, k % extents[1], row);
        MPI_Bcast(payload, count_of(8 * left * n * n / panels / extents[1]), MPI_BYTE, k % extents[0], column);
        compute(job, 3 * left * left * job->flops / panels / job->p);
    }
}

// Alternating directions: lines are solved from one end of a row of ranks to the other, in blocks.
static void directions(const struct job *job) {
    int extents[2], mine[2], blocks = 8;
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    for (int dimension = 0; dimension < 2; dimension++) {
        int below, above;
        MPI_Cart_shift(grid, dimension, 1, &below, &above);
        int first = mine[dimension] == 0, last = mine[dimension] == extents[dimension] - 1;
        int bytes = count_of(8 * sqrt(job->bytes / 8) / extents[1 - dimension] / blocks);
        for (int block = 0; block < blocks; block++) {
            if (!first)
                MPI_Recv(payload, bytes, MPI_BYTE, below, 0, grid, MPI_STATUS_IGNORE);
            compute(job, job->flops / job->p / blocks / 2);
            if (!last)
                MPI_Send(payload, bytes, MPI_BYTE, above, 0, grid);
        }
    }
}

// A search through a graph: levels with a growing and shrinking border that all exchange.
static void levels(const struct job *job) {
    static const double border[] = {0.001, 0.05, 0.6, 0.3, 0.04};
    for (int level = 0; level < 5; level++) {
        compute(job, border[level] * job->flops / job->p);
        int bytes = count_of(border[level] * job->bytes / job->p / job->p);
        MPI_Alltoall(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, MPI_COMM_WORLD);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// Steps on a line of ranks, after which one rank collects a part of the field.
static void collected(const struct job *job) {
    int below = job->rank ? job->rank - 1 : MPI_PROC_NULL, above = job->rank + 1 < job->p ? job->rank + 1 : MPI_PROC_NULL;
    for (int i = 0; i < 3; i++) {
        for (int step = 0; step < 4; step++) {
            exchange(8 * sqrt(job->bytes / 8), above, below, MPI_COMM_WORLD);
            exchange(8 * sqrt(job->bytes / 8), below, above, MPI_COMM_WORLD);
            compute(job, job->flops / job->p / 12);
        }
        int bytes = count_of(job->bytes / job->p / 256);
        MPI_Gather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

// Two models on halves of the machine, one with twice the work, that meet after every step.
static void coupled(const struct job *job) {
    int upper = job->rank >= (job->p + 1) / 2, size;
    MPI_Comm half;
    half = split_by(upper, job->rank);
    MPI_Comm_size(half, &size);
    for (int i = 0; i < 4; i++) {
        for (int step = 0; step < 2; step++) {
            compute(job, (upper ? 1 : 2) * job->flops / job->p / 12);
            allreduce(64, half);
        }
        int peer = upper ? job->rank - (job->p + 1) / 2 : job->rank + (job->p + 1) / 2;
        if (peer < job->p)
            exchange(job->bytes / job->p / 8, peer, peer, MPI_COMM_WORLD);
    }
}

// Refined patches: uneven work that changes from step to step, and a table that everyone has.
static void refined(const struct job *job) {
    int right = (job->rank + 1) % job->p, left = (job->rank + job->p - 1) % job->p;
    for (unsigned i = 0; i < 4; i++) {
        compute(job, job->flops / job->p / 4 * (0.7 + 0.6 * uniform((unsigned)job->rank, 11 + i)));
        exchange(job->bytes / job->p / 32, right, left, MPI_COMM_WORLD);
        exchange(job->bytes / job->p / 32, left, right, MPI_COMM_WORLD);
        MPI_Allgather(payload, 64, MPI_BYTE, payload + PAYLOAD / 2, 64, MPI_BYTE, MPI_COMM_WORLD);
    }
}

const struct entry apart[] = {{"krylov", krylov}, {"explicit-step", explicit_step},
                              {"transform", transform}, {"bitonic", bitonic}, {"bodies", bodies},
                              {"clusters", clusters}, {"cholesky", cholesky}, {"directions", directions},
                              {"levels", levels}, {"collected", collected}, {"coupled", coupled},
                              {"refined", refined}, {0}};
