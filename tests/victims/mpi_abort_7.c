/* Ends the job with MPI_Abort and code 7 after 10 calls. */
#include "victim.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    call_comm_rank(10);
    MPI_Abort(MPI_COMM_WORLD, 7);
    return 0;
}
