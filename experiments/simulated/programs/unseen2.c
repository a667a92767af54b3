// Kinds that were put aside, as those of unseen.c, and modelled on other real codes. Their author
// did not know how predictions are made, nor had any for them. Squares of ranks for plane-waves and
// seismic, powers of two for the others.
#include "job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// Messages under way in both directions, as persistent requests and neighbourhood collectives make.
struct messages {
    int n;
    MPI_Request requests[1024];
};

static void receive(struct messages *all, double bytes, int from, int tag, MPI_Comm comm) {
    MPI_Irecv(payload, count_of(bytes), MPI_BYTE, from, tag, comm, &all->requests[all->n++]);
}

static void send(struct messages *all, double bytes, int to, int tag, MPI_Comm comm) {
    MPI_Isend(payload, count_of(bytes), MPI_BYTE, to, tag, comm, &all->requests[all->n++]);
}

static void wait_for(struct messages *all) {
    MPI_Waitall(all->n, all->requests, MPI_STATUSES_IGNORE);
    all->n = 0;
}

// Starts an exchange of faces on a grid, without those between its first and last ranks.
static void start_faces(struct messages *all, MPI_Comm grid, int dimensions, double bytes) {
    int extents[3], periods[3], mine[3];
    MPI_Cart_get(grid, dimensions, extents, periods, mine);
    for (int d = 0; d < dimensions; d++) {
        int below, above;
        MPI_Cart_shift(grid, d, 1, &below, &above);
        if (mine[d] > 0) {
            receive(all, bytes, below, 2 * d, grid);
            send(all, bytes, below, 2 * d + 1, grid);
        }
        if (mine[d] < extents[d] - 1) {
            receive(all, bytes, above, 2 * d + 1, grid);
            send(all, bytes, above, 2 * d, grid);
        }
    }
}

