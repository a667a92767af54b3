/* Probes that find a message, and matched probes with their receives. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), in[8], out[8] = {0}, flag = 0;
    MPI_Status status;
    MPI_Message message;
    MPI_Request request;
    if (rank == 0) {
        for (int tag = 1; tag <= 5; tag++)
            MPI_Send(out, tag, MPI_INT, 1, tag, MPI_COMM_WORLD);
        MPI_Send(out, 6, MPI_INT, 1, 6, MPI_COMM_WORLD);
    } else {
        /* The last message has arrived, so the others have. */
        MPI_Probe(0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        MUST(status.MPI_SOURCE == 0 && status.MPI_TAG == 1);
        MPI_Recv(in, 8, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Iprobe(MPI_ANY_SOURCE, 2, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
        MUST(flag);
        MPI_Recv(in, 8, MPI_INT, 0, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Mprobe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
        MPI_Mrecv(in, 8, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Improbe(0, 4, MPI_COMM_WORLD, &flag, &message, &status);
        MUST(flag);
        MPI_Mrecv(in, 8, MPI_INT, &message, &status);
        MUST(status.MPI_TAG == 4);
        MPI_Improbe(0, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
        MUST(flag);
        MPI_Imrecv(in, 8, MPI_INT, &message, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Recv(in, 8, MPI_INT, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Probe(MPI_PROC_NULL, 9, MPI_COMM_WORLD, &status);
        MUST(status.MPI_SOURCE == MPI_PROC_NULL);
    }
    MPI_Finalize();
    return 0;
}
