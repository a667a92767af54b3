/* Rank 1 calls exit(5) without MPI_Finalize. */
#include "dies.h"

static void die(void)
{
    exit(5);
}
