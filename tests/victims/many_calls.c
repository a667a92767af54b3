/* Calls MPI_Comm_rank as often as the argument says, and sums the results. */
#include "victim.h"

int main(int argc, char **argv)
{
    int times = atoi(argv[1]), rank;

    MPI_Init(&argc, &argv);
    rank = call_comm_rank(times);
    if (rank == 0)
        printf("%d calls\n", times);
    MPI_Finalize();
    return 0;
}
