/* MPI_IN_PLACE: the omitted buffer is the rank's own part of the other. The arguments that belong to it are
   ignored: counts may be NULL, types MPI_DATATYPE_NULL. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), data[64] = {0}, counts[3] = {1, 2, 3}, offsets[3] = {0, 1, 3};
    int bytes[3] = {0, 4, 12};
    MPI_Datatype types[3] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Comm comm = MPI_COMM_WORLD;
    const int root = rank == 1;
    MPI_Gather(root ? MPI_IN_PLACE : data, root ? 0 : 2, root ? MPI_DATATYPE_NULL : MPI_INT, data, 2,
               MPI_INT, 1, comm);
    MPI_Gatherv(root ? MPI_IN_PLACE : data, root ? 0 : counts[rank],
                root ? MPI_DATATYPE_NULL : MPI_INT, data, root ? counts : NULL,
                root ? offsets : NULL, MPI_INT, 1, comm);
    MPI_Scatter(data, 3, MPI_INT, root ? MPI_IN_PLACE : data, root ? 0 : 3,
                root ? MPI_DATATYPE_NULL : MPI_INT, 1, comm);
    MPI_Scatterv(data, root ? counts : NULL, root ? offsets : NULL, MPI_INT,
                 root ? MPI_IN_PLACE : data, root ? 0 : counts[rank],
                 root ? MPI_DATATYPE_NULL : MPI_INT, 1, comm);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 4, MPI_INT, comm);
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, counts, offsets, MPI_INT, comm);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 5, MPI_INT, comm);
    /* The same count between any two ranks. */
    counts[0] = counts[1] = counts[2] = 2;
    offsets[1] = 2;
    offsets[2] = 4;
    bytes[1] = 8;
    bytes[2] = 16;
    MPI_Alltoallv(MPI_IN_PLACE, NULL, NULL, MPI_DATATYPE_NULL, data, counts, offsets, MPI_INT, comm);
    MPI_Alltoallw(MPI_IN_PLACE, NULL, NULL, NULL, data, counts, bytes, types, comm);
    MPI_Reduce(root ? MPI_IN_PLACE : data, data, 6, MPI_INT, MPI_SUM, 1, comm);
    MPI_Allreduce(MPI_IN_PLACE, data, 7, MPI_INT, MPI_SUM, comm);
    MPI_Reduce_scatter_block(MPI_IN_PLACE, data, 8, MPI_INT, MPI_SUM, comm);
    counts[2] = 5;
    MPI_Reduce_scatter(MPI_IN_PLACE, data, counts, MPI_INT, MPI_SUM, comm);
    MPI_Scan(MPI_IN_PLACE, data, 9, MPI_INT, MPI_SUM, comm);
    MPI_Exscan(MPI_IN_PLACE, data, 10, MPI_INT, MPI_SUM, comm);
    MPI_Finalize();
    return 0;
}
