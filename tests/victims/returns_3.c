/* Finalizes and returns 3. */
#include "victim.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    call_comm_rank(10);
    MPI_Finalize();
    return 3;
}
