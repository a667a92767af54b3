// Programs that exchange the faces of blocks with neighbours.
#include "job.h"

#include <math.h>

static void faces(const struct job *job, MPI_Comm grid, int dimensions, double bytes) {
    (void)job;
    for (int d = 0; d < dimensions; d++) {
        int before, after;
        MPI_Cart_shift(grid, d, 1, &before, &after);
        exchange(bytes, after, before, grid);
        exchange(bytes, before, after, grid);
    }
}

static void halo(const struct job *job, int dimensions, int iterations, int dots) {
    int extents[3];
    MPI_Comm grid = grid_of(job->p, dimensions, extents);
    double cells = job->bytes / 8;
    // A face of a block of cells/p cells in this number of dimensions.
    double face = dimensions == 1 ? 8 * sqrt(job->bytes / 8)
                                  : 8 * pow(cells / job->p, 1.0 - 1.0 / dimensions);
    for (int i = 0; i < iterations; i++) {
        faces(job, grid, dimensions, face);
        compute(job, job->flops / job->p / iterations);
        for (int dot = 0; dot < dots; dot++)
            allreduce(8, grid);
    }
}

static void halo1d(const struct job *job) { halo(job, 1, 2, 0); }
static void halo2d(const struct job *job) { halo(job, 2, 2, 0); }
static void halo3d(const struct job *job) { halo(job, 3, 2, 0); }
static void conjugate_gradients(const struct job *job) { halo(job, 3, 2, 2); }

// Exchanges with eight neighbours on a grid at once, as in particle codes.
static void neighbours8(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    int mine[2];
    MPI_Cart_coords(grid, job->rank, 2, mine);
    double face = 8 * sqrt(job->bytes / 8 / job->p);
    for (int i = 0; i < 2; i++) {
        MPI_Request requests[16];
        int n = 0;
        for (int dx = -1; dx <= 1; dx++)
            for (int dy = -1; dy <= 1; dy++) {
                if (!dx && !dy)
                    continue;
                int there[2] = {(mine[0] + dx + extents[0]) % extents[0],
                                (mine[1] + dy + extents[1]) % extents[1]};
                int peer;
                MPI_Cart_rank(grid, there, &peer);
                int bytes = count_of(dx && dy ? 64 : face);
                MPI_Irecv(payload, bytes, MPI_BYTE, peer, 3 * (1 - dx) + 1 - dy, grid, &requests[n++]);
                MPI_Isend(payload, bytes, MPI_BYTE, peer, 3 * (1 + dx) + 1 + dy, grid, &requests[n++]);
            }
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        compute(job, job->flops / job->p / 2);
    }
}

// V-cycles: each level has an eighth of the cells; a reduction solves the coarsest.
static void multigrid(const struct job *job) {
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    for (int i = 0; i < 1; i++)
        for (int down = 1; down >= 0; down--) {
            double cells = job->bytes / 8;
            for (int level = 0; cells > 512; level++, cells /= 8) {
                faces(job, grid, 3, 8 * pow(cells / job->p, 2.0 / 3));
                compute(job, job->flops / 2 / pow(8, level) / job->p);
            }
            if (down)
                allreduce(512, grid);
        }
}

const struct entry halos[] = {{"halo-1d", halo1d},
                              {"halo-2d", halo2d},
                              {"halo-3d", halo3d},
                              {"conjugate-gradients", conjugate_gradients},
                              {"eight-neighbours", neighbours8},
                              {"multigrid", multigrid},
                              {0, 0}};
