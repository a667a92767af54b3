/* An error handler leaves MPI_Send by longjmp on a stack made for makecontext, which is unmapped before the next
 * call; that is made once on the first stack, once on another stack below. */
#include "victim.h"
#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>

enum { STACK = 256 << 10 };
static jmp_buf back;
static ucontext_t here, there;

static void leave(MPI_Comm *comm, int *code, ...)
{
    (void)comm, (void)code;
    longjmp(back, 1);
}

static void send(void)
{
    int one = 1;
    if (setjmp(back) == 0)
        MPI_Send(&one, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
}

static void call(void)
{
    call_comm_rank(3);
}

static void run(void (*what)(void), char *stack)
{
    getcontext(&there);
    there.uc_stack.ss_sp = stack;
    there.uc_stack.ss_size = STACK;
    there.uc_link = &here;
    makecontext(&there, what, 0);
    swapcontext(&here, &there);
}

int main(int argc, char **argv)
{
    MPI_Errhandler handler;

    MPI_Init(&argc, &argv);
    MPI_Comm_create_errhandler(leave, &handler);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, handler);
    for (int below = 0; below < 2; below++) {
        char *stacks = mmap(NULL, 2 * STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (stacks == MAP_FAILED)
            return 7;
        run(send, stacks + STACK);
        munmap(stacks + STACK, STACK);
        if (below)
            run(call, stacks);
        else
            call();
        munmap(stacks, STACK);
    }
    MPI_Finalize();
    return 0;
}
