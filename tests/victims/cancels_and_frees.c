/* Receives and sends on one stream that are cancelled and whose requests are then freed without a wait, then
 * ten messages of different sizes on it; and receives of MPI_MESSAGE_NO_PROC. */
#include "victim.h"

int main(int argc, char **argv)
{
    int rank, got, flag = 0, cancelled = 0, value[64] = {0}, in[64];
    MPI_Request request;
    MPI_Status status;
    MPI_Message nothing = MPI_MESSAGE_NO_PROC;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1) {
        MPI_Irecv(in, 64, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        MPI_Request_free(&request);
        MPI_Irecv(in, 64, MPI_INT, 0, 5, MPI_COMM_WORLD, &request);
        MPI_Cancel(&request);
        while (!flag)
            MPI_Request_get_status(request, &flag, MPI_STATUS_IGNORE);
        MPI_Request_free(&request);
    }
    /* MPICH cancels such a send, Open MPI does not. */
    MPI_Issend(value, 1, MPI_INT, 0, 6, MPI_COMM_SELF, &request);
    MPI_Cancel(&request);
    MPI_Request_get_status(request, &flag, &status);
    if (flag)
        MPI_Test_cancelled(&status, &cancelled);
    if (!flag || !cancelled)
        MPI_Recv(in, 1, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Request_free(&request);
    MPI_Barrier(MPI_COMM_WORLD);
    for (int size = 2; size < 12; size++) {
        if (rank == 0) {
            MPI_Send(value, size, MPI_INT, 1, 5, MPI_COMM_WORLD);
        } else {
            MPI_Recv(in, 64, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
            MPI_Get_count(&status, MPI_INT, &got);
            if (got != size)
                return 1;
        }
        MPI_Isend(value, size, MPI_INT, 0, 6, MPI_COMM_SELF, &request);
        MPI_Recv(in, 64, MPI_INT, 0, 6, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Mrecv(in, 1, MPI_INT, &nothing, MPI_STATUS_IGNORE);
    nothing = MPI_MESSAGE_NO_PROC;
    MPI_Imrecv(in, 1, MPI_INT, &nothing, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
