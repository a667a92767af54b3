/* An error handler leaves MPI_Send by longjmp; the program continues. */
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
    call_comm_rank(5);
    if (setjmp(back) == 0)
        MPI_Send(&one, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
    else
        puts("left");
    for (int i = 0; i < 7; i++)
        MPI_Comm_rank(MPI_COMM_WORLD, &one);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