// Parallel in time (PFASST, XBraid): pairs of ranks each have a slice of time; all slices are
// solved finely, then a coarse solution passes from slice to slice.
static void time_slices(const struct job *job) {
    enum { ROUNDS = 3, STEPS = 5, STATE = 1 << 16 };
    int slice = job->rank / 2, slices = job->p / 2;
    MPI_Comm space = split_by(slice, job->rank);
    for (int round = 0; round < ROUNDS; round++) {
        for (int step = 0; step < STEPS; step++) {
            int peer = (job->rank ^ 1) % 2;
            exchange(STATE / 8, peer, peer, space);
            compute(job, job->flops / job->p / ROUNDS / STEPS);
        }
        allreduce(8, space);
        if (slice > 0)
            MPI_Recv(payload, STATE, MPI_BYTE, job->rank - 2, round, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        compute(job, 0.01 * job->flops / job->p);
        if (slice < slices - 1)
            MPI_Send(payload, STATE, MPI_BYTE, job->rank + 2, round, MPI_COMM_WORLD);
    }
    allreduce(8, MPI_COMM_WORLD);
}

// Lattice quantum chromodynamics (MILC): conjugate gradients on boxes in four dimensions, even and
// odd sites in turn; three layers of vectors travel while the inner sites are computed.
static void lattice(const struct job *job) {
    int extents[4] = {1, 1, 1, 1}, d = 0;
    for (int left = job->p; left > 1; left /= 2, d = (d + 1) % 4)
        extents[d] *= 2;
    struct messages all = {0};
    double sites = job->bytes / 512 / job->p, surface = 192 * pow(sites, 0.75) / 2;
    for (int step = 0; step < 8; step++) {
        for (int parity = 0; parity < 2; parity++) {
            int stride = 1;
            for (d = 0; d < 4; stride *= extents[d++]) {
                int at = job->rank / stride % extents[d], first = job->rank - at * stride;
                int above = first + (at + 1) % extents[d] * stride;
                int below = first + (at + extents[d] - 1) % extents[d] * stride;
                if (extents[d] == 1)
                    continue;
                receive(&all, surface, below, 2 * d, MPI_COMM_WORLD);
                receive(&all, surface, above, 2 * d + 1, MPI_COMM_WORLD);
                send(&all, surface, above, 2 * d, MPI_COMM_WORLD);
                send(&all, surface, below, 2 * d + 1, MPI_COMM_WORLD);
            }
            compute(job, 0.1 * job->flops / job->p / 8);
            wait_for(&all);
            compute(job, 0.35 * job->flops / job->p / 8);
        }
        allreduce(8, MPI_COMM_WORLD);
        compute(job, 0.1 * job->flops / job->p / 8);
        allreduce(8, MPI_COMM_WORLD);
    }
}

// Blocks of a mesh that is finer near a shock, along a Morton curve: who has which block in each
// phase. All ranks use one table.
enum { EDGE = 32, BLOCKS = EDGE * EDGE * EDGE, PHASES = 3 };
static short owners[PHASES][BLOCKS];
static char weights[PHASES][BLOCKS];
static int weight_of_all[PHASES], divided_among;

static void divide_mesh(int p) {
    for (int phase = 0; phase < PHASES; phase++)
        for (int pass = 0, all = 0; pass < 2; pass++) {
            for (int morton = 0, before = 0; morton < BLOCKS; morton++) {
                int at[3] = {0}, block = 0;
                for (int bit = 0; bit < 15; bit++)
                    at[bit % 3] |= (morton >> bit & 1) << bit / 3;
                for (int d = 0; d < 3; d++)
                    block = block * EDGE + at[d];
                double radius = sqrt(at[0] * at[0] + at[1] * at[1] + at[2] * at[2]);
                weights[phase][block] = fabs(radius - 12 - 4 * phase) < 1 ? 8 : 1;
                if (pass)
                    owners[phase][block] = (short)((double)before * p / all);
                before += weights[phase][block];
                weight_of_all[phase] = before;
            }
            all = weight_of_all[phase];
        }
    divided_among = p;
}

// Adaptive refinement (FLASH, miniAMR): borders of uneven parts, and blocks that move to other
// ranks when the shock has moved on.
static void adaptive_mesh(const struct job *job) {
    if (divided_among != job->p)
        divide_mesh(job->p);
    struct messages all = {0};
    for (int phase = 0; phase < PHASES; phase++) {
        const short *owner = owners[phase], *next = owners[phase + 1 < PHASES ? phase + 1 : phase];
        double each = job->bytes / 2 / weight_of_all[phase], face = 80 * pow(each / 40, 2.0 / 3);
        int mine = 0, borders[job->p], leave[job->p], come[job->p];
        memset(borders, 0, sizeof borders);
        memset(leave, 0, sizeof leave);
        memset(come, 0, sizeof come);
        for (int block = 0, stride; block < BLOCKS; block++) {
            int weight = weights[phase][block], is_mine = owner[block] == job->rank;
            mine += is_mine * weight;
            for (stride = 1; stride < BLOCKS; stride *= EDGE) {
                int other = block + stride, finer = 1;
                if (block / stride % EDGE == EDGE - 1)
                    continue;
                if (weight > 1 || weights[phase][other] > 1)
                    finer = 4;
                if (is_mine && owner[other] != job->rank)
                    borders[owner[other]] += finer;
                if (!is_mine && owner[other] == job->rank)
                    borders[owner[block]] += finer;
            }
            if (is_mine && next[block] != job->rank)
                leave[next[block]] += weight;
            if (!is_mine && next[block] == job->rank)
                come[owner[block]] += weight;
        }
        for (int stage = 0; stage < 4; stage++) {
            for (int peer = 0; peer < job->p; peer++)
                if (borders[peer]) {
                    receive(&all, borders[peer] * face, peer, 0, MPI_COMM_WORLD);
                    send(&all, borders[peer] * face, peer, 0, MPI_COMM_WORLD);
                }
            wait_for(&all);
            compute(job, job->flops / 4 / PHASES * mine / weight_of_all[phase]);
            if (stage % 2)
                allreduce(8, MPI_COMM_WORLD);
        }
        if (next == owner)
            break;
        MPI_Allgather(payload, 16, MPI_BYTE, payload + PAYLOAD / 2, 16, MPI_BYTE, MPI_COMM_WORLD);
        for (int peer = 0; peer < job->p; peer++) {
            if (come[peer])
                receive(&all, come[peer] * each, peer, 1, MPI_COMM_WORLD);
            if (leave[peer])
                send(&all, leave[peer] * each, peer, 1, MPI_COMM_WORLD);
        }
        wait_for(&all);
    }
}

// Quantum Monte Carlo (QMCPACK): walkers multiply or vanish in each generation; after a census,
// ranks with too many send some to ranks with too few.
static void walkers(const struct job *job) {
    enum { GENERATIONS = 6, BYTES = 16384 };
    int first = (int)(job->bytes / BYTES), all = first, have[job->p];
    for (unsigned generation = 0; generation < GENERATIONS; generation++) {
        int mine = all / job->p + (job->rank < all % job->p), before = all, from = 0;
        compute(job, job->flops / GENERATIONS * mine / fmax(1, first));
        allreduce(48, MPI_COMM_WORLD);
        MPI_Allgather(payload, 8, MPI_BYTE, payload + PAYLOAD / 2, 8, MPI_BYTE, MPI_COMM_WORLD);
        all = 0;
        for (int rank = 0; rank < job->p; rank++) {
            double grows = 0.3 * (uniform((unsigned)rank, 310 + generation) - 0.5);
            int even = before / job->p + (rank < before % job->p);
            all += have[rank] = even + (int)lround(grows * even);
        }
        // Those left over, in the order of ranks, go to those who lack some.
        for (int to = 0; to < job->p; to++)
            while (have[to] < all / job->p + (to < all % job->p)) {
                int lack = all / job->p + (to < all % job->p) - have[to], over;
                while ((over = have[from] - all / job->p - (from < all % job->p)) <= 0)
                    from++;
                int moved = lack < over ? lack : over;
                have[to] += moved;
                have[from] -= moved;
                if (job->rank == from)
                    MPI_Send(payload, moved * BYTES, MPI_BYTE, to, 0, MPI_COMM_WORLD);
                if (job->rank == to)
                    MPI_Recv(payload, moved * BYTES, MPI_BYTE, from, 0, MPI_COMM_WORLD,
                             MPI_STATUS_IGNORE);
            }
    }
}

// Density functional theory in plane waves (Quantum ESPRESSO): rows of ranks transform bands, one
// band while the last one travels; columns sum overlaps of all bands, and up to sixteen ranks
// diagonalise these.
static void plane_waves(const struct job *job) {
    enum { BANDS = 4 };
    int extents[2], mine[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Comm row = part_of(grid, rows), column = part_of(grid, columns);
    MPI_Comm solvers = split_by(job->rank < 16, job->rank);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    struct messages all = {0};
    double matrix = job->bytes / 256;
    for (int iteration = 0; iteration < 2; iteration++) {
        for (int band = 0; band <= BANDS; band++) {
            if (band < BANDS)
                compute(job, 0.35 * job->flops / job->p / 2 / BANDS);
            wait_for(&all);
            for (int i = 1; band < BANDS && i < extents[1]; i++) {
                double bytes = job->bytes / 8 / BANDS / job->p / extents[1];
                receive(&all, bytes, (mine[1] + extents[1] - i) % extents[1], band, row);
                send(&all, bytes, (mine[1] + i) % extents[1], band, row);
            }
            if (band > 0)
                compute(job, 0.35 * job->flops / job->p / 2 / BANDS);
        }
        compute(job, 0.3 * job->flops / job->p / 2);
        allreduce(matrix / extents[1], column);
        for (int step = 0; job->rank < 16 && step < 8; step++) {
            compute(job, 0.002 * job->flops / 8 / (job->p < 16 ? job->p : 16));
            allreduce(4096, solvers);
        }
        MPI_Bcast(payload, count_of(matrix), MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

// Gravity with trees (Bonsai): all get the outlines of all trees; ranks that are close on the curve
// through space get more of each other's trees, while bodies of the own tree are computed.
static void essential_trees(const struct job *job) {
    struct messages all = {0};
    double own = job->bytes / 4 / job->p;
    for (unsigned step = 0; step < 3; step++) {
        compute(job, 0.05 * job->flops / job->p / 3);
        int outline = count_of(0.3 * pow(own, 2.0 / 3));
        MPI_Allgather(payload, outline, MPI_BYTE, payload + PAYLOAD / 2, outline, MPI_BYTE,
                      MPI_COMM_WORLD);
        int near = 0;
        for (int peer = job->rank - 8; peer <= job->rank + 8; peer++) {
            if (peer < 0 || peer >= job->p || peer == job->rank)
                continue;
            double bytes = own / 6 / pow(abs(peer - job->rank), 1.5);
            unsigned to = (unsigned)(job->rank * 4096 + peer);
            unsigned from = (unsigned)(peer * 4096 + job->rank);
            receive(&all, bytes * (0.5 + uniform(from, 320)), peer, 0, MPI_COMM_WORLD);
            send(&all, bytes * (0.5 + uniform(to, 320)), peer, 0, MPI_COMM_WORLD);
            near++;
        }
        double uneven = 0.95 + 0.1 * uniform((unsigned)job->rank, 321 + step);
        compute(job, 0.4 * uneven * job->flops / job->p / 3);
        wait_for(&all);
        compute(job, (0.3 + 0.01 * near + 0.01 * log2(job->p)) * uneven * job->flops / job->p / 3);
        allreduce(64, MPI_COMM_WORLD);
        // Bodies that have left.
        int below = job->rank ? job->rank - 1 : MPI_PROC_NULL;
        int above = job->rank + 1 < job->p ? job->rank + 1 : MPI_PROC_NULL;
        exchange(own / 20, above, below, MPI_COMM_WORLD);
        exchange(own / 20, below, above, MPI_COMM_WORLD);
    }
}

// A sparse direct solver (MUMPS, STRUMPACK): subtrees on single ranks, then fronts on groups that
// merge in pairs up to all ranks; and the substitution back down the tree.
static void multifrontal(const struct job *job) {
    enum { PANELS = 6 };
    int top = whole_log2(job->p);
    MPI_Comm groups[16] = {MPI_COMM_WORLD};
    for (int level = 1; level < top; level++)
        groups[level] = split_by(job->rank / (job->p >> level), job->rank);
    double uneven = 0.8 + 0.4 * uniform((unsigned)job->rank, 330);
    compute(job, job->flops / job->p / (1 << top) * uneven);
    for (int level = top - 1; level >= 0; level--) {
        int size = job->p >> level, other = job->rank ^ size / 2, at = job->rank % size;
        double front = job->bytes / 8 / pow(2, 4 * level / 3.0);
        double work = job->flops / job->p / (2 << level);
        work *= 0.85 + 0.3 * uniform((unsigned)(job->rank / size), 331 + (unsigned)level);
        exchange(front / size / 2, other, other, MPI_COMM_WORLD);
        for (int panel = 0; panel < PANELS; panel++) {
            double left = 1 - (panel + 0.5) / PANELS;
            if (at == panel % size)
                compute(job, 0.1 * work / PANELS);
            MPI_Bcast(payload, count_of(left * front / PANELS / sqrt(size) / 2), MPI_BYTE,
                      panel % size, groups[level]);
            compute(job, 3 * left * left * work / PANELS);
        }
    }
    for (int level = 0; level < top; level++) {
        int size = job->p >> level;
        double order = sqrt(job->bytes / 64) / pow(2, 2 * level / 3.0);
        MPI_Bcast(payload, count_of(8 * order), MPI_BYTE, 0, groups[level]);
        compute(job, 0.01 * job->flops / job->p / (2 << level));
        exchange(8 * order / size, job->rank ^ size / 2, job->rank ^ size / 2, MPI_COMM_WORLD);
    }
}

// Analysis in situ (Damaris, Catalyst): one of eight ranks takes fields of the others every second
// step, renders them and composes the picture with its like by binary swap; the others go on.
static void in_situ(const struct job *job) {
    enum { STEPS = 8, PICTURE = 1 << 19 };
    int group = job->p < 8 ? job->p : 8, viewer = job->rank / group * group + group - 1, at, size;
    int is_viewer = job->rank == viewer;
    MPI_Comm like = split_by(is_viewer, job->rank);
    MPI_Comm_rank(like, &at);
    MPI_Comm_size(like, &size);
    double field = job->bytes / 16 / job->p;
    if (is_viewer) {
        for (int frame = 0; frame < STEPS / 2; frame++) {
            double part = PICTURE;
            for (int from = viewer - group + 1; from < viewer; from++)
                MPI_Recv(payload, count_of(field), MPI_BYTE, from, 0, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
            compute(job, 0.08 * job->flops / size / (STEPS / 2));
            for (int bit = 1; bit < size; bit *= 2) {
                part /= 2;
                exchange(part, at ^ bit, at ^ bit, like);
                compute(job, part / 8);
            }
            MPI_Gather(payload, count_of(part), MPI_BYTE, payload + PAYLOAD / 2, count_of(part),
                       MPI_BYTE, 0, like);
        }
        return;
    }
    struct messages halo = {0}, fields = {0};
    int row = (int)lround(sqrt(size)), distances[4] = {-row, -1, 1, row};
    double line = 8 * 4 * sqrt(job->bytes / 8 / job->p);
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < 4; i++) {
            int peer = at + distances[i];
            if (peer < 0 || peer >= size || (row == 1 && i % 3 == 0))
                continue;
            receive(&halo, line, peer, 3 - i, like);
            send(&halo, line, peer, i, like);
        }
        wait_for(&halo);
        compute(job, 0.9 * job->flops / size / STEPS);
        allreduce(8, like);
        if (step % 2) {
            wait_for(&fields);
            send(&fields, field, viewer, 0, MPI_COMM_WORLD);
        }
    }
    wait_for(&fields);
}

// Seismic waves (SW4): wide halos behind inner points and no sums; outer ranks have absorbing
// layers as well, and four ranks write a map now and then.
static void seismic(const struct job *job) {
    enum { STEPS = 8, WRITERS = 4 };
    int extents[2], mine[2];
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    struct messages halo = {0}, maps = {0};
    double depth = cbrt(job->bytes / 8 / 8), damped = 1;
    // A twentieth of each side absorbs waves.
    for (int d = 0; d < 2; d++)
        damped += mine[d] == 0 || mine[d] == extents[d] - 1 ? 0.4 * fmin(1, extents[d] / 20.0) : 0;
    int quarter = job->rank * WRITERS / job->p;
    int writer = (quarter * job->p + WRITERS - 1) / WRITERS;
    int next_writer = ((quarter + 1) * job->p + WRITERS - 1) / WRITERS;
    double map = job->bytes / 64 / job->p;
    for (int step = 0; step < STEPS; step++) {
        for (int part = 0; part < 2; part++) {
            start_faces(&halo, grid, 2, (part ? 6 : 3) * 2 * 8 * depth * depth / extents[0]);
            compute(job, 0.35 * damped * job->flops / job->p / STEPS);
            wait_for(&halo);
            compute(job, 0.15 * damped * job->flops / job->p / STEPS);
        }
        if (step % 4 < 3)
            continue;
        wait_for(&maps);
        if (job->rank != writer)
            send(&maps, map, writer, 9, MPI_COMM_WORLD);
        for (int from = writer + 1; job->rank == writer && from < next_writer; from++) {
            MPI_Recv(payload, count_of(map), MPI_BYTE, from, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            compute(job, map / 4);
        }
    }
    wait_for(&maps);
}

// Domain decomposition in two levels (FETI, BDDC): faces of subdomains and local solves; the first
// rank of each host collects the coarse problem, whose order grows with the ranks, and solves it as
// the others of its kind do.
static void subdomains(const struct job *job) {
    enum { STEPS = 8, COARSE = 3 };
    char name[MPI_MAX_PROCESSOR_NAME];
    int extents[3], host = 0, at, size, length;
    MPI_Get_processor_name(name, &length);
    sscanf(name, "host-%d", &host);
    MPI_Comm grid = grid_of(job->p, 3, extents), on_host = split_by(host, job->rank);
    MPI_Comm_rank(on_host, &at);
    MPI_Comm_size(on_host, &size);
    MPI_Comm firsts = split_by(at == 0, job->rank);
    struct messages all = {0};
    double unknowns = (double)COARSE * job->p, each = job->bytes / job->p / 1e6;
    // Factors of subdomains that fit into the cache are solved faster.
    double slower = 1 + 0.3 * each / (1 + each);
    for (int step = 0; step < STEPS; step++) {
        start_faces(&all, grid, 3, 8 * 3 * pow(job->bytes / 64 / job->p, 2.0 / 3));
        wait_for(&all);
        compute(job, 0.7 * slower * job->flops / job->p / STEPS);
        MPI_Gather(payload, 8 * COARSE, MPI_BYTE, payload + PAYLOAD / 2, 8 * COARSE, MPI_BYTE, 0,
                   on_host);
        if (at == 0) {
            MPI_Allgather(payload, 8 * COARSE * size, MPI_BYTE, payload + PAYLOAD / 2,
                          8 * COARSE * size, MPI_BYTE, firsts);
            compute(job, job->flops > 0 ? 2 * unknowns * unknowns : 0);
        }
        MPI_Bcast(payload, 8 * COARSE * job->p, MPI_BYTE, 0, on_host);
        compute(job, 0.1 * job->flops / job->p / STEPS);
        allreduce(16, grid);
    }
}

const struct entry unseen2[] = {{"time-slices", time_slices}, {"lattice", lattice},
                                {"adaptive-mesh", adaptive_mesh}, {"walkers", walkers},
                                {"plane-waves", plane_waves}, {"essential-trees", essential_trees},
                                {"multifrontal", multifrontal}, {"in-situ", in_situ},
                                {"seismic", seismic}, {"subdomains", subdomains}, {0}};
