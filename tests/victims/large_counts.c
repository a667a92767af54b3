/* The large-count procedures of MPI-4 (MPICH 4 has them, Open MPI 4 does not). */
#include "victim.h"

int main(int argc, char **argv)
{
    int sent[2] = {3, 4}, received[2] = {0, 0}, sum = 0;
    MPI_Datatype pair;
    MPI_Request request;
    MPI_Status status;
    MPI_Count count = -1, bytes = -1;

    MPI_Init(&argc, &argv);
    MPI_Type_contiguous_c(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Irecv_c(received, 1, pair, 0, 1, MPI_COMM_SELF, &request);
    MPI_Send_c(sent, 1, pair, 0, 1, MPI_COMM_SELF);
    MPI_Wait(&request, &status);
    MPI_Get_count_c(&status, MPI_INT, &count);
    MPI_Type_size_c(pair, &bytes);
    MPI_Allreduce_c(&received[1], &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    MPI_Bcast_c(received, 2, MPI_INT, 0, MPI_COMM_SELF);
    printf("%d %d %d count %lld bytes %lld\n", received[0], received[1], sum, (long long)count,
           (long long)bytes);
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
