/* Small programs, each with one thing that a first screen must tell; `record` runs them.
 * Usage: programs KIND. "Works" means: computes on a core; "sleeps" stands for work where ranks are more than cores. */
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "gammachi.h"

static int rank, size;
static volatile double sink;

/* Works for about this long; the number of operations is fixed, so that sharing a core takes longer. */
static void work(double ms) {
    static double per_ms;
    if (per_ms == 0) {
        double begin = MPI_Wtime(), x = 1;
        for (int i = 0; i < 4000000; i++) x = x * 1.0000001 + 1e-9;
        per_ms = 4000000 / ((MPI_Wtime() - begin) * 1e3);
        sink = x;
    }
    double x = 1;
    for (long i = 0; i < ms * per_ms; i++) x = x * 1.0000001 + 1e-9;
    sink = x;
}

static void sleeps(double ms) { usleep((useconds_t)(ms * 1e3)); }

static void exchange(int count) {
    static double *out, *in;
    if (!out) {
        out = calloc(2 << 20, sizeof *out);
        in = calloc(2 << 20, sizeof *in);
    }
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    MPI_Sendrecv(out, count, MPI_DOUBLE, right, 0, in, count, MPI_DOUBLE, left, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static double residual(void) {
    double mine = 1, all;
    MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return all;
}

static void even(void) {
    work(1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 150; i++) {
        work(8);
        exchange(1000);
        if (i % 10 == 9) residual();
    }
}

static void late_rank(void) {
    for (int i = 0; i < 60; i++) {
        sleeps(rank == 2 ? 20 : 10);
        exchange(1000);
        residual();
    }
}

static void late_iteration(void) {
    for (int i = 0; i < 60; i++) {
        gammachi_region_begin("solve");
        sleeps(10);
        exchange(1000);
        gammachi_region_end("solve");
        gammachi_region_begin("output");
        sleeps(rank == 1 && i == 31 ? 900 : 2);
        residual();
        gammachi_region_end("output");
    }
}

static void pipeline(void) {
    double block[1000] = {0};
    for (int i = 0; i < 20; i++) {
        if (rank > 0)
            MPI_Recv(block, 1000, MPI_DOUBLE, rank - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleeps(15);
        if (rank < size - 1)
            MPI_Send(block, 1000, MPI_DOUBLE, rank + 1, 0, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* The master needs 10 ms for each result, its three workers 15 ms for each task. */
static void master(void) {
    int task = 0, tasks = 90;
    if (rank == 0) {
        for (int open = size - 1; open > 0;) {
            MPI_Status status;
            int result;
            MPI_Recv(&result, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
            sleeps(10);
            int next = task < tasks ? ++task : -1;
            open -= next < 0;
            MPI_Send(&next, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
        }
        return;
    }
    while (task >= 0) {
        MPI_Send(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task >= 0) sleeps(15);
    }
}

static void deadlock(void) {
    int value = 0;
    for (int i = 0; i < 20; i++) {
        sleeps(5);
        exchange(100);
    }
    MPI_Recv(&value, 1, MPI_INT, (rank + 1) % size, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(&value, 1, MPI_INT, (rank + size - 1) % size, 7, MPI_COMM_WORLD);
}

static void crash(void) {
    for (int i = 0; i < 60; i++) {
        sleeps(10);
        if (rank == 3 && i == 40) raise(SIGSEGV);
        exchange(1000);
        residual();
    }
}

/* As the kernel kills a process without memory, in an even program with a little noise. */
static void killed(void) {
    for (int i = 0; i < 60; i++) {
        sleeps(rank == 2 ? 10.3 : 10);
        if (rank == 1 && i == 50) raise(SIGKILL);
        exchange(1000);
        residual();
    }
}

/* Ranks whose host is called "slow" take twice as long. */
static void slow_host(void) {
    char host[64] = "";
    gethostname(host, sizeof host - 1);
    for (int i = 0; i < 60; i++) {
        sleeps(!strcmp(host, "slow") ? 20 : 10);
        exchange(1000);
        residual();
    }
}

static void small_messages(void) {
    double out = 1, in;
    for (int i = 0; i < 40000; i++)
        MPI_Sendrecv(&out, 1, MPI_DOUBLE, size - 1 - rank, 0, &in, 1, MPI_DOUBLE, size - 1 - rank, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
}

static void transfer(void) {
    work(1);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int i = 0; i < 60; i++) {
        work(2);
        exchange(2 << 20);
        if (i % 10 == 9) residual();
    }
}

static void crowded(void) {
    for (int i = 0; i < 40; i++) {
        work(10);
        exchange(1000);
        residual();
    }
}

int main(int argc, char **argv) {
    static const struct { const char *name; void (*run)(void); } kinds[] = {
        {"even", even}, {"late-rank", late_rank}, {"late-iteration", late_iteration}, {"pipeline", pipeline},
        {"master", master}, {"deadlock", deadlock}, {"crash", crash}, {"transfer", transfer}, {"crowded", crowded},
        {"killed", killed}, {"slow-host", slow_host}, {"small-messages", small_messages},
    };
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (size_t i = 0; argc > 1 && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(argv[1], kinds[i].name)) kinds[i].run();
    MPI_Finalize();
    return 0;
}
