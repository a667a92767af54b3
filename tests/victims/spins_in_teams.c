// Threads of a parallel region compute for half a second (OpenMP, one rank). With an argument, that core is the only one
// that the process may use, from before MPI_Init on.
#define _GNU_SOURCE
#include <omp.h>
#include <sched.h>
#include <stdlib.h>

#include "victim.h"

int main(int argc, char **argv) {
    if (argc > 1) {
        cpu_set_t cores;
        CPU_ZERO(&cores);
        CPU_SET(atoi(argv[1]), &cores);
        if (sched_setaffinity(0, sizeof(cores), &cores) != 0)
            return 2;
    }
    MPI_Init(&argc, &argv);
    double begin = omp_get_wtime(), sum = 0;
#pragma omp parallel reduction(+ : sum)
    while (omp_get_wtime() - begin < 0.5)
        for (int i = 0; i < 10000; i++)
            sum += i * 1e-9;
    MPI_Finalize();
    return sum < 0;
}
