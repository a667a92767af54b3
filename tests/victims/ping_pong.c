/* ping_pong BYTES ROUNDS: a measurement independent of `kernels network`. Prints the median over rounds of
   half a round trip in seconds, and of one-way bandwidth in bytes per second (a window of messages, one
   acknowledgement), timed with MPI_Wtime. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WINDOW 64
#define WINDOW_BYTES (16L << 20)

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int bytes = argc > 1 ? atoi(argv[1]) : 8, rounds = argc > 2 ? atoi(argv[2]) : 25;
    long fit = WINDOW_BYTES / bytes;
    int window = fit < 2 ? 2 : fit > MOST_WINDOW ? MOST_WINDOW : (int)fit;
    int trips = bytes <= 65536 ? 50 : 5;
    /* Aligned to pages, as large arrays are: copies between buffers with different alignment are slower. */
    char *out = aligned_alloc(4096, ((size_t)bytes / 4096 + 1) * 4096), word = 0;
    char *into = aligned_alloc(4096, ((size_t)bytes * window / 4096 + 1) * 4096);
    double *half = calloc(rounds, sizeof *half), *rate = calloc(rounds, sizeof *rate);
    MPI_Request requests[MOST_WINDOW];
    memset(out, 1, bytes);
    memset(into, 0, (size_t)bytes * window);
    for (int round = -2; round < rounds; round++) {
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int trip = 0; trip < trips; trip++) {
            if (rank == 0) {
                MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
                MPI_Recv(into, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            } else if (rank == 1) {
                MPI_Recv(into, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
                MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
            }
        }
        double trip_s = (MPI_Wtime() - begin) / trips;
        for (int i = 0; rank == 1 && i < window; i++)
            MPI_Irecv(into + (size_t)i * bytes, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[i]);
        MPI_Barrier(MPI_COMM_WORLD);
        begin = MPI_Wtime();
        for (int i = 0; rank == 0 && i < window; i++)
            MPI_Isend(out, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[i]);
        if (rank < 2)
            MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(&word, 1, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 1)
            MPI_Send(&word, 1, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        double flow_s = MPI_Wtime() - begin;
        if (round >= 0) {
            half[round] = trip_s / 2;
            rate[round] = (double)bytes * window / flow_s;
        }
    }
    qsort(half, rounds, sizeof *half, ascending);
    qsort(rate, rounds, sizeof *rate, ascending);
    if (rank == 0)
        printf("%.9e %.9e\n", half[rounds / 2], rate[rounds / 2]);
    MPI_Finalize();
    return 0;
}
