/* An error handler leaves a call with few arguments by longjmp; the next calls, made by the same
 * function, have more arguments on the stack. */
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
    int one = 1, other = 0, zero = 0, count = 1;
    MPI_Errhandler handler;
    MPI_Datatype type = MPI_INT;

    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    if (setjmp(back) == 0)
        MPI_Probe(99, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Alltoallw(&one, &count, &zero, &type, &other, &count, &zero, &type, MPI_COMM_SELF);
    MPI_Sendrecv(&one, 1, MPI_INT, 0, 9, &other, 1, MPI_INT, 0, 9, MPI_COMM_SELF,
                 MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
