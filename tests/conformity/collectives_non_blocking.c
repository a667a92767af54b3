/* The non-blocking collective operations: the same bytes as the blocking ones, and a request each. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), in[64] = {0}, out[20][64], counts[3] = {1, 2, 3}, offsets[3] = {0, 1, 3};
    int bytes[3] = {0, 4, 12}, n = 0, ones[3] = {2, 2, 2}, flag = 0;
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Request requests[20];
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Ibarrier(comm, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Ibcast(in, 10, MPI_INT, 1, comm, &requests[n++]);
    MPI_Igather(in, 2, MPI_INT, out[0], 2, MPI_INT, 1, comm, &requests[n++]);
    MPI_Igatherv(in, counts[rank], MPI_INT, out[1], counts, offsets, MPI_INT, 1, comm, &requests[n++]);
    MPI_Iscatter(in, 3, MPI_INT, out[2], 3, MPI_INT, 1, comm, &requests[n++]);
    MPI_Iscatterv(in, counts, offsets, MPI_INT, out[3], counts[rank], MPI_INT, 1, comm,
                  &requests[n++]);
    MPI_Iallgather(in, 4, MPI_INT, out[4], 4, MPI_INT, comm, &requests[n++]);
    MPI_Iallgatherv(in, counts[rank], MPI_INT, out[5], counts, offsets, MPI_INT, comm,
                    &requests[n++]);
    MPI_Ialltoall(in, 5, MPI_INT, out[6], 5, MPI_INT, comm, &requests[n++]);
    MPI_Ialltoallv(in, ones, offsets, MPI_INT, out[7], ones, offsets, MPI_INT, comm, &requests[n++]);
    MPI_Ialltoallw(in, ones, bytes, types, out[8], ones, bytes, types, comm, &requests[n++]);
    MPI_Ireduce(in, out[9], 6, MPI_INT, MPI_SUM, 1, comm, &requests[n++]);
    MPI_Iallreduce(in, out[10], 7, MPI_INT, MPI_SUM, comm, &requests[n++]);
    MPI_Iallreduce(MPI_IN_PLACE, out[11], 7, MPI_INT, MPI_SUM, comm, &requests[n++]);
    MPI_Ireduce_scatter_block(in, out[12], 8, MPI_INT, MPI_SUM, comm, &requests[n++]);
    MPI_Ireduce_scatter(in, out[13], counts, MPI_INT, MPI_SUM, comm, &requests[n++]);
    MPI_Iscan(in, out[14], 9, MPI_INT, MPI_SUM, comm, &requests[n++]);
    MPI_Iexscan(in, out[15], 10, MPI_INT, MPI_SUM, comm, &requests[n++]);
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    MPI_Ibcast(in, 10, MPI_INT, 1, comm, &requests[0]);
    MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
    MPI_Test(&requests[0], &flag, MPI_STATUS_IGNORE);
    MPI_Finalize();
    return 0;
}
