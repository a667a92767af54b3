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

/* Has errors handled by this function. */
static inline void handle_errors(MPI_Comm_errhandler_function *function)
{
    MPI_Errhandler handler;

    MPI_Comm_create_errhandler(function, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
}

/* Makes calls deeper in the stack than the caller would. */
__attribute__((noinline, unused)) static void deeper(int times)
{
    volatile char room[4096];
    memset((void *)room, 1, sizeof room);
    call_comm_rank(times + room[7] - 1);
}

#endif
