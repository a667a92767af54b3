/* Calls MPI three functions deep: main > outer > middle > inner; rank 1 is late. */
#include "victim.h"

static __attribute__((noinline)) int inner(int rank)
{
    if (rank == 1)
        usleep(2000);
    return MPI_Barrier(MPI_COMM_WORLD) + 1;
}

static __attribute__((noinline)) int middle(int rank, int times)
{
    int sum = 0;
    for (int i = 0; i < times; i++)
        sum += inner(rank);
    return sum;
}

static __attribute__((noinline)) int outer(int rank)
{
    /* Stack space of variable size. */
    volatile char room[16 + 16 * rank];
    room[0] = 1;
    return middle(rank, 20) + room[0];
}

int main(int argc, char **argv)
{
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int sum = outer(rank);
    MPI_Finalize();
    return sum == 21 ? 0 : 1;
}
