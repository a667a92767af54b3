/* Packed messages. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), values[8] = {0}, size = 0, position = 0;
    char buffer[256];
    double parts[4] = {0};
    MPI_Pack_size(8, MPI_INT, MPI_COMM_WORLD, &size);
    if (rank == 0) {
        MPI_Pack(values, 8, MPI_INT, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        MPI_Pack(parts, 2, MPI_DOUBLE, buffer, sizeof buffer, &position, MPI_COMM_WORLD);
        MPI_Send(buffer, position, MPI_PACKED, 1, 4, MPI_COMM_WORLD);
    } else {
        MPI_Recv(buffer, sizeof buffer, MPI_PACKED, 0, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Unpack(buffer, sizeof buffer, &position, values, 8, MPI_INT, MPI_COMM_WORLD);
        MPI_Unpack(buffer, sizeof buffer, &position, parts, 2, MPI_DOUBLE, MPI_COMM_WORLD);
    }
    MPI_Finalize();
    return 0;
}
