/* Every blocking collective operation, with a root in the middle. Bytes are those of the rank's send and receive
   buffers, its own part included. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), in[64] = {0}, out[64];
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Barrier(comm);
    MPI_Bcast(in, 10, MPI_INT, 1, comm);
    MPI_Gather(in, 2, MPI_INT, out, 2, MPI_INT, 1, comm);
    MPI_Scatter(in, 3, MPI_INT, out, 3, MPI_INT, 1, comm);
    MPI_Allgather(in, 4, MPI_INT, out, 2, MPI_DOUBLE, comm);
    MPI_Alltoall(in, 5, MPI_INT, out, 5, MPI_INT, comm);
    MPI_Reduce(in, out, 6, MPI_INT, MPI_SUM, 1, comm);
    MPI_Allreduce(in, out, 7, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(in, out, 8, MPI_INT, MPI_SUM, comm);
    MPI_Scan(in, out, 9, MPI_INT, MPI_SUM, comm);
    /* Rank 0 receives nothing. */
    MPI_Exscan(in, out, 10, MPI_INT, MPI_SUM, comm);
    /* Only the root specifies where to receive, or what to send. */
    MPI_Gather(in, 2, MPI_INT, rank == 1 ? out : NULL, rank == 1 ? 2 : -7,
               rank == 1 ? MPI_INT : MPI_DATATYPE_NULL, 1, comm);
    MPI_Scatter(rank == 1 ? in : NULL, rank == 1 ? 3 : -7, rank == 1 ? MPI_INT : MPI_DATATYPE_NULL,
                out, 3, MPI_INT, 1, comm);
    /* Empty operations. */
    MPI_Bcast(NULL, 0, MPI_INT, 1, comm);
    MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, comm);
    MPI_Allreduce(in, out, 2, MPI_INT, MPI_SUM, MPI_COMM_SELF);
    MPI_Finalize();
    return 0;
}
