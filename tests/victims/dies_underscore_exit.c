/* Rank 1 calls _exit(5), which runs no handlers. */
#include "dies.h"

static void die(void)
{
    _exit(5);
}
