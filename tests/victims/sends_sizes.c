/* Rank 0 sends rank 1 as many messages as the argument says, of 0, 1, 2 … 4095 bytes in turn, with a
   barrier after every hundred; with a second argument every rank ends with SIGKILL instead of
   MPI_Finalize. Prints what rank 0 sent. */
#include "victim.h"
#include <signal.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char buffer[4096];
    int times = atoi(argv[1]), rank;
    long bytes = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < times; i++) {
        if (rank == 0)
            MPI_Send(buffer, i % 4096, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(buffer, 4096, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        bytes += i % 4096;
        if (i % 100 == 99)
            MPI_Barrier(MPI_COMM_WORLD);
    }
    if (rank == 0) {
        printf("%ld bytes\n", bytes);
        fflush(stdout);
    }
    if (argc > 2) {
        MPI_Barrier(MPI_COMM_WORLD);
        raise(SIGKILL);
    }
    MPI_Finalize();
    return 0;
}
