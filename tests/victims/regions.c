/* Regions: nested, repeated, with calls inside; also built as C++ and as executable at a fixed address. */
#include "gammachi.h"
#include "victim.h"

int main(int argc, char **argv)
{
    gammachi_region_begin("too early");
    MPI_Init(&argc, &argv);
    gammachi_region_begin("solve");
    int rank = call_comm_rank(1);
    for (int i = 0; i < 2; i++) {
        gammachi_region_begin("inner \xc3\xb6");
        MPI_Barrier(MPI_COMM_WORLD);
        gammachi_region_end("inner \xc3\xb6");
    }
    gammachi_region_end("solve");
    if (rank == 0)
        puts("ran");
    MPI_Finalize();
    gammachi_region_begin("too late");
    return 0;
}
