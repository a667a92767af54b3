/* Calls MPI_Comm_rank as often as the argument says; with a second argument, after a marker. */
#include "gammachi.h"
#include "victim.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    if (argc > 2)
        gammachi_region_begin("one slot");
    call_comm_rank(atoi(argv[1]));
    MPI_Finalize();
    return 0;
}
