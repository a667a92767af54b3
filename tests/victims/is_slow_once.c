/* Iterates in steps of some 20 ms. Again and again, in one of 80, rank 1 takes ten times as long. */
#include <mpi.h>
#include <time.h>

int main(int argc, char **argv)
{
    int rank, in = 0, out = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int step = 0; step < 900; step++) {
        struct timespec time = {0, 20000000};

        if (rank == 1 && step % 80 == 79)
            time.tv_nsec = 200000000;
        nanosleep(&time, NULL);
        MPI_Allreduce(&out, &in, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
