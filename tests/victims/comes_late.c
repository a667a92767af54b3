/* Twenty iterations of a row sent around a ring and a sum over all ranks. Each argument
 * RANK:ITERATION:MILLISECONDS:PLACE makes a rank sleep in one of them and print how long: PLACE e before the exchange,
 * s before the sum, r before the sum in a region "late". */
#include "victim.h"
#include "gammachi.h"
#include <string.h>

static int rank, size;

static void sleep_if_delayed(int argc, char **argv, int iteration, char place)
{
    for (int i = 1; i < argc; i++) {
        int who, when, milliseconds;
        char where;
        if (sscanf(argv[i], "%d:%d:%d:%c", &who, &when, &milliseconds, &where) != 4) {
            fprintf(stderr, "%s: not RANK:ITERATION:MILLISECONDS:PLACE\n", argv[i]);
            MPI_Abort(MPI_COMM_WORLD, 2);
        }
        if (who == rank && when == iteration && where == place) {
            double begin = MPI_Wtime();
            usleep(1000 * milliseconds);
            printf("rank %d slept %.6f s at %c\n", rank, MPI_Wtime() - begin, place);
            fflush(stdout);
        }
    }
}

int main(int argc, char **argv)
{
    double row[100] = {0}, received[100], sum;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int iteration = 0; iteration < 20; iteration++) {
        usleep(2000);
        sleep_if_delayed(argc, argv, iteration, 'e');
        MPI_Sendrecv(row, 100, MPI_DOUBLE, (rank + 1) % size, 1, received, 100, MPI_DOUBLE,
                     (rank + size - 1) % size, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        sleep_if_delayed(argc, argv, iteration, 's');
        gammachi_region_begin("late");
        sleep_if_delayed(argc, argv, iteration, 'r');
        gammachi_region_end("late");
        MPI_Allreduce(row, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
