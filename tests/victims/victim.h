/* Shared by all victims. */
#ifndef VICTIM_H
#define VICTIM_H

#include <mpi.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the victim if the harness cannot. */
__attribute__((constructor)) static void end_some_day(void) { alarm(300); }

/* Makes this number of MPI_Comm_rank calls; returns the rank. */
static inline int call_comm_rank(int times)
{
    int rank = -1;
    for (int i = 0; i < times; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

#endif
