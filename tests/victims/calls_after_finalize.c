/* calls_after_finalize [wrong]: after MPI_Finalize makes the calls that are then allowed and, with the
 * argument, one that is not. */
#include "victim.h"

int main(int argc, char **argv)
{
    int wrong = argc > 1, flag = 0, length = 0, rank = -1;
    char version[MPI_MAX_LIBRARY_VERSION_STRING];

    MPI_Init(&argc, &argv);
    call_comm_rank(4);
    MPI_Finalize();
    MPI_Finalized(&flag);
    MPI_Get_library_version(version, &length);
    printf("finalized %d version %d\n", flag, length > 0);
    MPI_Initialized(&flag);
    printf("initialized %d\n", flag);
    fflush(stdout);
    if (wrong)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return 3;
}
