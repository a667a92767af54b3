/* Pauses and barriers in turn, until several windows are full. The argument is a number of calls before them: it
 * decides which event is the first of a window. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank;

    MPI_Init(&argc, &argv);
    for (int call = 0; call < atoi(argv[1]); call++)
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int turn = 0; turn < 3000; turn++) {
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Pcontrol(0);
        MPI_Pcontrol(1);
    }
    MPI_Finalize();
    return 0;
}
