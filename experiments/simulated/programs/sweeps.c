// Programs in which ranks wait for the results of others.
#include "job.h"

#include <math.h>

enum { CHUNKS = 16 };

static void pipeline(const struct job *job) {
    int previous = job->rank ? job->rank - 1 : MPI_PROC_NULL;
    int next = job->rank + 1 < job->p ? job->rank + 1 : MPI_PROC_NULL;
    for (int chunk = 0; chunk < CHUNKS; chunk++) {
        MPI_Recv(payload, 4096, MPI_BYTE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        compute(job, job->flops / job->p / CHUNKS);
        MPI_Send(payload, 4096, MPI_BYTE, next, 0, MPI_COMM_WORLD);
    }
}

// Sweeps from the four corners of a grid of ranks, in blocks along the third dimension.
static void wavefront(const struct job *job) {
    int extents[2], mine[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    int bytes = count_of(sqrt(job->bytes / job->p));
    for (int corner = 0; corner < 4; corner++) {
        int step[2] = {corner & 1 ? 1 : -1, corner & 2 ? 1 : -1}, from[2], to[2];
        for (int d = 0; d < 2; d++) {
            int there[2] = {mine[0], mine[1]};
            there[d] = mine[d] - step[d];
            from[d] = to[d] = MPI_PROC_NULL;
            if (there[d] >= 0 && there[d] < extents[d])
                MPI_Cart_rank(grid, there, &from[d]);
            there[d] = mine[d] + step[d];
            if (there[d] >= 0 && there[d] < extents[d])
                MPI_Cart_rank(grid, there, &to[d]);
        }
        for (int block = 0; block < 8; block++) {
            for (int d = 0; d < 2; d++)
                MPI_Recv(payload, bytes, MPI_BYTE, from[d], d, grid, MPI_STATUS_IGNORE);
            compute(job, job->flops / 32 / job->p);
            for (int d = 0; d < 2; d++)
                MPI_Send(payload, bytes, MPI_BYTE, to[d], d, grid);
        }
    }
}

// A factorisation along a tree: on each level, two triangles are merged.
static void tree(const struct job *job) {
    compute(job, job->flops / job->p);
    for (int bit = 1; bit < job->p; bit *= 2) {
        if (job->rank & bit) {
            MPI_Send(payload, 32768, MPI_BYTE, job->rank - bit, 0, MPI_COMM_WORLD);
            break;
        }
        if (job->rank + bit < job->p) {
            MPI_Recv(payload, 32768, MPI_BYTE, job->rank + bit, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(job, 2e5);
        }
    }
    MPI_Bcast(payload, 32768, MPI_BYTE, 0, MPI_COMM_WORLD);
}

const struct entry sweeps[] = {{"pipeline", pipeline}, {"wavefront", wavefront}, {"tree", tree}, {0, 0}};
