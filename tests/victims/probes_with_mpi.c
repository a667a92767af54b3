/* Looks for a procedure of the newest standard with dlsym and calls it if it exists. */
#define _GNU_SOURCE
#include "victim.h"
#include <dlfcn.h>

int main(int argc, char **argv)
{
    int rank = -1;
    void *made = NULL;
    int (*get)(int, void *) = (int (*)(int, void *))dlsym(RTLD_DEFAULT, "MPI_Abi_get_fortran_info");

    MPI_Init(&argc, &argv);
    for (int i = 0; i < 3; i++) {
        MPI_Comm_rank(MPI_COMM_WORLD, &rank);
        printf("%s\n", get && get(0, &made) == MPI_SUCCESS ? "there" : "not there");
    }
    MPI_Finalize();
    return 0;
}
