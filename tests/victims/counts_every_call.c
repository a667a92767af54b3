/* A second PMPI tool, preloaded before or after the recorder: counts the calls of ring.c and prints them. */
#include <mpi.h>
#include <stdio.h>

#define COUNTED(name, parameters, arguments)     \
    static int count_##name;                     \
    int MPI_##name parameters                    \
    {                                            \
        count_##name++;                          \
        return PMPI_##name arguments;            \
    }

COUNTED(Init, (int *count, char ***words), (count, words))
COUNTED(Comm_size, (MPI_Comm comm, int *size), (comm, size))
COUNTED(Get_processor_name, (char *name, int *length), (name, length))
COUNTED(Allreduce,
        (const void *from, void *to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
        (from, to, count, type, op, comm))
COUNTED(Sendrecv,
        (const void *out, int outs, MPI_Datatype otype, int to, int otag, void *in, int ins,
         MPI_Datatype itype, int from, int itag, MPI_Comm comm, MPI_Status *status),
        (out, outs, otype, to, otag, in, ins, itype, from, itag, comm, status))
COUNTED(Barrier, (MPI_Comm comm), (comm))

/* Kept, because a PMPI call of this tool would be counted by a tool after it. */
static int rank, count_Comm_rank;

int MPI_Comm_rank(MPI_Comm comm, int *result)
{
    count_Comm_rank++;
    int code = PMPI_Comm_rank(comm, result);
    rank = *result;
    return code;
}

int MPI_Finalize(void)
{
    printf("tool %d MPI_Init %d\ntool %d MPI_Comm_rank %d\ntool %d MPI_Comm_size %d\n"
           "tool %d MPI_Get_processor_name %d\ntool %d MPI_Allreduce %d\ntool %d MPI_Sendrecv %d\n"
           "tool %d MPI_Barrier %d\n",
           rank, count_Init, rank, count_Comm_rank, rank, count_Comm_size, rank,
           count_Get_processor_name, rank, count_Allreduce, rank, count_Sendrecv, rank,
           count_Barrier);
    fflush(stdout);
    return PMPI_Finalize();
}
