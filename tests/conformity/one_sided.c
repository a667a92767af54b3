/* Remote memory access: targets, bytes, and all three kinds of synchronisation. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), other = 1 - rank, local[16] = {0}, result[16], *memory;
    MPI_Win made, allocated;
    MPI_Group world, partner;
    MPI_Request request;

    MPI_Win_create(local, sizeof local, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &made);
    MPI_Win_allocate(64, sizeof(int), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &allocated);
    MPI_Win_fence(0, allocated);
    MPI_Put(result, 4, MPI_INT, other, 0, 4, MPI_INT, allocated);
    MPI_Win_fence(0, allocated);
    MPI_Get(result, 3, MPI_INT, other, 0, 3, MPI_INT, allocated);
    MPI_Accumulate(local, 2, MPI_INT, other, 8, 2, MPI_INT, MPI_SUM, allocated);
    MPI_Win_fence(0, allocated);

    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, other, 0, made);
    MPI_Get_accumulate(local, 5, MPI_INT, result, 5, MPI_INT, other, 0, 5, MPI_INT, MPI_SUM, made);
    MPI_Win_flush(other, made);
    MPI_Fetch_and_op(&local[8], &result[8], MPI_INT, other, 8, MPI_SUM, made);
    MPI_Compare_and_swap(&local[8], &local[9], &result[9], MPI_INT, other, 9, made);
    MPI_Win_unlock(other, made);

    MPI_Win_lock_all(0, made);
    MPI_Rput(result, 6, MPI_INT, other, 0, 6, MPI_INT, made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Rget(result, 7, MPI_INT, other, 0, 7, MPI_INT, made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Raccumulate(result, 1, MPI_DOUBLE, other, 0, 1, MPI_DOUBLE, MPI_SUM, made, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Win_unlock_all(made);

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &partner);
    MPI_Win_post(partner, 0, made);
    MPI_Win_start(partner, 0, made);
    MPI_Put(result, 2, MPI_INT, other, 0, 2, MPI_INT, made);
    MPI_Win_complete(made);
    MPI_Win_wait(made);
    MPI_Group_free(&partner);
    MPI_Group_free(&world);
    MPI_Win_free(&made);
    MPI_Win_free(&allocated);
    MPI_Finalize();
    return 0;
}
