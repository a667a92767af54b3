/* Rank 1 calls abort(). */
#include "dies.h"

static void die(void)
{
    abort();
}
