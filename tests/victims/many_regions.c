/* More region names than the recorder has room for. */
#include "gammachi.h"
#include "victim.h"

int main(int argc, char **argv)
{
    char name[32];
    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3000; i++) {
        snprintf(name, sizeof name, "region %d", i);
        gammachi_region_begin(name);
        gammachi_region_end(name);
    }
    call_comm_rank(1);
    MPI_Finalize();
    return 0;
}
