/* Sends to itself as often as the argument says. */
#include "victim.h"

int main(int argc, char **argv)
{
    int in = 0, out = 1, times = atoi(argv[1]);
    MPI_Request request;

    MPI_Init(&argc, &argv);
    for (int i = 0; i < times; i++) {
        MPI_Irecv(&in, 1, MPI_INT, 0, i, MPI_COMM_SELF, &request);
        MPI_Send(&out, 1, MPI_INT, 0, i, MPI_COMM_SELF);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Finalize();
    return 0;
}
