// How long messages take between the first and the last rank: prints bytes and seconds, half a round trip, of each size.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
    int rank, size, largest = 1 << 26;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *data = malloc((size_t)largest);
    // Powers of two and what lies halfway between them.
    for (int power = 1; power <= largest; power *= 2)
        for (int bytes = power; bytes <= power + power / 2 && bytes <= largest; bytes += power < 2 ? 2 : power / 2) {
            MPI_Barrier(MPI_COMM_WORLD);
            double begin = MPI_Wtime();
            if (rank == 0) {
                MPI_Send(data, bytes, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD);
                MPI_Recv(data, bytes, MPI_BYTE, size - 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                printf("%d,%.9g\n", bytes, (MPI_Wtime() - begin) / 2);
            } else if (rank == size - 1) {
                MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        }
    free(data);
    MPI_Finalize();
    return 0;
}
