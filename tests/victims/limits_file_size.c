/* Limits the size of files to 1.5 MB after MPI_Init on the ranks named by the argument ("all" or a
 * number), then makes 2,000,000 calls, and checks that the limit is unchanged. */
#include "victim.h"
#include <sys/resource.h>

int main(int argc, char **argv)
{
    int rank;
    struct rlimit limit = {1500000, 1500000};

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(argv[1], "all") == 0 || atoi(argv[1]) == rank)
        setrlimit(RLIMIT_FSIZE, &limit);
    call_comm_rank(2000000);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0)
        printf("done\n");
    MPI_Finalize();
    return 3;
}
