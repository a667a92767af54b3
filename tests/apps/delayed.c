/* Small programs in which chosen ranks are late: `gammachi why` has to name them (experiments/accuracy/check-causes).

   Usage: delayed SHAPE ITERATIONS BASE BYTES [RANK:ITERATION:MILLISECONDS:PLACE]...
   Work is sleep: at each place of each iteration every rank sleeps BASE milliseconds, plus the delays in the arguments;
   ITERATION "all" means all but the first and the last. A message has BYTES. Shapes and their places:

   stencil   `exchange`, a row sent around a ring, `sum`, a sum over all ranks
   halo      regions of gammachi.h: `pack`, receives and sends to both neighbours in a ring are posted, `interior`,
             they are completed, `edge`; a barrier after every fourth iteration
   master    rank 0 hands a task to each rank, `work` (rank 0 too), it collects the results in turn, `tidy`
   pipeline  each rank receives an item from the rank before it, `stage`, and sends it to the next one

   There is a barrier after MPI_Init and another before MPI_Finalize. At the end each rank prints lines
       slept RANK PLACE EXTRA BASE WORST
   in seconds by the clock: its delays, all its base sleeps, and the longest base sleep. */
#define _GNU_SOURCE
#include "gammachi.h"
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BARRIER_EVERY = 4, MOST = 8 };

struct delay {
    int rank, iteration; /* -1: all */
    double seconds;
    char place[16];
};

struct slept {
    const char *place;
    double extra, base, worst;
};

static int rank, ranks, iterations, bytes, count, places;
static char *sent[2], *received[2];
static double base;
static struct delay delays[MOST];
static struct slept slept[MOST];

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + 1e-9 * time.tv_nsec;
}

static double sleep_for(double seconds)
{
    double begin = now();
    struct timespec left = {(time_t)seconds, (long)(1e9 * (seconds - (time_t)seconds))};
    while (nanosleep(&left, &left) != 0) {
    }
    return now() - begin;
}

static void leave_the_core(void)
{
    struct timespec time = {0, 50000};
    nanosleep(&time, NULL);
}

/* There are more ranks than cores: waiting ranks must not keep others from ending their sleep in time. Open MPI yields
   if configured to; MPICH never does, but polls UCX in a loop. Both call these functions, because a program's own
   functions take precedence over those of libraries. */
int sched_yield(void)
{
    leave_the_core();
    return 0;
}

unsigned ucp_worker_progress(void *worker)
{
    static unsigned (*progress)(void *);
    if (!progress)
        *(void **)&progress = dlsym(RTLD_NEXT, "ucp_worker_progress");
    unsigned done = progress(worker);
    if (done == 0)
        leave_the_core();
    return done;
}

static void work(const char *place, int iteration)
{
    struct slept *here = slept;
    while (here < slept + places && strcmp(here->place, place) != 0)
        here++;
    if (here == slept + places)
        slept[places++].place = place;
    double seconds = sleep_for(base);
    here->base += seconds;
    if (seconds > here->worst)
        here->worst = seconds;
    for (int i = 0; i < count; i++) {
        int all = delays[i].iteration < 0 && iteration > 0 && iteration < iterations - 1;
        if (delays[i].rank == rank && (all || delays[i].iteration == iteration) && strcmp(delays[i].place, place) == 0)
            here->extra += sleep_for(delays[i].seconds);
    }
}

static void work_in_region(const char *place, int iteration)
{
    gammachi_region_begin(place);
    work(place, iteration);
    gammachi_region_end(place);
}

