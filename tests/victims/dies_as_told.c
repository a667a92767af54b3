/* Rank 1 ends as told after a second, while the others wait for it.
 *   dies_as_told kill|segv|exit|abort */
#include "victim.h"

int main(int argc, char **argv)
{
    const char *how = argc > 1 ? argv[1] : "";
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1) {
        sleep(1);
        signal(SIGSEGV, SIG_DFL);
        if (!strcmp(how, "kill"))
            raise(SIGKILL);
        if (!strcmp(how, "segv"))
            raise(SIGSEGV);
        if (!strcmp(how, "exit"))
            _exit(3);
        MPI_Abort(MPI_COMM_WORLD, 7);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
