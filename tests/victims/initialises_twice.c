/* MPI_Init twice, the error returned; MPI_Finalize once. */
#include "victim.h"

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    printf("again: %d\n", MPI_Init(&argc, &argv) != MPI_SUCCESS);
    call_comm_rank(5);
    MPI_Finalize();
    return 0;
}
