/* Shared by victims whose error handler leaves MPI_Send by longjmp. */
#include "victim.h"
#include <setjmp.h>

static jmp_buf back;

static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

/* MPI_Init, and a handler of errors that leaves the call. */
static void begin(int *argc, char ***argv)
{
    MPI_Init(argc, argv);
    handle_errors(leave);
}

/* A call that fails, made in the caller's frame. */
__attribute__((always_inline)) static inline void send_to_nobody(void)
{
    int one = 1;

    MPI_Send(&one, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
}
