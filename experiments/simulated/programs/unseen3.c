// Kinds that were put aside, as those of unseen.c and unseen2.c, and modelled on yet other real
// codes. Their author did not know how predictions are made, nor had any for them. Squares of ranks
// for hash-join and panel-trees, powers of two for the others.
#include "job.h"

#include <math.h>
#include <stdlib.h>

// Messages under way in both directions.
struct messages {
    int n;
    MPI_Request requests[512];
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

// Flow in vessels (HemeLB, Palabos): nineteen directions on boxes that are full of vessels to
// different degrees, so five populations cross a face and one an edge, of those sites that are
// fluid on both sides, if there are any; inner sites are computed meanwhile.
static void vessels(const struct job *job) {
    enum { STEPS = 3 };
    int extents[3], mine[3];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    MPI_Cart_coords(grid, job->rank, 3, mine);
    struct messages all = {0};
    double edge = fmax(2, cbrt(job->bytes / 160 / job->p)), inner = pow(1 - 2 / edge, 3);
    // Boxes were given away by their sites, not by what these cost: walls and inlets cost more.
    double share = 0.94 + 0.12 * uniform((unsigned)job->rank, 400);
    if (mine[0] == 0 || mine[0] == extents[0] - 1)
        share += 0.2 * fmin(1, 2 / edge);
    for (int step = 0; step < STEPS; step++) {
        for (int at = 0; at < 27; at++) {
            int there[3], axes = 0, is_inside = 1, peer;
            for (int d = 0, rest = at; d < 3; d++, rest /= 3) {
                axes += rest % 3 != 1;
                there[d] = mine[d] + rest % 3 - 1;
                is_inside &= there[d] >= 0 && there[d] < extents[d];
            }
            if (!is_inside || axes == 0 || axes == 3)
                continue;
            MPI_Cart_rank(grid, there, &peer);
            int lower = peer < job->rank ? peer : job->rank, way = at < 13 ? at : 26 - at;
            double fluid = 0.3 + 0.5 * uniform((unsigned)(lower * 16 + way), 401);
            if (uniform((unsigned)(lower * 16 + way), 402) < (axes == 1 ? 0.1 : 0.5))
                continue;
            double bytes = 8 * fluid * (axes == 1 ? 5 * edge * edge : edge);
            receive(&all, bytes, peer, 26 - at, grid);
            send(&all, bytes, peer, at, grid);
        }
        compute(job, inner * share * job->flops / job->p / STEPS);
        wait_for(&all);
        compute(job, (1 - inner) * share * job->flops / job->p / STEPS);
        // Flow through inlets and outlets.
        allreduce(32, grid);
    }
}

// The share of all latitudes north of a strip of the ocean, if strips have as much water: there is
// more of it in the south.
static double north_of(int strip, int strips) {
    return (sqrt(0.36 + 1.6 * strip / strips) - 0.6) / 0.8;
}

// A coupled climate (CESM, MCT): the atmosphere has blocks on half of the ranks, the ocean has
// strips of latitudes on the others and solves for its surface with sums; at the end of each
// interval both exchange fields where a block and a strip overlap.
static void coupler(const struct job *job) {
    enum { INTERVALS = 2, INNER = 2, SURFACE = 5, LAYERS = 16 };
    int half = job->p / 2, is_ocean = job->rank >= half, at = job->rank % half;
    int columns = 1 << whole_log2(half > 1 ? half / 2 : 1) / 2, rows = half / columns;
    MPI_Comm model = split_by(is_ocean, job->rank);
    struct messages all = {0};
    double points = job->bytes / 512, side = sqrt(points), layer = 8 * LAYERS * 4;
    for (unsigned interval = 0; interval < INTERVALS; interval++) {
        for (int step = 0; step < INNER; step++) {
            int row = is_ocean ? at : at / columns, last = (is_ocean ? half : rows) - 1;
            int wide = is_ocean ? 1 : columns, column = is_ocean ? 0 : at % columns;
            for (int side_of = 0; side_of < 2; side_of++) {
                int other = row + (side_of ? 1 : -1);
                if (other >= 0 && other <= last) {
                    receive(&all, layer * side / wide, other * wide + column, !side_of, model);
                    send(&all, layer * side / wide, other * wide + column, side_of, model);
                }
                // The Earth is round.
                other = row * wide + (column + (side_of ? 1 : wide - 1)) % wide;
                if (wide > 1) {
                    receive(&all, layer * side / rows, other, 2 + !side_of, model);
                    send(&all, layer * side / rows, other, 2 + side_of, model);
                }
            }
            wait_for(&all);
            double weather = 0.94 + 0.12 * uniform((unsigned)job->rank, 410 + interval);
            double share = is_ocean ? 0.4 : 0.52 * weather;
            compute(job, share * job->flops / half / INTERVALS / INNER);
        }
        for (int i = 0; is_ocean && i < SURFACE; i++) {
            compute(job, 0.06 * job->flops / half / INTERVALS / SURFACE);
            allreduce(16, model);
        }
        // Temperatures of the surface, then fluxes.
        for (int is_up = 1; is_up >= 0; is_up--) {
            for (int other = 0; other < half; other++) {
                int row = (is_ocean ? other : at) / columns, strip = is_ocean ? at : other;
                double from = fmax(north_of(strip, half), (double)row / rows);
                double to = fmin(north_of(strip + 1, half), (row + 1.0) / rows);
                double bytes = 8 * (is_up ? 4 : 10) * points * (to - from) / columns;
                int peer = is_ocean ? other : half + other;
                if (to - from > 1e-9)
                    (is_up == is_ocean ? send : receive)(&all, bytes, peer, 9, MPI_COMM_WORLD);
            }
            wait_for(&all);
        }
        compute(job, 0.01 * job->flops / half / INTERVALS);
    }
}

// Where the keys of a relation are at home: nobody has exactly his share.
static double keys_of(int rank) {
    return 0.85 + 0.3 * uniform((unsigned)rank, 420);
}

// Sends each row of a relation home over the ranks of the own row and then over those of a column,
// in pairs as MPI_Alltoallv does.
static void shuffle(MPI_Comm row, MPI_Comm column, int size, double own) {
    int at[2];
    MPI_Comm_rank(column, &at[0]);
    MPI_Comm_rank(row, &at[1]);
    double all = 0, in_column[size];
    for (int j = 0; j < size; j++) {
        in_column[j] = 0;
        for (int i = 0; i < size; i++)
            in_column[j] += keys_of(i * size + j);
        all += in_column[j];
    }
    double held = own * size * in_column[at[1]] / all;
    for (int i = 1; i < size; i++) {
        int to = (at[1] + i) % size, from = (at[1] + size - i) % size;
        MPI_Sendrecv(payload, count_of(own * in_column[to] / all), MPI_BYTE, to, 0,
                     payload + PAYLOAD / 2, count_of(own * in_column[at[1]] / all), MPI_BYTE, from,
                     0, row, MPI_STATUS_IGNORE);
    }
    for (int i = 1; i < size; i++) {
        int to = (at[0] + i) % size, from = (at[0] + size - i) % size;
        double sent = held * keys_of(to * size + at[1]) / in_column[at[1]];
        double received = held * keys_of(at[0] * size + at[1]) / in_column[at[1]];
        MPI_Sendrecv(payload, count_of(sent), MPI_BYTE, to, 1, payload + PAYLOAD / 2,
                     count_of(received), MPI_BYTE, from, 1, column, MPI_STATUS_IGNORE);
    }
}

// A hash join of two relations in two hops, without the most frequent keys, whose few rows all get;
// homes of more keys have more to do.
static void hash_join(const struct job *job) {
    int extents[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Comm row = part_of(grid, rows), column = part_of(grid, columns);
    double each = job->flops / job->p, keys = keys_of(job->rank);
    compute(job, 0.1 * each);
    allreduce(16384, grid);
    MPI_Bcast(payload, 65536, MPI_BYTE, 0, grid);
    shuffle(row, column, extents[0], job->bytes / 8 / job->p);
    compute(job, 0.2 * keys * each);
    for (int part = 0; part < 2; part++) {
        compute(job, 0.075 * each);
        shuffle(row, column, extents[0], 3 * job->bytes / 16 / job->p);
        compute(job, 0.225 * keys * each);
    }
    compute(job, 0.1 * each);
    allreduce(32768, grid);
}

// Contractions of tensors (CTF, COSMA) on a box of ranks: one operand is collected along lines of
// it, the other one goes round in the longest dimension behind products, and results are added up
// in the depth by halves.
static void contraction(const struct job *job) {
    enum { TERMS = 2 };
    int extents[3], mine[3], lines[3] = {0, 1, 0}, deep[3] = {0, 0, 1}, below, above;
    MPI_Comm grid = grid_of(job->p, 3, extents);
    MPI_Comm line = part_of(grid, lines), depth = part_of(grid, deep);
    MPI_Cart_coords(grid, job->rank, 3, mine);
    MPI_Cart_shift(grid, 0, 1, &below, &above);
    struct messages all = {0};
    double tensor = job->bytes / 3 / TERMS;
    for (int term = 0; term < TERMS; term++) {
        // The order of indices changes.
        compute(job, 0.06 * job->flops / job->p / TERMS);
        int block = count_of(tensor / job->p);
        MPI_Allgather(payload, block, MPI_BYTE, payload + PAYLOAD / 2, block, MPI_BYTE, line);
        for (int turn = 0; turn < extents[0]; turn++) {
            if (turn < extents[0] - 1) {
                receive(&all, block, below, turn, grid);
                send(&all, block, above, turn, grid);
            }
            compute(job, 0.9 * job->flops / job->p / TERMS / extents[0]);
            wait_for(&all);
        }
        double part = tensor / extents[0] / extents[1];
        for (int bit = extents[2] / 2; bit > 0; bit /= 2) {
            part /= 2;
            exchange(part, mine[2] ^ bit, mine[2] ^ bit, depth);
            compute(job, part / 8);
        }
        compute(job, 0.04 * job->flops / job->p / TERMS);
    }
    allreduce(8, grid);
}

// Implicit steps, direction after direction, on pencils (PaScaL_TDM, CaNS): each rank eliminates
// all but the ends of its lines; those of a row of ranks divide the lines of ends among them, solve
// these and give them back.
static void line_solves(const struct job *job) {
    enum { STEPS = 2 };
    int extents[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Comm parts[2] = {part_of(grid, columns), part_of(grid, rows)};
    struct messages all = {0};
    double edge = cbrt(job->bytes / 8 / 4), each = job->bytes / job->p / 1e6;
    // Memory limits the elimination until a pencil fits into the cache.
    double slower = 1 + 0.4 * each / (1 + each);
    for (int step = 0; step < STEPS; step++) {
        for (int d = 0; d < 2; d++) {
            int below, above;
            double bytes = 8 * 4 * edge * edge / extents[1 - d];
            MPI_Cart_shift(grid, d, 1, &below, &above);
            receive(&all, bytes, below, 2 * d, grid);
            receive(&all, bytes, above, 2 * d + 1, grid);
            send(&all, bytes, above, 2 * d, grid);
            send(&all, bytes, below, 2 * d + 1, grid);
        }
        wait_for(&all);
        compute(job, 0.4 * job->flops / job->p / STEPS);
        for (int d = 0; d < 2; d++) {
            // So many lines are the concern of each rank of a row.
            double lines = edge * edge / extents[1 - d] / extents[d];
            compute(job, 0.14 * slower * job->flops / job->p / STEPS);
            MPI_Alltoall(payload, count_of(64 * lines), MPI_BYTE, payload + PAYLOAD / 2,
                         count_of(64 * lines), MPI_BYTE, parts[d]);
            compute(job, job->flops > 0 ? 40 * lines * extents[d] : 0);
            MPI_Alltoall(payload, count_of(16 * lines), MPI_BYTE, payload + PAYLOAD / 2,
                         count_of(16 * lines), MPI_BYTE, parts[d]);
            compute(job, 0.06 * slower * job->flops / job->p / STEPS);
        }
        // The third direction is at hand.
        compute(job, 0.2 * slower * job->flops / job->p / STEPS);
    }
    allreduce(8, grid);
}

// QR that avoids communication (CAQR): a column of ranks factorises a panel along a tree of
// triangles; what it made goes along rows, and pairs of all columns update their rows up the tree.
static void panel_trees(const struct job *job) {
    enum { PANELS = 6, WIDTH = 64 };
    int extents[2], mine[2], rows[2] = {0, 1}, columns[2] = {1, 0};
    MPI_Comm grid = grid_of(job->p, 2, extents);
    MPI_Comm row = part_of(grid, rows), column = part_of(grid, columns);
    MPI_Cart_coords(grid, job->rank, 2, mine);
    double order = sqrt(job->bytes / 8), triangle = job->bytes > 0 ? 4 * WIDTH * WIDTH : 0;
    for (int panel = 0; panel < PANELS; panel++) {
        double left = 1 - (double)panel / PANELS;
        int owner = panel % extents[1], size = extents[0];
        // The rank with the diagonal is the root of the tree.
        int at = (mine[0] + size - panel % size) % size;
        if (mine[1] == owner) {
            compute(job, 0.06 * left * job->flops / PANELS / size);
            for (int bit = 1; bit < size; bit *= 2) {
                if (at & bit) {
                    MPI_Send(payload, count_of(triangle), MPI_BYTE, (mine[0] + size - bit) % size,
                             panel, column);
                    break;
                }
                if (at + bit < size) {
                    MPI_Recv(payload, count_of(triangle), MPI_BYTE, (mine[0] + bit) % size, panel,
                             column, MPI_STATUS_IGNORE);
                    compute(job, job->flops > 0 ? 3e5 : 0);
                }
            }
        }
        MPI_Bcast(payload, count_of(8 * WIDTH * left * order / size), MPI_BYTE, owner, row);
        compute(job, 2.3 * left * left * job->flops / PANELS / job->p);
        for (int bit = 1; bit < size; bit *= 2) {
            int other = at & bit ? at - bit : at + bit;
            int peer = (other + panel) % size;
            if (other < size) {
                exchange(8 * WIDTH * left * order / extents[1] / 2, peer, peer, column);
                compute(job, 0.01 * left * job->flops / PANELS / job->p);
            }
            if (at & bit)
                break;
        }
    }
}

// Whether two parts of a graph have an edge between them: the further apart, the less likely.
static int are_near(int a, int b) {
    int lower = a < b ? a : b, distance = a < b ? b - a : a - b;
    return distance > 0 && uniform((unsigned)(lower * 4096 + distance), 440) < 0.8 / distance;
}

// Learning on a graph (DistDGL, NeuGraph): parts of it ask those around them for features of
// vertices, on each layer forth and back, and all sum gradients. Parts have equally many vertices,
// not edges.
static void graph_network(const struct job *job) {
    enum { LAYERS = 2, WEIGHTS = 1 << 17 };
    struct messages all = {0};
    double own = job->bytes / 2 / job->p, border = pow(own, 0.85) / 2;
    double edges = 0.88 + 0.24 * uniform((unsigned)job->rank, 441);
    for (int i = 0; i < 2 * LAYERS; i++) {
        int layer = i < LAYERS ? i : 2 * LAYERS - 1 - i, is_back = i >= LAYERS;
        double heavy = is_back ? 2 : 1;
        for (int peer = 0; peer < job->p; peer++) {
            if (!are_near(job->rank, peer))
                continue;
            unsigned to = (unsigned)(job->rank * 4096 + peer);
            unsigned from = (unsigned)(peer * 4096 + job->rank);
            double bytes = border / pow(abs(peer - job->rank), 0.6) / (layer ? 2 : 1);
            // Gradients go the opposite way, and nobody needs those of what is given.
            if (is_back && layer == 0)
                continue;
            receive(&all, bytes * (0.3 + uniform(is_back ? to : from, 442)), peer, i,
                    MPI_COMM_WORLD);
            send(&all, bytes * (0.3 + uniform(is_back ? from : to, 442)), peer, i, MPI_COMM_WORLD);
        }
        // What is known of the own part is added up first.
        compute(job, 0.3 * edges * heavy * job->flops / job->p / 3 / LAYERS);
        wait_for(&all);
        compute(job, 0.3 * edges * heavy * job->flops / job->p / 3 / LAYERS);
        compute(job, 0.4 * heavy * job->flops / job->p / 3 / LAYERS);
        if (is_back)
            allreduce(WEIGHTS, MPI_COMM_WORLD);
    }
    compute(job, job->flops > 0 ? WEIGHTS / 2 : 0);
}

// Cosmology with a tree and a mesh (GADGET): densities go to up to sixteen ranks with slabs of the
// mesh, which transform it, and forces come back; then trees are walked, with particles from
// neighbours, and particles move.
static void slabs(const struct job *job) {
    enum { STEPS = 2, MOST = 16 };
    int extents[3], mine[3], slabs_of_all = job->p < MOST ? job->p : MOST;
    int apart = job->p / slabs_of_all, has_slab = job->rank % apart == 0;
    MPI_Comm grid = grid_of(job->p, 3, extents), meshes = split_by(has_slab, job->rank);
    MPI_Cart_coords(grid, job->rank, 3, mine);
    struct messages all = {0};
    double mesh = job->bytes / 32, own = job->bytes / 2 / job->p;
    int each = slabs_of_all / extents[0], layer = extents[1] * extents[2];
    double patch = 1.3 * mesh / job->p / each;
    for (unsigned step = 0; step < STEPS; step++) {
        compute(job, 0.06 * job->flops / job->p / STEPS);
        for (int back = 0; back < 2; back++) {
            // Slabs lie along the first dimension of the boxes.
            for (int slab = mine[0] * each; slab < (mine[0] + 1) * each; slab++) {
                if (slab * apart == job->rank)
                    continue;
                if (back)
                    receive(&all, patch, slab * apart, back, MPI_COMM_WORLD);
                else
                    send(&all, patch, slab * apart, back, MPI_COMM_WORLD);
            }
            int slab = job->rank / apart, first = slab / each * layer;
            for (int peer = first; has_slab && peer < first + layer; peer++) {
                if (peer == job->rank)
                    continue;
                if (back)
                    send(&all, patch, peer, back, MPI_COMM_WORLD);
                else
                    receive(&all, patch, peer, back, MPI_COMM_WORLD);
            }
            wait_for(&all);
            for (int part = 0; has_slab && !back && part < 3; part++) {
                int bytes = count_of(mesh / slabs_of_all / slabs_of_all);
                compute(job, 0.012 * job->flops / slabs_of_all / STEPS / 3);
                if (part < 2)
                    MPI_Alltoall(payload, bytes, MPI_BYTE, payload + PAYLOAD / 2, bytes, MPI_BYTE,
                                 meshes);
            }
        }
        for (int d = 0; d < 3; d++) {
            int below, above;
            MPI_Cart_shift(grid, d, 1, &below, &above);
            if (extents[d] == 1)
                continue;
            receive(&all, 4 * pow(own, 2.0 / 3), below, 2 * d, grid);
            receive(&all, 4 * pow(own, 2.0 / 3), above, 2 * d + 1, grid);
            send(&all, 4 * pow(own, 2.0 / 3), above, 2 * d, grid);
            send(&all, 4 * pow(own, 2.0 / 3), below, 2 * d + 1, grid);
        }
        double clustered = 0.93 + 0.14 * uniform((unsigned)job->rank, 450 + step);
        compute(job, 0.6 * clustered * job->flops / job->p / STEPS);
        wait_for(&all);
        compute(job, 0.3 * clustered * job->flops / job->p / STEPS);
        allreduce(16, grid);
    }
}

// Boxes of up to eight ranks, which are `finer` apart, come together on the one whose place is a
// multiple of `coarser`, or part again.
static void regroup(MPI_Comm grid, const int *finer, const int *coarser, double bytes, int parts) {
    int extents[3], periods[3], mine[3], works = 1, worked = 1, anchor[3], root;
    struct messages all = {0};
    MPI_Cart_get(grid, 3, extents, periods, mine);
    for (int d = 0; d < 3; d++) {
        works &= mine[d] % coarser[d] == 0;
        worked &= mine[d] % finer[d] == 0;
        anchor[d] = mine[d] / coarser[d] * coarser[d];
    }
    MPI_Cart_rank(grid, anchor, &root);
    if (worked && !works)
        (parts ? receive : send)(&all, bytes, root, 8, grid);
    for (int corner = 1; works && corner < 8; corner++) {
        int there[3], is_one = 1, peer;
        for (int d = 0; d < 3; d++) {
            there[d] = mine[d] + (corner >> d & 1) * finer[d];
            is_one &= !(corner >> d & 1) || coarser[d] > finer[d];
        }
        if (!is_one)
            continue;
        MPI_Cart_rank(grid, there, &peer);
        (parts ? send : receive)(&all, bytes, peer, 8, grid);
    }
    wait_for(&all);
}

// Faces of boxes whose places are multiples of the strides, between those that have one.
static void faces_apart(MPI_Comm grid, const int *stride, double bytes) {
    int extents[3], periods[3], mine[3];
    struct messages all = {0};
    MPI_Cart_get(grid, 3, extents, periods, mine);
    for (int d = 0; d < 3; d++)
        for (int side = 0; side < 2; side++) {
            int there[3] = {mine[0], mine[1], mine[2]}, peer;
            there[d] += side ? stride[d] : -stride[d];
            if (there[d] < 0 || there[d] >= extents[d])
                continue;
            MPI_Cart_rank(grid, there, &peer);
            receive(&all, bytes, peer, 2 * d + !side, grid);
            send(&all, bytes, peer, 2 * d + side, grid);
        }
    wait_for(&all);
}

// Multigrid (HPGMG, PETSc with telescopes): when boxes have become small, up to eight ranks give
// theirs to one of them and wait until results come back.
static void telescoping(const struct job *job) {
    enum { CYCLES = 2, LEVELS = 5, FEW = 4096 };
    int extents[3], mine[3], strides[LEVELS][3], active[LEVELS];
    MPI_Comm grid = grid_of(job->p, 3, extents);
    MPI_Cart_coords(grid, job->rank, 3, mine);
    for (int level = 0; level < LEVELS; level++) {
        int is_small = level && job->bytes / 8 / pow(8, level) / active[level - 1] < FEW;
        active[level] = 1;
        for (int d = 0; d < 3; d++) {
            int stride = level ? strides[level - 1][d] : 1;
            strides[level][d] = is_small && stride < extents[d] ? 2 * stride : stride;
            active[level] *= extents[d] / strides[level][d];
        }
    }
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        for (int visit = 0; visit < 2 * LEVELS - 1; visit++) {
            int is_up = visit >= LEVELS, level = is_up ? 2 * LEVELS - 2 - visit : visit, works = 1;
            double here = job->bytes / 8 / pow(8, level) / active[level];
            // Up, a level begins with the result of the next coarser one.
            int from = is_up ? level : level - 1, to = from + 1;
            if (visit > 0 && active[from] > active[to])
                regroup(grid, strides[from], strides[to],
                        8 * job->bytes / 8 / pow(8, to) / active[from], is_up);
            for (int d = 0; d < 3; d++)
                works &= mine[d] % strides[level][d] == 0;
            if (!works)
                continue;
            faces_apart(grid, strides[level], 8 * 2 * pow(here, 2.0 / 3));
            compute(job, 0.44 * job->flops / pow(8, level) / active[level] / CYCLES);
        }
        allreduce(8, grid);
    }
}

// Paths of reactions (VASP, Quantum ESPRESSO): four images on a quarter of the ranks each, one of
// which diagonalises what all have summed; images need different numbers of iterations, then tell
// the next ones on the path where their atoms are.
static void images(const struct job *job) {
    enum { IMAGES = 4, MOVES = 2, ATOMS = 1 << 16 };
    static const int iterations[MOVES][IMAGES] = {{4, 5, 5, 4}, {3, 4, 4, 4}};
    int groups = job->p < IMAGES ? job->p : IMAGES, size = job->p / groups;
    int group = job->rank / size, at = job->rank % size;
    MPI_Comm image = split_by(group, job->rank), firsts = split_by(at == 0, job->rank);
    double matrix = job->bytes / 1024 / IMAGES, each = job->flops / job->p / 33 * groups;
    for (int move = 0; move < MOVES; move++) {
        for (int i = group; i < IMAGES; i += groups)
            for (int iteration = 0; iteration < iterations[move][i]; iteration++) {
                compute(job, 0.6 * each);
                allreduce(matrix, image);
                if (at == 0)
                    compute(job, 0.003 * each * size);
                MPI_Bcast(payload, count_of(matrix), MPI_BYTE, 0, image);
                compute(job, 0.4 * each);
                allreduce(2 * matrix, image);
            }
        compute(job, 0.2 * each);
        if (at == 0) {
            int above = group + 1 < groups ? group + 1 : MPI_PROC_NULL;
            int below = group ? group - 1 : MPI_PROC_NULL;
            exchange(ATOMS, above, below, firsts);
            exchange(ATOMS, below, above, firsts);
            allreduce(64, firsts);
        }
        MPI_Bcast(payload, ATOMS, MPI_BYTE, 0, image);
    }
}

const struct entry unseen3[] = {{"vessels", vessels}, {"coupler", coupler},
                                {"hash-join", hash_join}, {"contraction", contraction},
                                {"line-solves", line_solves}, {"panel-trees", panel_trees},
                                {"graph-network", graph_network}, {"slabs", slabs},
                                {"telescoping", telescoping}, {"images", images}, {0}};
