/* A signal handler on an alternate stack calls MPI inside and outside of an MPI call. */
#include "victim.h"

static volatile int handled;

static void handle(int signal)
{
    int rank;
    (void)signal;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    handled++;
}

/* The callback of an MPI call raises the signal: the handler runs inside that call. */
static void sum_and_raise(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
    raise(SIGUSR1);
}

int main(int argc, char **argv)
{
    /* Static memory is below the heap and the main stack; an array in main's own frame is above the
     * frames of the calls. */
    int on_high_addresses = argc > 1, one = 1, sum = 1;
    static char low[65536];
    char high[65536];
    struct sigaction action;
    stack_t stack = {.ss_sp = on_high_addresses ? high : low, .ss_size = 65536};
    MPI_Op op;

    MPI_Init(&argc, &argv);
    sigaltstack(&stack, NULL);
    memset(&action, 0, sizeof action);
    action.sa_handler = handle;
    action.sa_flags = SA_ONSTACK;
    sigaction(SIGUSR1, &action, NULL);
    raise(SIGUSR1);
    MPI_Op_create(sum_and_raise, 1, &op);
    MPI_Reduce_local(&one, &sum, 1, MPI_INT, op);
    MPI_Op_free(&op);
    call_comm_rank(3);
    printf("handled %d sum %d\n", handled, sum);
    MPI_Finalize();
    return 0;
}
