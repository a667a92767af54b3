/* Calls with bad pointers and handles in every argument that is not significant according to the standard,
 * and arrays that end at an inaccessible page: a tool that reads more than MPI itself crashes. */
#include "victim.h"
#include <sys/mman.h>

/* An address that must not be read. */
static void *volatile BAD = (void *)16;

/* Space for `count` ints directly before an inaccessible page. */
static int *ints_at_the_end(int count)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    return (int *)(page + 4096) - count;
}

static void *bytes_at_the_end(size_t bytes)
{
    char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page + 4096, 4096, PROT_NONE);
    return page + 4096 - bytes;
}

int main(int argc, char **argv)
{
    int rank, size, value, in[3], out[3];
    MPI_Request request, *two;
    MPI_Status *statuses;
    MPI_Comm half, inter, cart, lonely, twin;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank); /* 3 ranks */
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    value = rank + 1;

    /* Only roots read counts and types of gathered or scattered data. */
    int *counts = ints_at_the_end(3), *offsets = ints_at_the_end(3);
    for (int i = 0; i < 3; i++)
        counts[i] = 1, offsets[i] = i;
    for (int root = 0; root < 3; root++) {
        int me = rank == root;
        MPI_Gather(&value, 1, MPI_INT, me ? (void *)in : BAD, me ? 1 : -7,
                   me ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
        MPI_Gatherv(&value, 1, MPI_INT, me ? (void *)in : BAD, me ? counts : BAD,
                    me ? offsets : BAD, me ? MPI_INT : MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
        MPI_Scatter(me ? (void *)in : BAD, me ? 1 : -7, me ? MPI_INT : MPI_DATATYPE_NULL, &value, 1,
                    MPI_INT, root, MPI_COMM_WORLD);
        MPI_Scatterv(me ? (void *)in : BAD, me ? counts : BAD, me ? offsets : BAD,
                     me ? MPI_INT : MPI_DATATYPE_NULL, &value, 1, MPI_INT, root, MPI_COMM_WORLD);
        MPI_Reduce(&value, me ? (void *)out : BAD, 1, MPI_INT, MPI_SUM, root, MPI_COMM_WORLD);
        /* With MPI_IN_PLACE at the root, its own count and type are ignored. */
        if (me) {
            in[rank] = value;
            MPI_Gather(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in, 1, MPI_INT, root, MPI_COMM_WORLD);
            MPI_Scatterv(in, counts, offsets, MPI_INT, MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, root,
                         MPI_COMM_WORLD);
        } else {
            MPI_Gather(&value, 1, MPI_INT, BAD, -7, MPI_DATATYPE_NULL, root, MPI_COMM_WORLD);
            MPI_Scatterv(BAD, BAD, BAD, MPI_DATATYPE_NULL, &value, 1, MPI_INT, root,
                         MPI_COMM_WORLD);
        }
    }
    in[rank] = value;
    MPI_Allgather(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in, 1, MPI_INT, MPI_COMM_WORLD);
    MPI_Allgatherv(MPI_IN_PLACE, -7, MPI_DATATYPE_NULL, in, counts, offsets, MPI_INT,
                   MPI_COMM_WORLD);
    MPI_Alltoallv(MPI_IN_PLACE, BAD, BAD, MPI_DATATYPE_NULL, in, counts, offsets, MPI_INT,
                  MPI_COMM_WORLD);

    /* Waits without requests. */
    MPI_Waitall(0, NULL, MPI_STATUSES_IGNORE);
    MPI_Waitall(0, BAD, BAD);
    MPI_Testall(0, BAD, &size, BAD);
    MPI_Waitany(0, BAD, &size, MPI_STATUS_IGNORE);
    MPI_Startall(0, BAD);
    request = MPI_REQUEST_NULL;
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(BAD, 0, MPI_INT, MPI_PROC_NULL, 0, BAD, 0, MPI_INT, MPI_PROC_NULL, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);

    /* Arrays of requests and statuses that end at the page. */
    two = bytes_at_the_end(2 * sizeof *two);
    statuses = bytes_at_the_end(2 * sizeof *statuses);
    for (int i = 0; i < 3; i++) {
        MPI_Irecv(&in[0], 1, MPI_INT, (rank + 2) % 3, 5, MPI_COMM_WORLD, &two[0]);
        MPI_Isend(&value, 1, MPI_INT, (rank + 1) % 3, 5, MPI_COMM_WORLD, &two[1]);
        if (i == 0) {
            MPI_Waitall(2, two, statuses);
        } else if (i == 1) {
            MPI_Waitall(2, two, MPI_STATUSES_IGNORE);
        } else {
            int done = 0, some, which[2];
            while (done < 2) {
                MPI_Waitsome(2, two, &some, which, statuses);
                done += some;
            }
            MPI_Waitsome(2, two, &some, which, statuses);
            if (some != MPI_UNDEFINED)
                MPI_Abort(MPI_COMM_WORLD, 8);
        }
    }
    MPI_Status *one_status = bytes_at_the_end(sizeof *one_status);
    MPI_Request *one = bytes_at_the_end(sizeof *one);
    MPI_Irecv(&in[0], 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, one);
    MPI_Send(&value, 1, MPI_INT, 0, 3, MPI_COMM_SELF);
    MPI_Wait(one, one_status);

    /* Between groups of 1 and 2 ranks, arrays are as long as the size of the other group. */
    MPI_Comm_split(MPI_COMM_WORLD, rank == 0, rank, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, rank == 0 ? 1 : 0, 17, &inter);
    int others = rank == 0 ? 2 : 1;
    int *few = ints_at_the_end(others), *few_offsets = ints_at_the_end(others);
    for (int i = 0; i < others; i++)
        few[i] = 1, few_offsets[i] = i;
    MPI_Allgatherv(&value, 1, MPI_INT, in, few, few_offsets, MPI_INT, inter);
    MPI_Alltoallv(in, few, few_offsets, MPI_INT, out, few, few_offsets, MPI_INT, inter);
    if (rank == 0)
        MPI_Gatherv(BAD, -7, MPI_DATATYPE_NULL, in, few, few_offsets, MPI_INT, MPI_ROOT, inter);
    else
        MPI_Gatherv(&value, 1, MPI_INT, BAD, BAD, BAD, MPI_DATATYPE_NULL, 0, inter);
    MPI_Bcast(rank == 2 ? BAD : &value, 1, MPI_INT,
              rank == 0 ? 0 : rank == 1 ? MPI_ROOT : MPI_PROC_NULL, inter);

    /* Two neighbours in a ring, or none. */
    int *pair = ints_at_the_end(2), *pair_offsets = ints_at_the_end(2), *length = ints_at_the_end(1);
    int *periodic = ints_at_the_end(1), from[2], to[2];
    pair[0] = pair[1] = 1, pair_offsets[0] = 0, pair_offsets[1] = 1, *length = 3, *periodic = 1;
    from[0] = from[1] = rank;
    MPI_Cart_create(MPI_COMM_WORLD, 1, length, periodic, 0, &cart);
    MPI_Neighbor_alltoallv(from, pair, pair_offsets, MPI_INT, to, pair, pair_offsets, MPI_INT, cart);
    MPI_Neighbor_allgatherv(from, 1, MPI_INT, to, pair, pair_offsets, MPI_INT, cart);
    MPI_Dist_graph_create_adjacent(MPI_COMM_WORLD, 0, BAD, MPI_UNWEIGHTED, 0, BAD, MPI_UNWEIGHTED,
                                   MPI_INFO_NULL, 0, &lonely);
    MPI_Neighbor_alltoallv(BAD, BAD, BAD, MPI_INT, BAD, BAD, BAD, MPI_INT, lonely);

    MPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? MPI_UNDEFINED : 1, rank, &twin);
    if (twin != MPI_COMM_NULL)
        MPI_Comm_free(&twin);
    MPI_Reduce_scatter(in, out, counts, MPI_INT, MPI_SUM, MPI_COMM_WORLD);

    if (rank == 0)
        puts("alive");
    MPI_Comm_free(&half);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&cart);
    MPI_Comm_free(&lonely);
    MPI_Finalize();
    return 0;
}
