/* A program with which nothing is wrong.
 *   healthy KIND SECONDS [light]
 * KIND: stencil (even steps of 20 ms, halos, a norm now and then), uneven (steps of 1 to 200 ms, now and then 2 s), serial
 * (rank 0 works alone for up to 6 s), checkpoint (rank 0 gathers and writes, or all write), input (rank 0 reads for 8 s,
 * then again and again), shrinking (steps from 2 s down to 1 ms, as of HPL's factorisation), oversubscribed (uneven steps
 * without a pause, unless light). light: it computes a hundredth of the time only, and asks again and again whether a
 * call is complete instead of waiting in it, so that many of these programs find room on a host. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1 << 20 };

static char buffer[BYTES], all[16 * BYTES];

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + 1e-9 * now.tv_nsec;
}

static int light;

static void compute(double s)
{
    volatile double x = 1;

    for (double until = now_s() + s; now_s() < until;)
        x = x * 1.0000001;
}

/* A tenth of it computes; the rest sleeps. */
static void work(double s)
{
    double begin = now_s();

    while (now_s() < begin + s) {
        struct timespec pause = {0, light ? 9900000 : 900000};

        compute(1e-4);
        nanosleep(&pause, NULL);
    }
}

static void complete(int count, MPI_Request *requests)
{
    int done = 0;

    if (!light)
        MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
    while (light && !done) {
        struct timespec pause = {0, 5000000};

        MPI_Testall(count, requests, &done, MPI_STATUSES_IGNORE);
        if (!done)
            nanosleep(&pause, NULL);
    }
}

static void broadcast(void *data, int bytes, int root)
{
    MPI_Request request;

    if (!light) {
        MPI_Bcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD);
        return;
    }
    MPI_Ibcast(data, bytes, MPI_BYTE, root, MPI_COMM_WORLD, &request);
    complete(1, &request);
}

static void exchange(int *out, int to, int *in, int from)
{
    MPI_Request requests[2];

    if (!light) {
        MPI_Sendrecv(out, 1, MPI_INT, to, 1, in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    MPI_Irecv(in, 1, MPI_INT, from, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 1, MPI_INT, to, 1, MPI_COMM_WORLD, &requests[1]);
    complete(2, requests);
}

static void norm(double *own, double *all)
{
    MPI_Request request;

    if (!light) {
        MPI_Allreduce(own, all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        return;
    }
    MPI_Iallreduce(own, all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, &request);
    complete(1, &request);
}

static void halos(int right, int left)
{
    MPI_Request requests[4];
    enum { HALO = 16384 };

    MPI_Irecv(all, HALO, MPI_BYTE, left, 2, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(all + HALO, HALO, MPI_BYTE, right, 3, MPI_COMM_WORLD, &requests[1]);
    MPI_Isend(buffer, HALO, MPI_BYTE, right, 2, MPI_COMM_WORLD, &requests[2]);
    MPI_Isend(buffer, HALO, MPI_BYTE, left, 3, MPI_COMM_WORLD, &requests[3]);
    complete(4, requests);
}

static double between(double least, double most)
{
    return least + (most - least) * (rand() / (double)RAND_MAX);
}

static void write_out(const char *data, size_t bytes, int rank)
{
    char name[64];
    FILE *file;

    snprintf(name, sizeof name, "/tmp/healthy-%d-%d", (int)getpid(), rank);
    file = fopen(name, "w");
    if (file) {
        for (int part = 0; part < 4; part++)
            fwrite(data, 1, bytes, file);
        fflush(file);
        fsync(fileno(file));
        fclose(file);
        unlink(name);
    }
}

int main(int argc, char **argv)
{
    int rank, size, in = 0, out = 0, goes_on = 1;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const char *kind = argv[1];

    light = argc > 3;
    double end = now_s() + atof(argv[2]), shrinking_s = 2;

    srand(rank + 1);
    for (int step = 0; goes_on; step++) {
        int to = (rank + 1) % size, from = (rank + size - 1) % size;

        if (strcmp(kind, "stencil") == 0) {
            double own = 1, sum;

            work(0.02);
            halos(to, from);
            if (step % 10 == 0)
                norm(&own, &sum);
        } else if (strcmp(kind, "oversubscribed") == 0) {
            if (light)
                work(between(0.001, 0.1));
            else
                compute(between(0.001, 0.05));
            halos(to, from);
        } else if (strcmp(kind, "uneven") == 0)
            work(rand() % 50 == 0 ? 2 : between(0.001, 0.2));
        else if (strcmp(kind, "serial") == 0) {
            work(0.05);
            if (step % 20 == 0 && rank == 0)
                work(between(0.1, 6));
        } else if (strcmp(kind, "checkpoint") == 0) {
            work(0.05);
            if (step % 40 == 20) {
                MPI_Igather(buffer, BYTES / size, MPI_BYTE, all, BYTES / size, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
                complete(1, &request);
                if (rank == 0)
                    write_out(all, BYTES, rank);
            }
            if (step % 40 == 39)
                write_out(buffer, BYTES, rank);
        } else if (strcmp(kind, "input") == 0) {
            if (step % 200 == 0 && rank == 0)
                sleep(8);
            if (step % 200 == 0) {
                MPI_Iscatter(all, BYTES / size, MPI_BYTE, buffer, BYTES / size, MPI_BYTE, 0, MPI_COMM_WORLD, &request);
                complete(1, &request);
            }
            work(0.02);
        } else {
            if (rank == step % size)
                work(shrinking_s * 0.2);
            broadcast(buffer, BYTES / 8, step % size);
            work(shrinking_s);
            shrinking_s = shrinking_s > 0.001 ? shrinking_s * 0.97 : 2;
        }
        exchange(&out, to, &in, from);
        goes_on = rank != 0 || now_s() < end;
        broadcast(&goes_on, sizeof goes_on, 0);
    }
    MPI_Finalize();
    return 0;
}
