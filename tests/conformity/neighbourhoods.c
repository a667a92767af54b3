/* Neighbourhood collectives on all topologies: 4 ranks in a line (ends without a neighbour), a ring, a star
   and a directed chain. No bytes are sent to or received from MPI_PROC_NULL. */
#include "conformity.h"

static int in[64], out[64];

int main(void)
{
    int rank = begin(), open = 0, closed = 1, four = 4, counts[8] = {1, 2, 3, 4};
    int offsets[8] = {0, 8, 16, 24};
    MPI_Aint bytes[8] = {0, 32, 64, 96};
    MPI_Datatype types[8] = {MPI_INT, MPI_DOUBLE, MPI_INT, MPI_INT};
    int index[4] = {3, 4, 5, 6}, edges[6] = {1, 2, 3, 0, 0, 0}, before, behind;
    MPI_Comm line, ring, star, chain;
    MPI_Request request;

    MPI_Cart_create(MPI_COMM_WORLD, 1, &four, &open, 0, &line);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &four, &closed, 0, &ring);
    MPI_Graph_create(MPI_COMM_WORLD, 4, index, edges, 0, &star);
    before = rank - 1;
    behind = rank + 1;
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, rank > 0, &before, MPI_UNWEIGHTED, rank < 3, &behind,
                                   MPI_UNWEIGHTED, MPI_INFO_NULL, 0, &chain);

    MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, ring);
    MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, line);
    MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, star);
    MPI_Neighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, chain);
    MPI_Neighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, ring);
    MPI_Neighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, line);
    MPI_Neighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, star);
    MPI_Neighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, chain);
    for (int i = 0; i < 4; i++)
        counts[i] = 3;
    MPI_Neighbor_allgatherv(in, 3, MPI_INT, out, counts, offsets, MPI_INT, ring);
    MPI_Neighbor_alltoallv(in, counts, offsets, MPI_INT, out, counts, offsets, MPI_INT, ring);
    MPI_Neighbor_alltoallv(in, counts, offsets, MPI_INT, out, counts, offsets, MPI_INT, line);
    MPI_Neighbor_alltoallv(in, counts, offsets, MPI_INT, out, counts, offsets, MPI_INT, chain);
    counts[0] = 1;
    counts[1] = 2;
    types[0] = types[1] = MPI_INT;
    /* In a ring, data sent to the right arrives from the left. */
    MPI_Neighbor_alltoallw(in, counts, bytes, types, out, (int[]){2, 1}, bytes, types, ring);
    MPI_Ineighbor_alltoall(in, 2, MPI_INT, out, 2, MPI_INT, star, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Ineighbor_allgather(in, 1, MPI_INT, out, 1, MPI_INT, chain, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);

    MPI_Comm_free(&line);
    MPI_Comm_free(&ring);
    MPI_Comm_free(&star);
    MPI_Comm_free(&chain);
    MPI_Finalize();
    return 0;
}
