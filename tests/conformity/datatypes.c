/* The bytes of a user datatype are its size, not its extent; a handle that is freed and reused for another size
   has the new size. */
#include "conformity.h"

static void exchange(int rank, int count, MPI_Datatype type, int tag)
{
    static char data[4096];
    if (rank == 0)
        MPI_Send(data, count, type, 1, tag, MPI_COMM_WORLD);
    else
        MPI_Recv(data, count, type, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

int main(void)
{
    int rank = begin(), lengths[2] = {3, 2};
    MPI_Aint offsets[2] = {0, 16};
    MPI_Datatype parts[2] = {MPI_INT, MPI_DOUBLE}, type, resized;

    MPI_Type_contiguous(5, MPI_INT, &type);
    MPI_Type_commit(&type);
    exchange(rank, 2, type, 1);
    MPI_Type_free(&type);

    MPI_Type_vector(3, 2, 5, MPI_INT, &type);
    MPI_Type_commit(&type);
    exchange(rank, 2, type, 2);
    MPI_Type_free(&type);

    MPI_Type_create_struct(2, lengths, offsets, parts, &type);
    MPI_Type_create_resized(type, 0, 64, &resized);
    MPI_Type_commit(&resized);
    exchange(rank, 3, resized, 3);
    MPI_Type_free(&type);
    MPI_Type_free(&resized);

    for (int size = 1; size <= 100; size++) {
        MPI_Type_contiguous(size, MPI_CHAR, &type);
        MPI_Type_commit(&type);
        exchange(rank, 1, type, size);
        MPI_Type_free(&type);
    }
    /* More simultaneous types than fit a small cache, each used twice. */
    MPI_Datatype many[40];
    for (int i = 0; i < 40; i++) {
        MPI_Type_contiguous(i + 1, MPI_SHORT, &many[i]);
        MPI_Type_commit(&many[i]);
    }
    for (int i = 0; i < 80; i++)
        exchange(rank, 1, many[i % 40], i);
    for (int i = 0; i < 40; i++)
        MPI_Type_free(&many[i]);
    MPI_Finalize();
    return 0;
}
