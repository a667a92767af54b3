// Kinds that were put aside, as those of apart.c, before predictions were tuned a second time: they only judge them.
#include "job.h"

#include <math.h>
#include <stdlib.h>

// Generalised minimal residuals: each step is made orthogonal to all before it, one sum for each.
static void gmres(const struct job *job) {
    int above = (job->rank + 1) % job->p, below = (job->rank + job->p - 1) % job->p;
    double line = 8 * sqrt(job->bytes / 8);
    for (int step = 0; step < 8; step++) {
        exchange(line, above, below, MPI_COMM_WORLD);
        exchange(line, below, above, MPI_COMM_WORLD);
        compute(job, 0.06 * job->flops / job->p);
        for (int before = 0; before <= step; before++) {
            compute(job, 0.01 * job->flops / job->p);
            allreduce(8, MPI_COMM_WORLD);
        }
    }
}

// Particles in cells: those that leave a box go to its six neighbours, fields are added, boxes are unevenly full.
static void cells(const struct job *job) {
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    double face = pow(job->bytes / 8 / job->p, 2.0 / 3);
    for (unsigned i = 0; i < 4; i++) {
        compute(job, job->flops / job->p / 5 * (0.9 + 0.2 * uniform((unsigned)job->rank, 40)));
        for (int dimension = 0; dimension < 3; dimension++) {
            int below, above;
            MPI_Cart_shift(grid, dimension, 1, &below, &above);
            exchange(8 * face, above, below, grid);
            exchange(8 * face, below, above, grid);
        }
        allreduce(4096, grid);
        compute(job, job->flops / job->p / 20);
    }
}

// Spectral weather: coefficients from one rank, then two transposes and a halo in each step.
static void spectral(const struct job *job) {
    int above = (job->rank + 1) % job->p, below = (job->rank + job->p - 1) % job->p;
    MPI_Bcast(payload, count_of(job->bytes / 512), MPI_BYTE, 0, MPI_COMM_WORLD);
    for (int step = 0; step < 3; step++) {
        for (int half = 0; half < 2; half++) {
            compute(job, job->flops / job->p / 8);
            int bytes = count_of(job->bytes / 4 / job->p / job->p);
            MPI_Alltoall(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, MPI_COMM_WORLD);
        }
        exchange(job->bytes / 4 / job->p / 16, above, below, MPI_COMM_WORLD);
        compute(job, job->flops / job->p / 12);
    }
}

// A histogram of all ranks' data, from which one rank computes limits that all get.
static void histogram(const struct job *job) {
    for (int round = 0; round < 4; round++) {
        compute(job, job->flops / job->p / 4);
        allreduce(65536, MPI_COMM_WORLD);
        if (job->rank == 0)
            compute(job, 0.0005 * job->flops);
        MPI_Bcast(payload, 1024, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

// All 26 neighbours of a box: faces, edges and corners.
static void neighbours_26(const struct job *job) {
    int extents[3], mine[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    MPI_Cart_coords(grid, job->rank, 3, mine);
    double edge = cbrt(job->bytes / 8 / job->p);
    for (int step = 0; step < 3; step++) {
        MPI_Request requests[52];
        int n = 0;
        for (int at = 0; at < 27; at++) {
            int offset[3] = {at / 9 - 1, at / 3 % 3 - 1, at % 3 - 1}, to[3], from[3], peers[2];
            int order = abs(offset[0]) + abs(offset[1]) + abs(offset[2]);
            if (order == 0)
                continue;
            for (int i = 0; i < 3; i++) {
                to[i] = mine[i] + offset[i];
                from[i] = mine[i] - offset[i];
            }
            MPI_Cart_rank(grid, to, &peers[0]);
            MPI_Cart_rank(grid, from, &peers[1]);
            int bytes = count_of(8 * pow(edge, 3 - order));
            MPI_Irecv(payload, bytes, MPI_BYTE, peers[1], at, grid, &requests[n++]);
            MPI_Isend(payload, bytes, MPI_BYTE, peers[0], at, grid, &requests[n++]);
        }
        compute(job, 0.7 * job->flops / job->p / 3);
        MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
        compute(job, 0.3 * job->flops / job->p / 3);
    }
}

// Neutron transport: sweeps from the four corners of a grid of columns, in blocks of planes.
static void octants(const struct job *job) {
    int extents[2], mine[2], blocks = 6;
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    double side = cbrt(job->bytes / 8);
    for (int corner = 0; corner < 4; corner++) {
        int neighbours[2][2], first[2], last[2], bytes[2];
        for (int d = 0; d < 2; d++) {
            int forward = corner >> d & 1, below, above;
            MPI_Cart_shift(grid, d, 1, &below, &above);
            neighbours[d][0] = forward ? above : below;
            neighbours[d][1] = forward ? below : above;
            int at = forward ? extents[d] - 1 - mine[d] : mine[d];
            first[d] = at == 0;
            last[d] = at == extents[d] - 1;
            bytes[d] = count_of(8 * side / extents[1 - d] * side / blocks);
        }
        for (int block = 0; block < blocks; block++) {
            for (int d = 0; d < 2; d++)
                if (!first[d])
                    MPI_Recv(payload, bytes[d], MPI_BYTE, neighbours[d][0], corner, grid, MPI_STATUS_IGNORE);
            compute(job, job->flops / job->p / blocks / 4);
            for (int d = 0; d < 2; d++)
                if (!last[d])
                    MPI_Send(payload, bytes[d], MPI_BYTE, neighbours[d][1], corner, grid);
        }
    }
}

// Members of an ensemble on up to four ranks each, whose mean all compute.
static void ensembles(const struct job *job) {
    int size;
    MPI_Comm member;
    member = split_by(job->rank / 4, job->rank);
    MPI_Comm_size(member, &size);
    for (int step = 0; step < 3; step++) {
        for (int inner = 0; inner < 4; inner++) {
            compute(job, job->flops / job->p / 12);
            int bytes = count_of(job->bytes / job->p / 64);
            MPI_Allgather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, member);
        }
        allreduce(32768, MPI_COMM_WORLD);
    }
}

// Steps on a grid; after two of them the first of every eight ranks takes the fields of these.
static void leaders(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents), group;
    group = split_by(job->rank / 8, job->rank);
    double side = sqrt(job->bytes / 8);
    for (int step = 0; step < 6; step++) {
        for (int dimension = 0; dimension < 2; dimension++) {
            int below, above;
            MPI_Cart_shift(grid, dimension, 1, &below, &above);
            exchange(8 * side / extents[1 - dimension], above, below, grid);
            exchange(8 * side / extents[1 - dimension], below, above, grid);
        }
        compute(job, job->flops / job->p / 6);
        if (step % 2) {
            int bytes = count_of(job->bytes / job->p / 16);
            MPI_Gather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, 0, group);
            if (job->rank % 8 == 0)
                compute(job, 0.01 * job->flops / job->p);
        }
    }
}

// Cyclic reduction: equations over ranks that are twice as far apart in each round, there and back.
static void reduction(const struct job *job) {
    int rounds = whole_log2(job->p);
    compute(job, 0.8 * job->flops / job->p);
    for (int pass = 0; pass < 2; pass++)
        for (int at = 0; at < rounds; at++) {
            int round = pass ? rounds - 1 - at : at, distance = 1 << round;
            if (job->rank % distance)
                continue;
            int above = job->rank + distance < job->p ? job->rank + distance : MPI_PROC_NULL;
            int below = job->rank - distance >= 0 ? job->rank - distance : MPI_PROC_NULL;
            exchange(2048, above, below, MPI_COMM_WORLD);
            exchange(2048, below, above, MPI_COMM_WORLD);
            compute(job, 2e4);
        }
    compute(job, 0.2 * job->flops / job->p);
}

// Trees of bodies that everyone gets, then walks whose length grows with their depth, unevenly.
static void trees(const struct job *job) {
    for (unsigned step = 0; step < 3; step++) {
        compute(job, 0.1 * job->flops / job->p);
        int bytes = count_of(job->bytes / 128 / job->p);
        MPI_Allgather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, MPI_COMM_WORLD);
        compute(job, 2e4 * whole_log2(job->p));
        compute(job, 0.2 * job->flops / job->p * (0.95 + 0.1 * uniform((unsigned)job->rank, 70 + step)));
        allreduce(48, MPI_COMM_WORLD);
    }
}

