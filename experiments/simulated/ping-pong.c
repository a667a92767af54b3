// How long messages take between the first and the last rank: prints bytes, seconds of half a round trip, and seconds
// from one message to the next where several are under way, of each size.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { AT_ONCE = 8 };

// All ranks run in one process on one clock: the first reads when the last has received all.
static double received;

static void there_and_back(int rank, int last, char *data, int bytes) {
    if (rank == 0) {
        MPI_Send(data, bytes, MPI_BYTE, last, 0, MPI_COMM_WORLD);
        MPI_Recv(data, bytes, MPI_BYTE, last, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else if (rank == last) {
        MPI_Recv(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(data, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
    }
}

// Ranks leave a barrier one after another: both wait for a message before time begins.
static double begin_together(int rank, int last, char *data) {
    MPI_Barrier(MPI_COMM_WORLD);
    there_and_back(rank, last, data, 1);
    return MPI_Wtime();
}

static double one_message(int rank, int last, char *data, int bytes) {
    double begin = begin_together(rank, last, data);
    there_and_back(rank, last, data, bytes);
    return (MPI_Wtime() - begin) / 2;
}

static double many_messages(int rank, int last, char *data, int bytes) {
    MPI_Request requests[AT_ONCE];
    double begin = begin_together(rank, last, data);
    for (int i = 0; i < AT_ONCE && (rank == 0 || rank == last); i++)
        if (rank == 0)
            MPI_Isend(data, bytes, MPI_BYTE, last, 1, MPI_COMM_WORLD, &requests[i]);
        else
            MPI_Irecv(data, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
    if (rank == 0 || rank == last)
        MPI_Waitall(AT_ONCE, requests, MPI_STATUSES_IGNORE);
    if (rank == last)
        received = MPI_Wtime();
    MPI_Barrier(MPI_COMM_WORLD);
    return received - begin;
}

int main(int argc, char **argv) {
    int rank, size, largest = 1 << 26;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    char *data = malloc((size_t)largest);
    // Powers of two and what lies halfway between them.
    for (int power = 1; power <= largest; power *= 2)
        for (int bytes = power; bytes <= power + power / 2 && bytes <= largest; bytes += power < 2 ? 2 : power / 2) {
            double one = one_message(rank, size - 1, data, bytes), many = many_messages(rank, size - 1, data, bytes);
            double gap = (many - one) / (AT_ONCE - 1);
            if (rank == 0)
                printf("%d,%.9g,%.9g\n", bytes, one, gap < 1e-9 ? 1e-9 : gap);
        }
    free(data);
    MPI_Finalize();
    return 0;
}
