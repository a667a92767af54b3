/* What all victims share. */
#ifndef VICTIM_H
#define VICTIM_H

#include <mpi.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A victim that the harness could not reach ends by itself. */
__attribute__((constructor)) static void end_some_day(void) { alarm(300); }

/* This many calls of MPI_Comm_rank; the rank. */
static inline int call_comm_rank(int times)
{
    int rank = -1;
    for (int i = 0; i < times; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

#endif
