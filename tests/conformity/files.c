/* MPI-IO: bytes and file of each call; the library's own calls are not recorded. The file is in the working
   directory. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), values[16] = {0}, in[16];
    MPI_File file, own;
    MPI_Request request;
    MPI_Status status;
    MPI_Comm twin;
    char name[32];
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_File_open(twin, "shared.data", MPI_MODE_CREATE | MPI_MODE_RDWR, MPI_INFO_NULL, &file);
    snprintf(name, sizeof name, "own-%d.data", rank);
    MPI_File_open(MPI_COMM_SELF, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                  MPI_INFO_NULL, &own);
    MPI_File_write_at(file, rank * 64, values, 16, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_write_at_all(file, rank * 64, values, 16, MPI_INT, &status);
    MPI_File_sync(file);
    MPI_Barrier(twin);
    MPI_File_read_at(file, rank * 64, in, 16, MPI_INT, MPI_STATUS_IGNORE);
    /* A larger buffer than the 8 bytes before the end of the file. */
    MPI_File_read_at(file, 120, in, 16, MPI_INT, &status);
    MPI_File_read_at(file, 120, in, 16, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_read_at_all(file, rank * 64, in, 4, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_set_view(file, rank * 64, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
    MPI_File_write_all(file, values, 8, MPI_INT, MPI_STATUS_IGNORE);
    MPI_File_iwrite(own, values, 10, MPI_INT, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_File_seek(own, 0, MPI_SEEK_SET);
    MPI_File_iread(own, in, 10, MPI_INT, &request);
    MPI_Wait(&request, &status);
    MPI_File_close(&own);
    MPI_File_close(&file);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    return 0;
}
