/* Every way to make a communicator: all ranks agree on the members and on the count of earlier communicators with
   these members. */
#include "conformity.h"

int main(void)
{
    int rank = begin(), some[2] = {3, 1}, dims[2] = {2, 2}, periods[2] = {0, 1}, keep[2] = {0, 1};
    int index[2] = {1, 2}, edges[2] = {1, 0}, value = 0, source = rank, degree = 1;
    int destination = (rank + 1) % 4;
    MPI_Comm twin, later, halves, reversed, shared, pair, group_pair, grid, row, graph, spread, alone, third;
    MPI_Group world, group;
    MPI_Request request;

    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_set_name(twin, "twin of world");
    MPI_Comm_idup(twin, &later, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Comm_dup_with_info(later, MPI_INFO_NULL, &third);
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_SUM, later);

    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &halves);
    MPI_Barrier(halves);
    MPI_Comm_split(MPI_COMM_WORLD, rank == 2 ? MPI_UNDEFINED : 5, -rank, &reversed);
    MUST((reversed == MPI_COMM_NULL) == (rank == 2));
    if (rank != 2)
        MPI_Send(&value, 0, MPI_INT, MPI_PROC_NULL, 0, reversed);
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &shared);

    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, 2, some, &group);
    MPI_Comm_create(MPI_COMM_WORLD, group, &pair);
    if (rank % 2) {
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 77, &group_pair);
        MPI_Barrier(group_pair);
        MPI_Comm_free(&group_pair);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 78, &group_pair);
        MPI_Comm_free(&group_pair);
        MPI_Comm_create_group(MPI_COMM_WORLD, group, 77, &group_pair);
        MPI_Comm_free(&group_pair);
        MPI_Comm_free(&pair);
    }

    MPI_Cart_create(MPI_COMM_WORLD, 2, dims, periods, 0, &grid);
    keep[0] = 0;
    MPI_Cart_sub(grid, keep, &row);
    MPI_Barrier(row);
    MPI_Graph_create(MPI_COMM_WORLD, 2, index, edges, 0, &graph);
    MUST((graph == MPI_COMM_NULL) == (rank >= 2));
    MPI_Dist_graph_create(MPI_COMM_WORLD, 1, &source, &degree, &destination, MPI_UNWEIGHTED,
                          MPI_INFO_NULL, 0, &spread);
    MPI_Comm_dup(MPI_COMM_SELF, &alone);
    MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &twin);

    MPI_Group_free(&group);
    MPI_Group_free(&world);
    MPI_Comm_free(&alone);
    MPI_Comm_disconnect(&spread);
    MPI_Finalize();
    return 0;
}
