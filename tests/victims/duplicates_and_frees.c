/* Duplicates and frees a communicator; the argument is the number of times. Occasionally makes a barrier on the
   duplicate; one duplicate, "kept", is never freed. Rank 0 prints by how many kB its memory grew between the
   middle and the end. */
#include "victim.h"

static long resident_kb(void)
{
    long pages = 0, ignored;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &ignored, &pages) != 2)
        exit(3);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

int main(int argc, char **argv)
{
    MPI_Comm kept;
    int times = atoi(argv[1]), rank;
    long before = 0;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_dup(MPI_COMM_WORLD, &kept);
    MPI_Comm_set_name(kept, "kept");
    for (int turn = 0; turn < times; turn++) {
        MPI_Comm duplicate;
        if (turn == times / 2)
            before = resident_kb();
        MPI_Comm_dup(MPI_COMM_WORLD, &duplicate);
        if (turn % 100 == 0)
            MPI_Barrier(duplicate);
        MPI_Comm_free(&duplicate);
    }
    if (rank == 0)
        printf("grew %ld kB\n", resident_kb() - before);
    MPI_Barrier(kept);
    MPI_Comm_free(&kept);
    MPI_Finalize();
    return 0;
}
