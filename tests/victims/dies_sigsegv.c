/* Rank 1 accesses a bad address. */
#include "dies.h"

static void die(void)
{
    volatile int *volatile nowhere = (volatile int *)8;
    *nowhere = 1;
}
