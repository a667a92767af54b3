/* Ranks that sleep and meet, without spinning while they wait.
 *   meets MS CALLS FILE   each rank makes CALLS short calls, then all meet every MS milliseconds until FILE exists */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, goes_on = 1, done;
    long pause_us = 1000 * atol(argv[1]);
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (long i = atol(argv[2]); i > 0; i--)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        char ready[4096];
        snprintf(ready, sizeof ready, "%s.ready", argv[3]);
        fclose(fopen(ready, "w"));
    }
    while (goes_on) {
        usleep(pause_us);
        goes_on = access(argv[3], F_OK) != 0;
        MPI_Ibcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD, &request);
        for (done = 0; !done;) {
            MPI_Test(&request, &done, MPI_STATUS_IGNORE);
            if (!done)
                usleep(10000);
        }
    }
    MPI_Finalize();
    return 0;
}
