/* Communicators made and freed a thousand times, some kept: handles and ids are reused, identities are not. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), value = 0;
    MPI_Comm twin, alone, kept[3];
    for (int i = 0; i < 1000; i++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &twin);
        if (i % 400 == 100)
            MPI_Comm_dup(twin, &kept[i / 400]);
        MPI_Sendrecv_replace(&value, 1, MPI_INT, 1 - rank, i, 1 - rank, i, twin, MPI_STATUS_IGNORE);
        MPI_Comm_free(&twin);
    }
    /* The ranks make different numbers of communicators of their own. */
    for (int i = 0; i < 3 + rank; i++)
        MPI_Comm_dup(MPI_COMM_SELF, &alone);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Barrier(twin);
    MPI_Barrier(kept[2]);
    MPI_Finalize();
    return 0;
}
