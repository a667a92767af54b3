/* Duplicates MPI_COMM_WORLD after a pause of 100 ms, then makes 100 barriers on the duplicate. */
#include "victim.h"

int main(int argc, char **argv)
{
    MPI_Comm duplicate;

    MPI_Init(&argc, &argv);
    usleep(100 * 1000);
    MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
    for (int i = 0; i < 100; i++)
        MPI_Barrier(duplicate);
    MPI_Comm_free(&duplicate);
    MPI_Finalize();
    return 0;
}
