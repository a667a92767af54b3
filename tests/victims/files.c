/* MPI-IO on 2 ranks into the file that the argument names; ROMIO calls MPI inside. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, values[100];
    MPI_File file;
    MPI_Status status;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    for (int i = 0; i < 100; i++)
        values[i] = 1000 * rank + i;
    MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_at_all(file, 100 * rank, values, 100, MPI_INT, &status);
    MPI_File_write_at(file, 100 * rank, values, 100, MPI_INT, &status);
    MPI_File_sync(file);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_sync(file);
    MPI_File_read_at_all(file, 100 * (1 - rank), values, 100, MPI_INT, &status);
    MPI_File_close(&file);
    if (values[99] != 1000 * (1 - rank) + 99)
        MPI_Abort(MPI_COMM_WORLD, 9);
    MPI_Finalize();
    return 0;
}
