/* Callbacks that call MPI inside MPI: a reduction's function, an attribute's copy and delete
 * functions, an error handler, a generalized request. */
#include "victim.h"

static void add(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int size, rank;
    MPI_Type_size(*type, &size);
    MPI_Comm_rank(MPI_COMM_SELF, &rank);
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i] + 0 * (size + rank);
}

static int copies, deletes, errors, queries, frees;

static int copy(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
    int rank;
    (void)key, (void)extra;
    MPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &rank);
    *(void **)out = in;
    *flag = 1;
    copies++;
    return MPI_SUCCESS;
}

static int delete (MPI_Comm comm, int key, void *value, void *extra)
{
    int rank;
    (void)comm, (void)key, (void)value, (void)extra;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    deletes++;
    return MPI_SUCCESS;
}

static void on_error(MPI_Comm *comm, int *code, ...)
{
    int class, rank;
    MPI_Error_class(*code, &class);
    MPI_Comm_rank(*comm, &rank);
    errors++;
}

static int query(void *extra, MPI_Status *status)
{
    (void)extra;
    MPI_Status_set_elements(status, MPI_INT, 0);
    MPI_Status_set_cancelled(status, 0);
    status->MPI_SOURCE = MPI_UNDEFINED;
    status->MPI_TAG = MPI_UNDEFINED;
    queries++;
    return MPI_SUCCESS;
}

static int release(void *extra)
{
    int rank;
    (void)extra;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    frees++;
    return MPI_SUCCESS;
}

static int cancel(void *extra, int complete)
{
    (void)extra, (void)complete;
    return MPI_SUCCESS;
}

int main(int argc, char **argv)
{
    int one = 1, sum = 0, key;
    MPI_Op op;
    MPI_Comm twin;
    MPI_Errhandler handler;
    MPI_Request request;

    MPI_Init(&argc, &argv);
    MPI_Op_create(add, 1, &op);
    MPI_Allreduce(&one, &sum, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Reduce_local(&one, &sum, 1, MPI_INT, op);
    MPI_Op_free(&op);
    MPI_Comm_create_keyval(copy, delete, &key, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, key, &one);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_create_errhandler(on_error, &handler);
    MPI_Comm_set_errhandler(twin, handler);
    MPI_Send(&one, 1, MPI_INT, 99, 1, twin);
    MPI_Comm_free(&twin);
    MPI_Errhandler_free(&handler);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, key);
    MPI_Grequest_start(query, release, cancel, NULL, &request);
    MPI_Grequest_complete(request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (MPI_Comm_rank(MPI_COMM_WORLD, &one) == MPI_SUCCESS && one == 0)
        printf("sum %d copies %d deletes %d errors %d queries %d frees %d\n", sum, copies, deletes,
               errors, queries, frees);
    MPI_Finalize();
    return 0;
}
