/* 2 ranks (or, with an argument, one that dies) make 1000 calls and a barrier; then rank 1 makes 500 more and is killed by SIGKILL, while
 * rank 0 continues with its own calls until the launcher ends it. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(1000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 1 || argc > 1) {
        call_comm_rank(500);
        kill(getpid(), SIGKILL);
    }
    for (int i = 0; i < 2000; i++) {
        call_comm_rank(10);
        usleep(1000);
    }
    MPI_Finalize();
    return 0;
}
