/* As many calls of MPI_Comm_rank as the argument says, after one marker when there is another. */
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
