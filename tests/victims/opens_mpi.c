/* Loads MPI with dlopen, as plug-ins and language bindings do, and is not linked with it. The first argument is
   the library's name; with "global" as the second it is opened with RTLD_GLOBAL. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int count, char **words)
{
    int scope = count > 2 && !strcmp(words[2], "global") ? RTLD_GLOBAL : RTLD_LOCAL;
    void *mpi = dlopen(words[1], RTLD_NOW | scope);
    if (!mpi) {
        printf("%s\n", dlerror());
        return 1;
    }
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_DEFAULT, "MPI_Init");
    int (*wtick)(void) = (int (*)(void))dlsym(mpi, "MPI_Finalized");
    int (*finalize)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "MPI_Finalize");
    if (!init)
        init = (int (*)(int *, char ***))dlsym(mpi, "MPI_Init");
    if (!finalize)
        finalize = (int (*)(void))dlsym(mpi, "MPI_Finalize");
    int failed = !wtick || init(0, 0) || finalize();
    printf("%s\n", failed ? "failed" : "done");
    return failed;
}
