/* An error handler leaves MPI_Send by longjmp; then a region, before any other call of MPI. */
#include "gammachi.h"
#include "longjmp.h"

int main(int argc, char **argv)
{
    begin(&argc, &argv);
    if (setjmp(back) == 0)
        send_to_nobody();
    gammachi_region_begin("after");
    call_comm_rank(3);
    gammachi_region_end("after");
    MPI_Finalize();
    return 0;
}
