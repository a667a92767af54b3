// Parallel regions whose threads sleep for known times instead of working (OpenMP, two ranks), several times over. In
// milliseconds of threads, each time:
//
//   where       work  barriers  locks  ends  tasks  threads and span
//   first        120        60     30    30      0  4, 60
//   second        40         0      0    20      0  2, 30
//   third          0         0      0     0     40  4, 10
//   outside       20         0      0     0      0  rank 1 sleeps 20 longer
#include <omp.h>
#include <stdlib.h>
#include <time.h>

#include "victim.h"

static void sleep_ms(int ms) {
    struct timespec time = {0, ms * 1000000L};
    nanosleep(&time, NULL);
}

static void first(void) {
#pragma omp parallel num_threads(4)
    {
        sleep_ms(10 * (1 + omp_get_thread_num()));
#pragma omp barrier
#pragma omp critical
        sleep_ms(5);
    }
}

static void second(void) {
#pragma omp parallel for schedule(static) num_threads(2)
    for (int i = 0; i < 2; i++)
        sleep_ms(i == 1 ? 30 : 10);
}

static void third(void) {
#pragma omp parallel num_threads(4)
#pragma omp single
    for (int i = 0; i < 4; i++)
#pragma omp task
        sleep_ms(10);
}

int main(int argc, char **argv) {
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int times = argc > 1 ? atoi(argv[1]) : 3;
    for (int i = 0; i < times; i++) {
        first();
        second();
        third();
        sleep_ms(rank == 1 ? 40 : 20);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
