// An error handler throws a C++ exception through MPI_Send; the program catches it and continues.
#include "victim.h"

struct Failure {
    int code;
};

static void leave(MPI_Comm *, int *code, ...)
{
    throw Failure{*code};
}

int main(int argc, char **argv)
{
    int one = 1;

    MPI_Init(&argc, &argv);
    handle_errors(leave);
    call_comm_rank(5);
    try {
        MPI_Send(&one, 1, MPI_INT, 99, 1, MPI_COMM_WORLD);
    } catch (const Failure &) {
        puts("caught");
        fflush(stdout);
    }
    if (argc > 1)
        deeper(7);
    else
        for (int i = 0; i < 7; i++)
            MPI_Comm_rank(MPI_COMM_WORLD, &one);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
}
