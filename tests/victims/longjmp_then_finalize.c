/* An error handler leaves MPI_Send by longjmp on rank 0; MPI_Finalize is the very next call. */
#include "longjmp.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (call_comm_rank(1) == 0 && setjmp(back) == 0)
        send_to_nobody();
    MPI_Finalize();
    return 0;
}
