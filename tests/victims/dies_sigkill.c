/* Rank 1 is killed by SIGKILL. */
#include "dies.h"

static void die(void)
{
    kill(getpid(), SIGKILL);
}
