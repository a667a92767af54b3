/* Shared by all programs of this folder. */
#ifndef CONFORMITY_H
#define CONFORMITY_H

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Ends the program if the harness cannot. */
__attribute__((constructor)) static void end_some_day(void) { alarm(120); }

/* MPI_Init, MPI_Comm_rank. */
static inline int begin(void)
{
    int rank = -1;
    MPI_Init(NULL, NULL);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank;
}

/* Ends the program with a message unless MPI returned what is known. */
#define MUST(condition)                                                            \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
            exit(70);                                                              \
        }                                                                          \
    } while (0)

#endif
