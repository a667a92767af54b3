/* An error handler leaves MPI_Send by longjmp; then a region, before any other call of MPI. */
#include "gammachi.h"
#include "victim.h"
#include <setjmp.h>

static jmp_buf back;

static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

int main(int argc, char **argv)
{
    int one = 1;
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (setjmp(back) == 0)
        MPI_Send(&one, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
    gammachi_region_begin("after");
    call_comm_rank(3);
    gammachi_region_end("after");
    MPI_Finalize();
    return 0;
}
