/* Prints results, error codes, statuses and errno, which must be the same without the recorder. */
#include "victim.h"

static void print_status(const char *what, const MPI_Status *status)
{
    int ints = -1, elements = -1, cancelled = -1;
    MPI_Get_count(status, MPI_INT, &ints);
    MPI_Get_elements(status, MPI_BYTE, &elements);
    MPI_Test_cancelled(status, &cancelled);
    printf("%s: source %d tag %d ints %d bytes %d cancelled %d\n", what, status->MPI_SOURCE,
           status->MPI_TAG, ints, elements, cancelled);
}

static void print_error(const char *what, int code)
{
    int class = -1, length = 0;
    char text[MPI_MAX_ERROR_STRING];
    MPI_Error_class(code, &class);
    MPI_Error_string(code, text, &length);
    printf("%s: code %d class %d %s\n", what, code, class, text);
}

int main(int argc, char **argv)
{
    /* Static, in an executable at a fixed address, because MPICH's error codes and texts contain addresses. */
    static int rank, flag = -1, value[8];
    int size, index = -1, major = 0, minor = 0, length = 0;
    int counts[2] = {1, 2}, offsets[2] = {0, 1}, provided = -1;
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    double times[2];
    MPI_Request requests[2];
    MPI_Status status, statuses[2];
    MPI_Aint base, here;
    MPI_Comm split, twin;
    MPI_Group group;
    MPI_Datatype vector;
    MPI_Aint lower, extent;

    MPI_Initialized(&flag);
    printf("initialized %d\n", flag);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Initialized(&flag);
    MPI_Get_version(&major, &minor);
    MPI_Get_library_version(text, &length);
    if (rank == 0)
        printf("rank %d of %d, provided %d, initialized %d, version %d.%d %s\n", rank, size,
               provided, flag, major, minor, text);

    times[0] = MPI_Wtime();
    while ((times[1] = MPI_Wtime()) <= times[0])
        ;
    printf("Wtime %d %d, Wtick %.17g\n", times[0] > 0, times[1] > times[0], MPI_Wtick());
    MPI_Get_address(&value[1], &base);
    MPI_Get_address(&value[5], &here);
    printf("Aint_diff %ld Aint_add %d\n", (long)MPI_Aint_diff(here, base),
           MPI_Aint_add(base, 16) == here);
    printf("Pcontrol %d %d %d\n", MPI_Pcontrol(1), MPI_Pcontrol(0, 2.5, 7, "text"),
           MPI_Pcontrol(2, 1, 2, 3, 4, 5, 6, 1.0, 2.0));

    errno = 4711;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("errno %d\n", errno);

    if (rank == 0) {
        int message[3] = {1, 2, 3};
        MPI_Send(message, 3, MPI_INT, 1, 42, MPI_COMM_WORLD);
        MPI_Ssend(message, 0, MPI_INT, 1, 43, MPI_COMM_WORLD);
    } else if (rank == 1) {
        MPI_Probe(MPI_ANY_SOURCE, 42, MPI_COMM_WORLD, &status);
        print_status("probe", &status);
        MPI_Recv(value, 8, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        print_status("recv", &status);
        MPI_Recv(value, 8, MPI_INT, 0, 43, MPI_COMM_WORLD, &status);
        print_status("empty recv", &status);
        printf("values %d %d %d\n", value[0], value[1], value[2]);
    }
    MPI_Recv(value, 8, MPI_INT, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &status);
    print_status("PROC_NULL", &status);

    MPI_Irecv(&value[0], 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(&rank, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests, statuses);
    print_status("waitall", &statuses[0]);
    printf("null %d %d\n", requests[0] == MPI_REQUEST_NULL, requests[1] == MPI_REQUEST_NULL);
    MPI_Testany(2, requests, &index, &flag, &status);
    printf("testany of nothing: %d %d\n", flag, index == MPI_UNDEFINED);
    MPI_Irecv(&value[0], 1, MPI_INT, 1 - rank, 77, MPI_COMM_WORLD, &requests[0]);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &flag);
    printf("cancelled %d\n", flag);

    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    print_error("bad rank", MPI_Send(value, 1, MPI_INT, 99, 1, MPI_COMM_WORLD));
    print_error("bad count", MPI_Send(value, -1, MPI_INT, 0, 1, MPI_COMM_WORLD));
    print_error("bad tag", MPI_Send(value, 1, MPI_INT, 0, -5, MPI_COMM_WORLD));
    print_error("bad root", MPI_Bcast(value, 1, MPI_INT, 99, MPI_COMM_WORLD));
    print_error("null communicator", MPI_Comm_rank(MPI_COMM_NULL, &flag));
    if (rank == 0) {
        MPI_Send(value, 4, MPI_INT, 1, 5, MPI_COMM_WORLD);
    } else if (rank == 1) {
        int code = MPI_Recv(value, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, &status);
        int class;
        MPI_Error_class(code, &class);
        printf("truncated: class %d\n", class);
    }

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &split);
    MPI_Comm_size(split, &size);
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_compare(MPI_COMM_WORLD, twin, &flag);
    printf("split %d, congruent %d\n", size, flag == MPI_CONGRUENT);
    MPI_Comm_group(twin, &group);
    MPI_Group_size(group, &size);
    printf("group %d\n", size);
    MPI_Allgatherv(&value[rank], counts[rank], MPI_INT, value, counts, offsets, MPI_INT, twin);
    MPI_Type_vector(3, 2, 5, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    MPI_Type_get_extent(vector, &lower, &extent);
    MPI_Type_size(vector, &size);
    printf("vector %ld %ld %d\n", (long)lower, (long)extent, size);
    value[0] = rank + 1;
    MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INT, MPI_PROD, twin);
    MPI_Scan(&value[0], &value[1], 1, MPI_INT, MPI_SUM, twin);
    printf("product %d scan %d\n", value[0], value[1]);
    MPI_Group_free(&group);
    MPI_Type_free(&vector);
    MPI_Comm_free(&split);
    MPI_Comm_free(&twin);
    MPI_Finalize();
    MPI_Finalized(&flag);
    printf("finalized %d\n", flag);
    return 0;
}
