/* Looks for MPI procedures with dlsym, like libraries that support programs with and without MPI, and calls those
 * that it finds. No MPI. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>

static int ask(const char *name)
{
    int flag = 7;
    int (*procedure)(int *) = (int (*)(int *))dlsym(RTLD_DEFAULT, name);
    return procedure && procedure(&flag) == 0 ? flag : 0;
}

static int begins(const char *name)
{
    int (*init)(int *, char ***) = (int (*)(int *, char ***))dlsym(RTLD_DEFAULT, name);
    return init && init(NULL, NULL) == 0;
}

int main(void)
{
    for (int i = 0; i < 3; i++)
        printf("initialized %d, finalized %d, thread main %d, begins %d\n", ask("MPI_Initialized"),
               ask("PMPI_Finalized"), ask("MPI_Is_thread_main"), begins("MPI_Init"));
    return 5;
}
