/* An error handler leaves a call made near the base of the stack; all later calls but the last are made
 * by functions deeper in the stack. */
#include "victim.h"
#include <setjmp.h>

static jmp_buf back;

static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

__attribute__((noinline)) static void deeper(int times)
{
    volatile char room[4096];
    memset((void *)room, 1, sizeof room);
    call_comm_rank(times + room[7] - 1);
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
    deeper(50);
    MPI_Finalize();
    return 0;
}
