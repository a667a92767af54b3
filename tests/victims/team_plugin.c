/* A plug-in with a parallel region. */
#include <omp.h>

int sum_of_team(void)
{
    int sum = 0;
#pragma omp parallel num_threads(3) reduction(+ : sum)
    {
#pragma omp barrier
        sum += omp_get_thread_num() + 1;
    }
    return sum;
}