static void stencil(void)
{
    double change = rank, sum;
    for (int iteration = 0; iteration < iterations; iteration++) {
        work("exchange", iteration);
        MPI_Sendrecv(sent[0], bytes, MPI_BYTE, (rank + 1) % ranks, 1, received[0], bytes, MPI_BYTE,
                     (rank + ranks - 1) % ranks, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work("sum", iteration);
        MPI_Allreduce(&change, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
}

static void halo(void)
{
    int before = (rank + ranks - 1) % ranks, behind = (rank + 1) % ranks;
    for (int iteration = 0; iteration < iterations; iteration++) {
        MPI_Request requests[4];
        MPI_Status statuses[4];
        work_in_region("pack", iteration);
        MPI_Irecv(received[0], bytes, MPI_BYTE, before, 1, MPI_COMM_WORLD, requests);
        MPI_Irecv(received[1], bytes, MPI_BYTE, behind, 2, MPI_COMM_WORLD, requests + 1);
        MPI_Isend(sent[0], bytes, MPI_BYTE, behind, 1, MPI_COMM_WORLD, requests + 2);
        MPI_Isend(sent[1], bytes, MPI_BYTE, before, 2, MPI_COMM_WORLD, requests + 3);
        work_in_region("interior", iteration);
        MPI_Waitall(4, requests, statuses);
        work_in_region("edge", iteration);
        if (iteration % BARRIER_EVERY == BARRIER_EVERY - 1)
            MPI_Barrier(MPI_COMM_WORLD);
    }
}

static void master(void)
{
    for (int iteration = 0; iteration < iterations; iteration++) {
        if (rank == 0) {
            for (int other = 1; other < ranks; other++)
                MPI_Send(sent[0], bytes, MPI_BYTE, other, 1, MPI_COMM_WORLD);
            work("work", iteration);
            for (int other = 1; other < ranks; other++)
                MPI_Recv(received[0], bytes, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            MPI_Recv(received[0], bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            work("work", iteration);
            MPI_Send(sent[0], bytes, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        }
        work("tidy", iteration);
    }
}

static void pipeline(void)
{
    for (int iteration = 0; iteration < iterations; iteration++) {
        if (rank > 0)
            MPI_Recv(received[0], bytes, MPI_BYTE, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        work("stage", iteration);
        if (rank < ranks - 1)
            MPI_Send(sent[0], bytes, MPI_BYTE, rank + 1, 1, MPI_COMM_WORLD);
    }
}

static void wrong(const char *what)
{
    fprintf(stderr, "delayed: %s; see the head of delayed.c\n", what);
    MPI_Abort(MPI_COMM_WORLD, 2);
}

static void read_arguments(int argc, char **argv)
{
    if (argc < 5)
        wrong("usage: delayed SHAPE ITERATIONS BASE BYTES [RANK:ITERATION:MILLISECONDS:PLACE]...");
    if (argc - 5 > MOST)
        wrong("too many delays");
    iterations = atoi(argv[2]);
    base = atof(argv[3]) / 1000;
    bytes = atoi(argv[4]);
    for (int i = 0; i < 2; i++) {
        sent[i] = calloc(bytes, 1);
        received[i] = calloc(bytes, 1);
    }
    for (int i = 5; i < argc; i++) {
        struct delay *next = &delays[count++];
        char when[16];
        if (sscanf(argv[i], "%d:%15[^:]:%lf:%15s", &next->rank, when, &next->seconds, next->place) != 4)
            wrong(argv[i]);
        next->iteration = strcmp(when, "all") == 0 ? -1 : atoi(when);
        next->seconds /= 1000;
    }
}

static void say(void)
{
    char text[2048];
    int length = 0;
    for (int i = 0; i < places; i++)
        length += snprintf(text + length, sizeof text - length, "slept %d %s %.6f %.6f %.6f\n", rank, slept[i].place,
                           slept[i].extra, slept[i].base, slept[i].worst);
    /* At once, so that the lines of ranks do not mix. */
    if (write(STDOUT_FILENO, text, length) != length)
        wrong("cannot print how long it slept");
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*run)(void); } shapes[] = {
        {"stencil", stencil}, {"halo", halo}, {"master", master}, {"pipeline", pipeline},
    };
    alarm(120);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    read_arguments(argc, argv);
    for (unsigned i = 0;; i++) {
        if (i == sizeof shapes / sizeof *shapes)
            wrong("no such shape");
        if (strcmp(shapes[i].name, argv[1]) == 0) {
            MPI_Barrier(MPI_COMM_WORLD);
            shapes[i].run();
            MPI_Barrier(MPI_COMM_WORLD);
            break;
        }
    }
    say();
    MPI_Finalize();
    return 0;
}
