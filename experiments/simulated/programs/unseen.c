// Kinds that were put aside, as those of judges.c, and modelled on real codes and mini-apps. Their author did not know
// how predictions are made, nor had any for them.
#include "job.h"

#include <math.h>

// Exchanges with the neighbours in all dimensions of a grid at once, with non-blocking messages.
static void all_faces(MPI_Comm grid, int dimensions, double bytes) {
    MPI_Request requests[12];
    int n = 0;
    for (int dimension = 0; dimension < dimensions; dimension++) {
        int peers[2];
        MPI_Cart_shift(grid, dimension, 1, &peers[0], &peers[1]);
        for (int side = 0; side < 2; side++) {
            int tag = 2 * dimension + side;
            MPI_Irecv(payload, count_of(bytes), MPI_BYTE, peers[side], tag, grid, &requests[n++]);
            MPI_Isend(payload, count_of(bytes), MPI_BYTE, peers[side], tag ^ 1, grid, &requests[n++]);
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

// Exchanges with the ranks at a distance in each dimension of a grid, one dimension after another.
static void faces_in_turn(MPI_Comm grid, int dimensions, int distance, double bytes) {
    for (int dimension = 0; dimension < dimensions; dimension++) {
        int below, above;
        MPI_Cart_shift(grid, dimension, distance, &below, &above);
        exchange(bytes, above, below, grid);
        exchange(bytes, below, above, grid);
    }
}

// What MPI_Alltoallv does, with messages whose sizes differ from `bytes` by up to a share `uneven`.
static void all_pairs(MPI_Comm comm, double bytes, double uneven, unsigned seed) {
    int at, size, n = 0;
    MPI_Comm_rank(comm, &at);
    MPI_Comm_size(comm, &size);
    MPI_Request requests[2 * size];
    for (int i = 1; i < size; i++) {
        int to = (at + i) % size, from = (at + size - i) % size;
        double sent = 2 * uniform((unsigned)(at * size + to), seed) - 1;
        double received = 2 * uniform((unsigned)(from * size + at), seed) - 1;
        MPI_Irecv(payload, count_of(bytes * (1 + uneven * received)), MPI_BYTE, from, 0, comm, &requests[n++]);
        MPI_Isend(payload, count_of(bytes * (1 + uneven * sent)), MPI_BYTE, to, 0, comm, &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

// Multipartition (NAS BT and SP): each rank has cells along a diagonal, so that all ranks work in every stage of a line
// solve.
static void multipartition(const struct job *job) {
    static const int ahead[3][2] = {{1, 0}, {0, 1}, {-1, -1}};
    int extents[2], mine[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    int stages = extents[0];
    double points = pow(job->bytes / 8, 2.0 / 3) / stages / stages;
    for (int step = 0; step < 2; step++) {
        all_faces(grid, 2, 80 * points * stages);
        compute(job, 0.2 * job->flops / job->p / 2);
        for (int direction = 0; direction < 3; direction++)
            for (int back = 0; back < 2; back++) {
                int there[2], from[2], peers[2];
                for (int i = 0; i < 2; i++) {
                    int by = back ? -ahead[direction][i] : ahead[direction][i];
                    there[i] = mine[i] + by;
                    from[i] = mine[i] - by;
                }
                MPI_Cart_rank(grid, there, &peers[0]);
                MPI_Cart_rank(grid, from, &peers[1]);
                for (int stage = 0; stage < stages; stage++) {
                    MPI_Request requests[2];
                    compute(job, (back ? 0.2 : 0.6) * job->flops / job->p / stages / 6);
                    if (stage == stages - 1)
                        break;
                    int bytes = count_of((back ? 40 : 120) * points);
                    MPI_Irecv(payload, bytes, MPI_BYTE, peers[1], back, grid, &requests[0]);
                    MPI_Isend(payload, bytes, MPI_BYTE, peers[0], back, grid, &requests[1]);
                    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
                }
            }
    }
}

// Breadth-first search (Graph500) on a matrix that is divided in two dimensions: the frontier is collected in columns,
// and vertices go to their owners in rows.
static void search_2d(const struct job *job) {
    static const double border[] = {0.0005, 0.02, 0.4, 0.5, 0.07, 0.0095};
    int extents[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents), row = part_of(grid, rows), column = part_of(grid, columns);
    for (unsigned level = 0; level < 6; level++) {
        int bytes = count_of(border[level] * job->bytes / 32 / job->p);
        MPI_Allgather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, column);
        compute(job, border[level] * job->flops / job->p * (0.9 + 0.2 * uniform((unsigned)job->rank, 110 + level)));
        all_pairs(row, border[level] * job->bytes / 4 / job->p / extents[1], 0.5, 150 + level);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// Spectral elements (Nekbone): conjugate gradients in which a router over a hypercube adds shared points.
static void spectral_elements(const struct job *job) {
    double surface = 6 * pow(job->bytes / 8 / job->p, 2.0 / 3);
    for (int i = 0; i < 10; i++) {
        compute(job, 0.85 * job->flops / job->p / 10);
        for (int bit = 1; bit < job->p; bit *= 2)
            if ((job->rank ^ bit) < job->p)
                exchange(8 * surface / 8, job->rank ^ bit, job->rank ^ bit, MPI_COMM_WORLD);
        compute(job, 0.05 * job->flops / job->p / 10);
        allreduce(8, MPI_COMM_WORLD);
        compute(job, 0.1 * job->flops / job->p / 10);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// Transport on boxes in three dimensions (Kripke): sweeps from all eight corners are under way at once, in sets of
// groups.
static void corners_at_once(const struct job *job) {
    enum { SETS = 6 };
    int extents[3], mine[3], longest = 0, n = 0;
    MPI_Comm grid = grid_of(job->p, 3, extents);
    MPI_Request requests[8 * SETS * 3];
    MPI_Cart_coords(grid, job->rank, 3, mine);
    int bytes = count_of(8 * pow(job->bytes / 8 / job->p, 2.0 / 3));
    for (int d = 0; d < 3; d++)
        longest += extents[d] - 1;
    // A box works on a set of a corner as many turns after the corner itself as it is away from it.
    for (int turn = 0; turn < longest + SETS; turn++)
        for (int corner = 0; corner < 8; corner++) {
            int away[3], set = turn;
            for (int d = 0; d < 3; d++)
                set -= away[d] = corner >> d & 1 ? extents[d] - 1 - mine[d] : mine[d];
            if (set < 0 || set >= SETS)
                continue;
            for (int d = 0; d < 3; d++) {
                int below, above;
                MPI_Cart_shift(grid, d, corner >> d & 1 ? -1 : 1, &below, &above);
                if (away[d] > 0)
                    MPI_Recv(payload, bytes, MPI_BYTE, below, 3 * corner + d, grid, MPI_STATUS_IGNORE);
            }
            compute(job, job->flops / job->p / SETS / 8);
            for (int d = 0; d < 3; d++) {
                int below, above;
                MPI_Cart_shift(grid, d, corner >> d & 1 ? -1 : 1, &below, &above);
                if (away[d] < extents[d] - 1)
                    MPI_Isend(payload, bytes, MPI_BYTE, above, 3 * corner + d, grid, &requests[n++]);
            }
        }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    allreduce(8, grid);
}

// LU with lookahead (HPL): the next panel is factorised before the rest is updated, and goes around rows as a ring.
static void lookahead(const struct job *job) {
    enum { PANELS = 24 };
    int extents[2], mine[2], rows[2] = {0, 1}, columns[2] = {1, 0}, left, right, n = 0;
    MPI_Comm grid = grid_of(job->p, 2, extents), row = part_of(grid, rows), column = part_of(grid, columns);
    MPI_Request requests[2 * PANELS];
    MPI_Cart_coords(grid, job->rank, 2, mine);
    left = (mine[1] + extents[1] - 1) % extents[1];
    right = (mine[1] + 1) % extents[1];
    double order = sqrt(job->bytes / 8 / 4);
    // Panel -1 is none: before the first step only the first panel is made.
    for (int panel = -1; panel < PANELS; panel++) {
        double rest = 1 - (double)panel / PANELS, next_rest = 1 - (panel + 1.0) / PANELS;
        int next_owner = (panel + 1) % extents[1];
        if (panel >= 0) {
            int bytes = count_of(8 * rest * order / extents[0] * order / PANELS);
            int hops = (mine[1] - panel % extents[1] + extents[1]) % extents[1];
            if (hops > 0)
                MPI_Recv(payload, bytes, MPI_BYTE, left, panel, row, MPI_STATUS_IGNORE);
            if (hops > 0 && hops < extents[1] - 1)
                MPI_Isend(payload, bytes, MPI_BYTE, right, panel, row, &requests[n++]);
            // The pivot rows are collected in each column.
            bytes = count_of(8 * rest * order / extents[1] * order / PANELS / extents[0]);
            MPI_Allgather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, column);
        }
        if (panel + 1 < PANELS && mine[1] == next_owner) {
            for (int pivots = 0; pivots < 4; pivots++) {
                compute(job, 0.01 * next_rest * job->flops / PANELS / extents[0]);
                allreduce(256, column);
            }
            if (extents[1] > 1)
                MPI_Isend(payload, count_of(8 * next_rest * order / extents[0] * order / PANELS), MPI_BYTE, right,
                          panel + 1, row, &requests[n++]);
        }
        if (panel >= 0)
            compute(job, 3 * next_rest * rest * job->flops / PANELS / job->p);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
}

// A communication-avoiding Krylov method, four vectors at a time: one deep halo, redundant work in it, and one sum.
static void four_steps(const struct job *job) {
    enum { DEPTH = 4 };
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    double edge = fmax(1, cbrt(job->bytes / 8 / job->p));
    for (int i = 0; i < 4; i++) {
        faces_in_turn(grid, 3, 1, 8 * DEPTH * edge * edge);
        compute(job, 0.7 * job->flops / job->p / 4 * pow(1 + DEPTH / edge, 3));
        allreduce(8 * (2 * DEPTH + 1) * (2 * DEPTH + 1), grid);
        compute(job, 0.2 * job->flops / job->p / 4);
    }
}

// Data-parallel training on groups of eight ranks: each bucket of gradients is reduced around the ring of a group, then
// between groups, and collected in the group.
static void training_groups(const struct job *job) {
    int size, at;
    MPI_Comm group = split_by(job->rank / 8, job->rank), across = split_by(job->rank % 8, job->rank);
    MPI_Comm_size(group, &size);
    MPI_Comm_rank(group, &at);
    int bytes = count_of(1 << 19) / size;
    compute(job, job->flops / job->p / 3);
    for (int bucket = 0; bucket < 4; bucket++) {
        compute(job, job->flops / job->p / 6);
        for (int i = 1; i < size; i++) {
            exchange(bytes, (at + 1) % size, (at + size - 1) % size, group);
            compute(job, bytes / 8.0);
        }
        allreduce(bytes, across);
        MPI_Allgather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, group);
    }
}

// Training of a large model: each layer is divided among four ranks, up to four such groups form a pipeline, and
// replicas of the pipeline sum their gradients.
static void model_parallel(const struct job *job) {
    enum { BATCHES = 6 };
    int divided = job->p < 4 ? job->p : 4, stages = job->p / divided < 4 ? job->p / divided : 4, n = 0;
    int replicas = job->p / divided / stages, stage = job->rank / divided % stages;
    MPI_Comm layer = split_by(job->rank / divided, job->rank);
    MPI_Comm replica = split_by(job->rank % (divided * stages), job->rank);
    MPI_Request requests[2 * BATCHES];
    double activations = job->bytes / 64 / replicas / BATCHES;
    for (int back = 0; back < 2; back++) {
        int is_first = stage == (back ? stages - 1 : 0), is_last = stage == (back ? 0 : stages - 1);
        int from = job->rank + (back ? divided : -divided), to = job->rank + (back ? -divided : divided);
        for (int batch = 0; batch < BATCHES; batch++) {
            int bytes = count_of(activations);
            if (!is_first)
                MPI_Recv(payload, bytes, MPI_BYTE, from, back, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int half = 0; half < 2; half++) {
                compute(job, (back ? 2 : 1) * job->flops / job->p / BATCHES / 6);
                allreduce(bytes, layer);
            }
            if (!is_last)
                MPI_Isend(payload, bytes, MPI_BYTE, to, back, MPI_COMM_WORLD, &requests[n++]);
        }
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    allreduce(4194304.0 / divided / stages, replica);
}

// An atmosphere: halos in latitude and longitude, filters along the latitudes near the poles, and columns that take
// longer by day than by night.
static void polar_filter(const struct job *job) {
    int extents[2], mine[2], rows[2] = {0, 1};
    MPI_Comm grid = grid_of(job->p, 2, extents), row = part_of(grid, rows);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    double side = sqrt(job->bytes / 8 / 8);
    // The share of a rank's latitudes that are in the outer eighth on either side.
    double south = fmax(0, extents[0] / 8.0 - mine[0]), north = fmax(0, mine[0] + 1 - 7 * extents[0] / 8.0);
    double polar = fmin(1, south) + fmin(1, north);
    for (unsigned step = 0; step < 4; step++) {
        int below, above;
        MPI_Cart_shift(grid, 0, 1, &below, &above);
        below = mine[0] ? below : MPI_PROC_NULL;
        above = mine[0] + 1 < extents[0] ? above : MPI_PROC_NULL;
        exchange(8 * 8 * side / extents[1], above, below, grid);
        exchange(8 * 8 * side / extents[1], below, above, grid);
        MPI_Cart_shift(grid, 1, 1, &below, &above);
        exchange(8 * 8 * side / extents[0], above, below, grid);
        exchange(8 * 8 * side / extents[0], below, above, grid);
        compute(job, 0.6 * job->flops / job->p / 4);
        for (int back = 0; polar > 0 && back < 2; back++) {
            all_pairs(row, polar * job->bytes / 4 / job->p / extents[1], 0, 0);
            if (!back)
                compute(job, 0.15 * polar * job->flops / job->p / 4);
        }
        double day = mine[1] * 2 < extents[1] ? 1.1 : 0.9;
        compute(job, 0.4 * job->flops / job->p / 4 * (day + 0.1 * uniform((unsigned)job->rank, 120 + step)));
    }
    allreduce(64, grid);
}

// Molecular dynamics with a particle mesh (GROMACS): one of four ranks transforms charges on a mesh, while the others
// compute short-range forces.
static void particle_mesh(const struct job *job) {
    int group = job->p < 4 ? job->p : 4, is_mesh = job->rank % group == group - 1, at, size;
    int own_mesh = job->rank / group * group + group - 1;
    MPI_Comm like = split_by(is_mesh, job->rank);
    MPI_Comm_rank(like, &at);
    MPI_Comm_size(like, &size);
    int particles = count_of(job->bytes / 32 / job->p);
    for (int step = 0; step < 4; step++) {
        if (is_mesh) {
            for (int peer = own_mesh - group + 1; peer < own_mesh; peer++)
                MPI_Recv(payload, particles, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            for (int part = 0; part < 3; part++) {
                compute(job, 0.2 * job->flops / size / 4 / 3);
                if (part == 2)
                    break;
                int bytes = count_of(job->bytes / 32 / size / size);
                MPI_Alltoall(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, like);
            }
            for (int peer = own_mesh - group + 1; peer < own_mesh; peer++)
                MPI_Send(payload, particles, MPI_BYTE, peer, 1, MPI_COMM_WORLD);
        } else {
            MPI_Send(payload, particles, MPI_BYTE, own_mesh, 0, MPI_COMM_WORLD);
            for (int pulse = 0; pulse < 3; pulse++) {
                int distance = pulse == 0 ? 1 : pulse == 1 ? 3 : 9;
                exchange(particles / 2.0, (at + distance) % size, (at + size - distance % size) % size, like);
            }
            compute(job, 0.75 * job->flops / size / 4);
            MPI_Recv(payload, particles, MPI_BYTE, own_mesh, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(job, 0.05 * job->flops / size / 4);
        }
        allreduce(64, MPI_COMM_WORLD);
    }
}

// An unstructured mesh (PENNANT): parts of uneven size that border on some of the ranks nearby, sums at shared points
// and their results, and a time step that all agree on.
static void unstructured(const struct job *job) {
    int row = (int)sqrt(job->p), peers[10], bytes[10], near = 0;
    int distances[5] = {1, 2, row, row + 1, 2 * row};
    double border = 48 * sqrt(job->bytes / 8 / job->p);
    for (int i = 0; i < 5; i++) {
        int is_known = 0;
        for (int before = 0; before < i; before++)
            is_known |= distances[before] == distances[i];
        for (int side = -1; side <= 1 && !is_known; side += 2) {
            int peer = job->rank + side * distances[i], lower = peer < job->rank ? peer : job->rank;
            unsigned pair = (unsigned)(lower * 8 + i);
            if (peer < 0 || peer >= job->p || (i > 0 && uniform(pair, 130) > 0.7))
                continue;
            peers[near] = peer;
            bytes[near++] = count_of(border * (0.2 + 0.8 * uniform(pair, 131)));
        }
    }
    double share = 0.93 + 0.14 * uniform((unsigned)job->rank, 132);
    for (int step = 0; step < 5; step++) {
        for (int half = 0; half < 2; half++) {
            MPI_Request requests[20];
            compute(job, share * job->flops / job->p / 10);
            for (int i = 0; i < near; i++) {
                MPI_Irecv(payload, bytes[i], MPI_BYTE, peers[i], half, MPI_COMM_WORLD, &requests[2 * i]);
                MPI_Isend(payload, bytes[i], MPI_BYTE, peers[i], half, MPI_COMM_WORLD, &requests[2 * i + 1]);
            }
            MPI_Waitall(2 * near, requests, MPI_STATUSES_IGNORE);
        }
        allreduce(16, MPI_COMM_WORLD);
    }
}

// Algebraic multigrid as a preconditioner (AMG): coarser levels reach further, and one rank solves the coarsest.
static void coarse_on_one(const struct job *job) {
    enum { LEVELS = 3 };
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    for (int cycle = 0; cycle < 4; cycle++) {
        double points = job->bytes / 8;
        all_faces(grid, 3, 8 * pow(points / job->p, 2.0 / 3));
        compute(job, 0.2 * job->flops / job->p / 4);
        for (int level = 0; level < 2 * LEVELS; level++) {
            int depth = level < LEVELS ? level : 2 * LEVELS - 1 - level;
            double there = points / pow(8, depth);
            for (int distance = 1; distance <= 1 << depth && distance <= 2; distance++)
                faces_in_turn(grid, 3, distance, 8 * pow(there / job->p, 2.0 / 3));
            compute(job, 0.35 * job->flops / pow(8, depth) / job->p / 4);
            if (level == LEVELS - 1) {
                double coarse = points / pow(8, LEVELS);
                int bytes = count_of(8 * coarse / job->p);
                MPI_Gather(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE, 0, grid);
                if (job->rank == 0)
                    compute(job, 0.001 * job->flops / 4);
                MPI_Bcast(payload, count_of(8 * coarse), MPI_BYTE, 0, grid);
            }
        }
        allreduce(8, grid);
        allreduce(8, grid);
    }
}

// Particles tracked through boxes (Quicksilver): what is left crosses into neighbours, until all know that none is.
static void tracking(const struct job *job) {
    int extents[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    double left = 1;
    for (unsigned round = 0; round < 2 * (unsigned)extents[0] + 4; round++, left *= 0.65) {
        compute(job, 0.35 * left * job->flops / job->p * (0.8 + 0.4 * uniform((unsigned)job->rank, 140 + round)));
        all_faces(grid, 3, left * job->bytes / 16 / job->p);
        allreduce(16, grid);
    }
}

// Hydrodynamics in two dimensions (CloverLeaf): halos of several fields, one or two cells deep, and loops that memory
// limits until the fields fit into the cache.
static void fields(const struct job *job) {
    static const int exchanged[5][2] = {{4, 2}, {1, 1}, {6, 2}, {2, 1}, {4, 2}};
    int extents[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    double side = sqrt(job->bytes / 8 / 8), each = job->bytes / job->p / 1.5e6;
    double slower = 1 + 0.5 * each * each / (1 + each * each);
    for (int step = 0; step < 5; step++) {
        compute(job, 0.1 * job->flops / job->p / 5 * slower);
        allreduce(8, grid);
        for (int kernel = 0; kernel < 5; kernel++) {
            for (int dimension = 0; dimension < 2; dimension++) {
                int below, above;
                double bytes = 8.0 * exchanged[kernel][0] * exchanged[kernel][1] * side / extents[1 - dimension];
                MPI_Cart_shift(grid, dimension, 1, &below, &above);
                exchange(bytes, above, below, grid);
                exchange(bytes, below, above, grid);
            }
            compute(job, 0.15 * job->flops / job->p / 5 * slower);
        }
    }
    allreduce(40, grid);
}

const struct entry unseen[] = {{"multipartition", multipartition}, {"search-2d", search_2d},
                               {"spectral-elements", spectral_elements}, {"corners-at-once", corners_at_once},
                               {"lookahead", lookahead}, {"four-steps", four_steps},
                               {"training-groups", training_groups}, {"model-parallel", model_parallel},
                               {"polar-filter", polar_filter}, {"particle-mesh", particle_mesh},
                               {"unstructured", unstructured}, {"coarse-on-one", coarse_on_one},
                               {"tracking", tracking}, {"fields", fields}, {0}};
