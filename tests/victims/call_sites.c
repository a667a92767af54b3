/* Calls MPI from two places in one function and one in another; the test looks for these lines. */
#include "victim.h"

__attribute__((noinline)) void exchange(int times)
{
    for (int i = 0; i < times; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Barrier(MPI_COMM_SELF);
}

__attribute__((noinline)) int ask(void)
{
    int flag;
    MPI_Initialized(&flag);
    return flag;
}

int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    exchange(100 + ask());
    MPI_Finalize();
    return 0;
}
