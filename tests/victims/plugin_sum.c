/* A library that adds numbers of all ranks, as installed apart from the programs that use it. */
#include "victim.h"

double library_sum(double part)
{
    double sum = 0;

    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}
