/* A library that calls MPI, to be opened and closed by closes_library. */
#include "victim.h"

int call_from_library(int times)
{
    return call_comm_rank(times);
}
