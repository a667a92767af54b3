/* reopens_mpi LIBRARY SCOPE: opens an MPI library, calls it and closes it, three times; each time something else is
 * mapped where it was before. Then, with no MPI loaded, it asks whether MPI is finalized. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int question(int *);

int main(int count, char **words)
{
    int scope = count > 2 && !strcmp(words[2], "global") ? RTLD_GLOBAL : RTLD_LOCAL, answer;
    for (int i = 0; i < 3; i++) {
        void *mpi = dlopen(words[1], RTLD_NOW | scope);
        question *own = mpi ? (question *)dlsym(mpi, "PMPI_Initialized") : NULL;
        question *initialized = (question *)dlsym(RTLD_DEFAULT, "MPI_Initialized");
        Dl_info where;
        if (!own || !dladdr((void *)own, &where))
            return 8;
        answer = -1;
        int code = (initialized ? initialized : own)(&answer);
        printf("%d %d\n", code, answer);
        dlclose(mpi);
        if (dlopen(words[1], RTLD_NOW | RTLD_NOLOAD))
            return 9;
        int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
        if (mmap(where.dli_fbase, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE, flags, -1, 0) != where.dli_fbase)
            return 10;
    }
    question *finalized = (question *)dlsym(RTLD_DEFAULT, "MPI_Finalized");
    answer = 0;
    printf("without MPI %d\n", finalized && finalized(&answer) == 0 ? answer : 0);
    return 0;
}
