// Runs one kind of program once and prints p, tau, the sum of gamma and the largest gamma (seconds).
//
// Usage: simulated KIND strong-small|strong-large|warm-large|weak|warm-weak|N [REPETITIONS], where N is the order of a
// matrix or the edge of a grid. warm-large and warm-weak are strong-large and weak after a run without work, so that
// communicators are there.
#include "job.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *payload;
static MPI_Op nothing;
static double gamma_of[8192], first_begin = 1e300, last_end;
static int finished;

static void no_operation(void *in, void *out, int *count, MPI_Datatype *type) {
    (void)in, (void)out, (void)count, (void)type;
}

void compute(const struct job *job, double flops) {
    double begin = MPI_Wtime();
    if (flops > 0)
        smpi_execute_flops(flops);
    gamma_of[job->rank] += MPI_Wtime() - begin;
}

int count_of(double bytes) {
    return bytes < 8 ? 8 : bytes > PAYLOAD / 2 ? PAYLOAD / 2 : (int)bytes;
}

void exchange(double bytes, int to, int from, MPI_Comm comm) {
    MPI_Sendrecv(payload, count_of(bytes), MPI_BYTE, to, 0, payload + PAYLOAD / 2, count_of(bytes),
                 MPI_BYTE, from, 0, comm, MPI_STATUS_IGNORE);
}

void allreduce(double bytes, MPI_Comm comm) {
    MPI_Allreduce(payload, payload + PAYLOAD / 2, (count_of(bytes) + 7) / 8, MPI_DOUBLE, nothing, comm);
}

double uniform(unsigned a, unsigned b) {
    unsigned long long z = a * 0x9E3779B97F4A7C15ull + b * 0xBF58476D1CE4E5B9ull + 1;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return (double)((z ^ (z >> 31)) >> 11) / 9007199254740992.0;
}

int whole_log2(int p) {
    int log = 0;
    while ((1 << log) < p)
        log++;
    return log;
}

// The factors of p that are closest to each other, largest first. SMPI's MPI_Dims_create (3.32) gives 9 x 1, 25 x 1
// and 9 x 4 for 9, 25 and 36 ranks.
static void factorise(int p, int dimensions, int *extents) {
    int largest = p + 1;
    for (int last = 1; dimensions > 1 && last * last <= p; last++) {
        if (p % last)
            continue;
        int others[3];
        factorise(p / last, dimensions - 1, others);
        if (others[dimensions - 2] < last || others[0] > largest)
            continue;
        largest = others[0];
        memcpy(extents, others, sizeof(int) * (size_t)(dimensions - 1));
        extents[dimensions - 1] = last;
    }
    if (dimensions == 1)
        extents[0] = p;
}

// Communicators that a rank has made, in order: when the program is repeated, it gets them again.
enum { MAX_MADE = 16 };
static MPI_Comm made[8192][MAX_MADE];
static int asked_for[8192];

static MPI_Comm *next_made(void) {
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (asked_for[rank] == MAX_MADE)
        abort();
    return &made[rank][asked_for[rank]++];
}

MPI_Comm grid_of(int p, int dimensions, int *extents) {
    int periodic[3] = {1, 1, 1};
    MPI_Comm *grid = next_made();
    factorise(p, dimensions, extents);
    if (!*grid)
        MPI_Cart_create(MPI_COMM_WORLD, dimensions, extents, periodic, 0, grid);
    return *grid;
}

MPI_Comm part_of(MPI_Comm grid, const int *remain) {
    MPI_Comm *part = next_made();
    if (!*part)
        MPI_Cart_sub(grid, remain, part);
    return *part;
}

MPI_Comm split_by(int colour, int rank) {
    MPI_Comm *part = next_made();
    if (!*part)
        MPI_Comm_split(MPI_COMM_WORLD, colour, rank, part);
    return *part;
}

// What trace.c replaces: SMPI's own ends the program.
__attribute__((weak)) int MPI_Pcontrol(const int level, ...) {
    (void)level;
    return MPI_SUCCESS;
}

int main(int argc, char **argv) {
    const struct entry *families[] = {collectives, halos,          transposes, sweeps,
                                      farms,       factorisations, uneven,     later,
                                      apart,       judges,         unseen,     unseen2, unseen3};
    Kind run = NULL;
    struct job job;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &job.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &job.p);
    for (size_t family = 0; argc >= 3 && family < sizeof families / sizeof *families; family++)
        for (const struct entry *entry = families[family]; entry->name; entry++)
            if (strcmp(entry->name, argv[1]) == 0)
                run = entry->run;
    if (!run) {
        fprintf(stderr, "usage: simulated KIND strong-small|strong-large|warm-large|weak|warm-weak|N [REPETITIONS]\n");
        return 2;
    }
    // On hosts of 4 Gflop/s: 50 ms and 800 ms of computing in all, or 4 ms per rank.
    int warm = strncmp(argv[2], "warm-", 5) == 0;
    int weak = strcmp(argv[2], warm ? "warm-weak" : "weak") == 0;
    int large = strcmp(argv[2], warm ? "warm-large" : "strong-large") == 0;
    job.flops = weak ? 1.6e7 * job.p : large ? 3.2e9 : 2e8;
    job.bytes = weak ? 262144.0 * job.p : large ? 134217728.0 : 8388608.0;
    double n = atof(argv[2]);
    if (n > 0) {
        // N³ operations on matrices, N² on grids, N² numbers in both.
        int dense = strcmp(argv[1], "lu") == 0 || strcmp(argv[1], "summa") == 0 || strcmp(argv[1], "cannon") == 0;
        job.flops = dense ? n * n * n : 200 * n * n;
        job.bytes = 8 * n * n;
    }
    job.iterations = 2;
    if (!payload) {
        payload = SMPI_SHARED_MALLOC(PAYLOAD);
        MPI_Op_create(no_operation, 1, &nothing);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (warm) {
        struct job without_work = job;
        without_work.flops = without_work.bytes = 0;
        run(&without_work);
        gamma_of[job.rank] = 0;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Pcontrol(1);
    double begin = MPI_Wtime();
    for (int times = argc > 3 ? atoi(argv[3]) : 1; times > 0; times--) {
        asked_for[job.rank] = 0;
        run(&job);
    }
    double end = MPI_Wtime();
    MPI_Pcontrol(0);
    first_begin = fmin(first_begin, begin);
    last_end = fmax(last_end, end);
    if (++finished == job.p) {
        double sum = 0, largest = 0;
        for (int rank = 0; rank < job.p; rank++)
            sum += gamma_of[rank], largest = fmax(largest, gamma_of[rank]);
        printf("%d,%.9g,%.9g,%.9g\n", job.p, last_end - first_begin, sum, largest);
        fflush(stdout);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
