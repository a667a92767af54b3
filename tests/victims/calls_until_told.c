/* Calls MPI as fast as it can until a file exists.
 *   calls_until_told FILE */
#include "victim.h"

#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, goes_on = 1;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    while (goes_on) {
        for (int i = 0; i < 1000; i++) {
            int in, out = i, to = (rank + 1) % size, from = (rank + size - 1) % size;

            for (int j = 0; j < 10; j++)
                MPI_Comm_rank(MPI_COMM_WORLD, &in);
            MPI_Sendrecv(&out, 1, MPI_INT, to, i % 7, &in, 1, MPI_INT, from, i % 7, MPI_COMM_WORLD,
                         MPI_STATUS_IGNORE);
        }
        goes_on = access(argv[1], F_OK) != 0;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
