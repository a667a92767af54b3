/* Writes blocks to a file and prints the nanoseconds of a write: the fastest tenth and the median of a thousand groups
 * of 200, each between two calls of MPI. A group begins with an empty file; with `again` it writes one block over and
 * over; with `read` it reads the blocks of a file one after the other.
 *
 *     mpicc -O2 tests/apps/writes.c -o writes; mpirun -n 1 ./writes FILE BYTES [again | read]
 */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { GROUPS = 1000, WRITES = 200 };

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
    static double ns[GROUPS];
    MPI_Init(&argc, &argv);
    int reads = argc > 3 && strcmp(argv[3], "read") == 0;
    size_t bytes = strtoul(argv[2], NULL, 10), step = argc > 3 && !reads ? 0 : bytes;
    char *block = malloc(bytes);
    memset(block, 1, bytes);
    int file = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
    if (file < 0 || pwrite(file, block, bytes, 0) != (ssize_t)bytes) {
        perror(argv[1]);
        return 1;
    }
    if (reads && pwrite(file, block, bytes, (WRITES - 1) * bytes) != (ssize_t)bytes)
        return 1;
    for (int group = 0; group < GROUPS; group++) {
        if (reads && lseek(file, 0, SEEK_SET) != 0)
            return 1;
        if (step && !reads && ftruncate(file, 0) != 0)
            return 1;
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = now_ns();
        for (int i = 0; i < WRITES; i++)
            if ((reads ? read(file, block, bytes) : pwrite(file, block, bytes, i * step)) != (ssize_t)bytes)
                return 1;
        ns[group] = (now_ns() - begin) / WRITES;
    }
    qsort(ns, GROUPS, sizeof *ns, ascending);
    printf("%.2f %.2f\n", ns[GROUPS / 10], ns[GROUPS / 2]);
    close(file);
    MPI_Finalize();
    return 0;
}
