/* Another PMPI tool, preloaded: counts MPI_Send and prints the number at the end. */
#include <mpi.h>
#include <stdio.h>

static int sends;

int MPI_Send(const void *buffer, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    sends++;
    return PMPI_Send(buffer, count, type, to, tag, comm);
}

int MPI_Finalize(void)
{
    printf("the other tool saw %d sends\n", sends);
    fflush(stdout);
    return PMPI_Finalize();
}
