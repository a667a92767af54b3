/* Calls without recorded arguments: attributes, groups, infos, operations, errors; and MPI_Pcontrol. */
#include "conformity.h"

static void add(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *length; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

int main(void)
{
    int rank = begin(), size = 0, keyval = 0, flag = 0, value = 1, result, zero = 0;
    int *found;
    char text[MPI_MAX_INFO_VAL + 1], name[MPI_MAX_PROCESSOR_NAME];
    MPI_Info info;
    MPI_Group world, first, rest;
    MPI_Op op;
    MPI_Pcontrol(1);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &found, &flag);
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, MPI_COMM_NULL_DELETE_FN, &keyval, NULL);
    MPI_Comm_set_attr(MPI_COMM_WORLD, keyval, &value);
    MPI_Comm_delete_attr(MPI_COMM_WORLD, keyval);
    MPI_Comm_free_keyval(&keyval);
    MPI_Info_create(&info);
    MPI_Info_set(info, "key", "value");
    MPI_Info_get(info, "key", MPI_MAX_INFO_VAL, text, &flag);
    MPI_Info_free(&info);
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 1, &zero, &first);
    MPI_Group_difference(world, first, &rest);
    MPI_Group_compare(first, rest, &result);
    MPI_Group_free(&world);
    MPI_Group_free(&first);
    MPI_Group_free(&rest);
    MPI_Comm_compare(MPI_COMM_WORLD, MPI_COMM_SELF, &result);
    MPI_Get_processor_name(name, &size);
    MPI_Wtime();
    MPI_Initialized(&flag);
    MPI_Query_thread(&flag);
    MPI_Op_create(add, 1, &op);
    /* The operation makes no calls; the collective has its bytes. */
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, op, MPI_COMM_WORLD);
    MPI_Op_free(&op);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    /* A call that MPI refuses is recorded. */
    MPI_Send(&value, 1, MPI_INT, 99, 8, MPI_COMM_WORLD);
    MPI_Comm_get_name(MPI_COMM_WORLD, text, &size);
    MPI_Pcontrol(2);
    MPI_Finalize();
    return rank < 0;
}
