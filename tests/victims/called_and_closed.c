/* A library that calls MPI; closes_library opens and closes it. */
#include "victim.h"

int call_from_library(int times)
{
    return call_comm_rank(times);
}
