/* The v and w variants: a count, or a count and a type, for each rank. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), in[64] = {0}, out[64];
    int counts[3] = {1, 0, 3}, offsets[3] = {0, 1, 1}, all[3];
    int mine = counts[rank], to[3], from[3], in_offsets[3], out_offsets[3];
    MPI_Datatype send_types[3], receive_types[3], pair;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Gatherv(in, mine, MPI_INT, out, counts, offsets, MPI_INT, 1, comm);
    MPI_Scatterv(in, counts, offsets, MPI_INT, out, mine, MPI_INT, 1, comm);
    MPI_Allgatherv(in, mine, MPI_INT, out, counts, offsets, MPI_INT, comm);
    /* Rank i sends i + j elements to rank j. */
    for (int other = 0; other < 3; other++) {
        to[other] = from[other] = rank + other;
        in_offsets[other] = out_offsets[other] = other * 8;
        all[other] = other + 1;
    }
    MPI_Alltoallv(in, to, in_offsets, MPI_INT, out, from, out_offsets, MPI_INT, comm);
    /* As pairs to and from rank 2, otherwise as single elements. */
    for (int other = 0; other < 3; other++) {
        int pairs = rank == 2 || other == 2;
        send_types[other] = receive_types[other] = pairs ? pair : MPI_INT;
        in_offsets[other] = out_offsets[other] = other * 64;
    }
    MPI_Alltoallw(in, to, in_offsets, send_types, out, from, out_offsets, receive_types, comm);
    MPI_Reduce_scatter(in, out, all, MPI_INT, MPI_SUM, comm);
    MPI_Type_free(&pair);
    MPI_Finalize();
    return 0;
}
