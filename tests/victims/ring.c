/* Known calls per rank: 10 MPI_Allreduce, 5 MPI_Sendrecv, 1 MPI_Barrier, which scripts/launchers counts. */
#include "victim.h"

int main(int count, char **words)
{
    MPI_Init(&count, &words);
    int rank, size, sum = 0, got = 0, length;
    char host[MPI_MAX_PROCESSOR_NAME];
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(host, &length);
    for (int i = 0; i < 10; i++)
        MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    int right = (rank + 1) % size, left = (rank + size - 1) % size;
    for (int i = 0; i < 5; i++)
        MPI_Sendrecv(&rank, 1, MPI_INT, right, i, &got, 1, MPI_INT, left, i, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
    MPI_Barrier(MPI_COMM_WORLD);
    printf("rank %d of %d on %s: %s\n", rank, size, host,
           sum == size * (size - 1) / 2 && got == left ? "right" : "WRONG");
    MPI_Finalize();
    return 0;
}