// Molecules in boxes: halos in three directions, sums now and then, and tables that all exchange once.
static void molecules(const struct job *job) {
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    MPI_Alltoall(payload, 16, MPI_BYTE, payload + PAYLOAD / 2, 16, MPI_BYTE, MPI_COMM_WORLD);
    double skin = 24 * pow(job->bytes / 64 / job->p, 2.0 / 3);
    for (int step = 0; step < 8; step++) {
        for (int dimension = 0; dimension < 3; dimension++) {
            int below, above;
            MPI_Cart_shift(grid, dimension, 1, &below, &above);
            exchange(skin, above, below, grid);
            exchange(skin, below, above, grid);
        }
        compute(job, job->flops / job->p / 8);
        if (step % 4 == 3)
            allreduce(48, MPI_COMM_WORLD);
    }
}

// A dense matrix times vectors: parts of them come together in columns, and results are added in rows.
static void matrix_vector(const struct job *job) {
    int extents[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents), row, column;
    row = part_of(grid, rows);
    column = part_of(grid, columns);
    double n = sqrt(job->bytes / 8);
    for (int i = 0; i < 8; i++) {
        int bytes = count_of(8 * n / job->p);
        MPI_Allgather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, column);
        compute(job, job->flops / job->p / 8);
        allreduce(8 * n / extents[0], row);
    }
}

// Independent histories in batches, and one table of tallies at the end.
static void histories(const struct job *job) {
    for (unsigned batch = 0; batch < 3; batch++) {
        double sum = 0;
        for (unsigned i = 0; i < 16; i++)
            sum += 0.5 + uniform((unsigned)job->rank * 16 + i, 90 + batch);
        compute(job, job->flops / job->p / 3 * sum / 16);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    allreduce(262144, MPI_COMM_WORLD);
}

// An ocean: much work in the depth, then many small steps at the surface with thin halos and sums.
static void ocean(const struct job *job) {
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    double side = sqrt(job->bytes / 8 / 16);
    for (int step = 0; step < 2; step++) {
        for (int inner = 0; inner < 11; inner++) {
            int is_deep = inner == 0;
            for (int dimension = 0; dimension < 2; dimension++) {
                int below, above;
                MPI_Cart_shift(grid, dimension, 1, &below, &above);
                exchange((is_deep ? 128 : 8) * side / extents[1 - dimension], above, below, grid);
                exchange((is_deep ? 128 : 8) * side / extents[1 - dimension], below, above, grid);
            }
            compute(job, (is_deep ? 0.4 : 0.01) * job->flops / job->p);
            if (!is_deep)
                allreduce(16, grid);
        }
    }
}

const struct entry judges[] = {{"gmres", gmres}, {"cells", cells}, {"spectral", spectral},
                               {"histogram", histogram}, {"neighbours-26", neighbours_26}, {"octants", octants},
                               {"ensembles", ensembles}, {"leaders", leaders}, {"reduction", reduction},
                               {"trees", trees}, {"molecules", molecules}, {"matrix-vector", matrix_vector},
                               {"histories", histories}, {"ocean", ocean}, {0}};
