// Kinds written after the intervals of what-if answers had been chosen, to check these.
#include "job.h"

#include <math.h>

// A ring on which every rank passes blocks on, with messages of one size and a small allreduce.
static void one_size(const struct job *job) {
    int right = (job->rank + 1) % job->p, left = (job->rank + job->p - 1) % job->p;
    for (int i = 0; i < 8; i++) {
        exchange(8000, right, left, MPI_COMM_WORLD);
        compute(job, job->flops / job->p / 80);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// Recursive doubling by hand: pairs exchange twice as much in each step.
static void butterfly(const struct job *job) {
    for (int i = 0; i < 2; i++) {
        double bytes = job->bytes / job->p / job->p;
        for (int distance = 1; distance < job->p; distance *= 2, bytes *= 2) {
            int peer = job->rank ^ distance;
            if (peer < job->p)
                exchange(bytes, peer, peer, MPI_COMM_WORLD);
        }
        compute(job, job->flops / job->p / 2);
    }
}

// Neighbours on a line without wrap-around, whose messages travel behind computation.
static void overlap(const struct job *job) {
    int bytes = count_of(8 * sqrt(job->bytes / 8));
    int peers[2] = {job->rank ? job->rank - 1 : MPI_PROC_NULL, job->rank + 1 < job->p ? job->rank + 1 : MPI_PROC_NULL};
    for (int i = 0; i < 4; i++) {
        MPI_Request requests[4];
        for (int side = 0; side < 2; side++) {
            MPI_Irecv(payload, bytes, MPI_BYTE, peers[side], side, MPI_COMM_WORLD, &requests[side]);
            MPI_Isend(payload, bytes, MPI_BYTE, peers[side], 1 - side, MPI_COMM_WORLD, &requests[2 + side]);
        }
        compute(job, 0.9 * job->flops / job->p / 4);
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        compute(job, 0.1 * job->flops / job->p / 4);
    }
}

// Partners and sizes without a pattern.
static void irregular(const struct job *job) {
    for (unsigned i = 0; i < 12; i++) {
        int distance = 1 + (int)(uniform(i, 7) * (job->p - 1));
        double bytes = pow(2, 3 + 17 * uniform(i, 8));
        exchange(bytes, (job->rank + distance) % job->p, (job->rank + job->p - distance) % job->p, MPI_COMM_WORLD);
        compute(job, job->flops / job->p / 12 * (0.5 + uniform((unsigned)job->rank, i)));
    }
}

// Rows and columns in turn: broadcasts along rows, reductions along columns.
static void rows_and_columns(const struct job *job) {
    int extents[2], mine[2];
    MPI_Comm grid = grid_of(job->p, 2, extents), row, column;
    MPI_Cart_coords(grid, job->rank, 2, mine);
    MPI_Comm_split(grid, mine[0], mine[1], &row);
    MPI_Comm_split(grid, mine[1], mine[0], &column);
    int bytes = count_of(job->bytes / job->p / 8);
    for (int i = 0; i < 4; i++) {
        MPI_Bcast(payload, bytes, MPI_BYTE, i % extents[1], row);
        compute(job, job->flops / job->p / 4);
        allreduce(bytes / 4.0, column);
    }
}

// Particles move between uneven ranks, and one rank collects results.
static void particles(const struct job *job) {
    for (unsigned i = 0; i < 3; i++) {
        compute(job, job->flops / job->p / 3 * (0.6 + 0.8 * uniform((unsigned)job->rank, 1)));
        for (int side = -1; side <= 1; side += 2)
            exchange(job->bytes / job->p / 20, (job->rank + side + job->p) % job->p, (job->rank - side + job->p) % job->p,
                     MPI_COMM_WORLD);
        MPI_Gather(payload, 256, MPI_BYTE, payload + PAYLOAD / 2, 256, MPI_BYTE, 0, MPI_COMM_WORLD);
        if (job->rank == 0)
            compute(job, job->flops / 100);
        MPI_Bcast(payload, 64, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

// Pairs of ranks answer each other's small and large questions.
static void ping_pong(const struct job *job) {
    int peer = job->rank ^ 1;
    if (peer < job->p)
        for (int i = 0; i < 10; i++)
            for (int bytes = 64; bytes <= 1 << 20; bytes *= 128) {
                if (job->rank & 1) {
                    MPI_Recv(payload, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                    MPI_Send(payload, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
                } else {
                    MPI_Send(payload, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
                    MPI_Recv(payload, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                }
            }
    compute(job, job->flops / job->p / 10);
}

// A spectral step: personalised exchange in halves of the machine, then a global norm.
static void halves(const struct job *job) {
    MPI_Comm half;
    MPI_Comm_split(MPI_COMM_WORLD, job->rank * 2 / job->p, job->rank, &half);
    int p;
    MPI_Comm_size(half, &p);
    for (int i = 0; i < 2; i++) {
        compute(job, job->flops / job->p / 2);
        int bytes = count_of(job->bytes / job->p / p);
        MPI_Alltoall(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, half);
        allreduce(16, MPI_COMM_WORLD);
    }
}

const struct entry later[] = {{"one-size", one_size},     {"butterfly", butterfly},
                              {"overlap", overlap},       {"irregular", irregular},
                              {"rows-and-columns", rows_and_columns}, {"particles", particles},
                              {"ping-pong", ping_pong},   {"halves", halves},
                              {0}};
