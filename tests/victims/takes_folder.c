/* After some barriers, rank 0 renames the folder that the argument names and replaces it by a plain file; then all
   ranks finalize. */
#include "victim.h"

int main(int argc, char **argv)
{
    char aside[4096];
    int rank;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 10; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
        snprintf(aside, sizeof aside, "%s-aside", argv[1]);
        rename(argv[1], aside);
        fclose(fopen(argv[1], "w"));
    }
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
