/* Four ranks wait for some others, 0.2 s each: rank 1 for rank 0 to expose its window, rank 0 for rank 1 to end its
 * accesses, rank 1 for rank 2 to unlock the window of rank 3, and rank 2 for its neighbour 3 in a row of ranks. */
#include "victim.h"

enum { PAUSE = 200000 };

static int rank;
static double mine[4] = {1, 2, 3, 4};

static void exposes(MPI_Win window)
{
    MPI_Group world, partner;
    int other = 1 - rank;

    if (rank > 1)
        return;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &other, &partner);
    for (int late = 0; late < 2; late++) {
        if (rank == 0) {
            if (late == 0)
                usleep(PAUSE);
            MPI_Win_post(partner, 0, window);
            MPI_Win_wait(window);
        } else {
            MPI_Win_start(partner, 0, window);
            MPI_Put(mine, 4, MPI_DOUBLE, 0, 0, 4, MPI_DOUBLE, window);
            if (late == 1)
                usleep(PAUSE);
            MPI_Win_complete(window);
        }
    }
    MPI_Group_free(&partner);
    MPI_Group_free(&world);
}

static void locks(MPI_Win window)
{
    if (rank == 1)
        usleep(PAUSE / 2);
    if (rank == 1 || rank == 2) {
        MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 3, 0, window);
        MPI_Put(mine, 4, MPI_DOUBLE, 3, 0, 4, MPI_DOUBLE, window);
        MPI_Win_flush(3, window);
        /* The waiting rank must not unlock before the other has returned from its unlock: only then is it known
         * who held the lock first. */
        usleep(rank == 2 ? PAUSE / 2 + PAUSE : PAUSE / 5);
        MPI_Win_unlock(3, window);
    }
}

int main(int argc, char **argv)
{
    int size, periodic = 0;
    double got[2];
    MPI_Comm row;
    double *there;
    MPI_Win window;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* Debian's Open MPI has no MPI_Win_create within one host. */
    MPI_Win_allocate(4 * sizeof *there, sizeof *there, MPI_INFO_NULL, MPI_COMM_WORLD, &there, &window);
    exposes(window);
    MPI_Barrier(MPI_COMM_WORLD);
    locks(window);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &row);
    if (rank == 3)
        usleep(PAUSE);
    MPI_Neighbor_allgather(mine, 1, MPI_DOUBLE, got, 1, MPI_DOUBLE, row);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&row);
    MPI_Win_free(&window);
    MPI_Finalize();
    return 0;
}
