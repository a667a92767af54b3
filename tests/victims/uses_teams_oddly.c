// Uses of OpenMP that are not a loop in a program's own function: nested regions, tasks that run in barriers, MPI calls in
// regions, loops that are cancelled, other numbers of threads, regions in children and in threads that never call MPI.
// Prints what it computes.
#include <omp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "victim.h"

static long sum_of(int threads, int n) {
    long sum = 0;
#pragma omp parallel for num_threads(threads) reduction(+ : sum) schedule(dynamic, 3)
    for (int i = 0; i < n; i++)
        sum += i;
    return sum;
}

static long tasks(int n) {
    long sum = 0;
#pragma omp parallel num_threads(3)
#pragma omp single
    {
        for (int i = 0; i < n; i++)
#pragma omp task shared(sum) firstprivate(i)
        {
#pragma omp atomic
            sum += i;
        }
#pragma omp taskwait
#pragma omp taskloop shared(sum)
        for (int i = 0; i < n; i++) {
#pragma omp atomic
            sum += i;
        }
    }
    return sum;
}

static long nested(void) {
    long sum = 0;
    omp_set_max_active_levels(2);
#pragma omp parallel num_threads(2) reduction(+ : sum)
    sum += sum_of(2, 100);
    omp_set_max_active_levels(1);
    return sum;
}

static long ordered_and_locked(void) {
    long last = 0;
    omp_lock_t lock;
    omp_init_lock(&lock);
#pragma omp parallel for ordered num_threads(2)
    for (int i = 0; i < 20; i++) {
#pragma omp ordered
        last = last * 3 % 1000003 + i;
        omp_set_lock(&lock);
        omp_unset_lock(&lock);
    }
    omp_destroy_lock(&lock);
    return last;
}

static void *elsewhere(void *sum) {
    *(long *)sum = sum_of(2, 50);
    return NULL;
}

int main(int argc, char **argv) {
    int rank, provided;
    long sum = sum_of(2, 10); // before MPI
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int threads = 1; threads < 6; threads++) {
        omp_set_num_threads(threads);
        sum += sum_of(threads, 1000) + tasks(40) + nested() + ordered_and_locked();
    }
#pragma omp parallel num_threads(2)
    {
#pragma omp master
        {
            long one = 1, all;
            MPI_Allreduce(&one, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
#pragma omp atomic
            sum += all;
        }
#pragma omp barrier
    }
    int found = -1;
#pragma omp parallel num_threads(2)
    {
#pragma omp for
        for (int i = 0; i < 1000; i++) {
#pragma omp cancellation point for
            if (i == 7) {
                found = i;
#pragma omp cancel for
            }
        }
    }
    long other = 0;
    pthread_t thread;
    pthread_create(&thread, NULL, elsewhere, &other);
    pthread_join(thread, NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(sum_of(1, 10) == 45 ? 3 : 4);
    int status = 0;
    waitpid(child, &status, 0);
    for (int i = 0; i < 20000; i++)
        sum += sum_of(1 + i % 2, 3);
    if (rank == 0)
        printf("%ld %d %ld %d\n", sum, found, other, WEXITSTATUS(status));
    MPI_Finalize();
    sum_of(2, 10);
    return 0;
}
