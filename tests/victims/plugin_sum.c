/* A library that adds numbers of all ranks, as installed apart from the programs that use it. */
#include "victim.h"

double library_sum(double part)
{
    double sum = 0;
    int rank;

    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* as libraries do, before the call that waits */
    MPI_Allreduce(&part, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}
