/* closes_library LIBRARY: opens a library, has it call MPI, and closes it again; three times, the third
 * time from a thread. */
#include "victim.h"
#include <dlfcn.h>
#include <pthread.h>

static void *use(void *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    int (*call)(int) = library ? (int (*)(int))dlsym(library, "call_from_library") : NULL;

    if (!call || call(20) != 0)
        exit(8);
    printf("closed %d\n", dlclose(library));
    call_comm_rank(1);
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    char *path = argv[1];
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    use(path);
    use(path);
    if (pthread_create(&thread, NULL, use, path) != 0)
        return 7;
    pthread_join(thread, NULL);
    MPI_Finalize();
    return 0;
}
