/* A destructor of thread-specific data, an atexit handler and a destructor call MPI; the handler
 * finalizes MPI, the destructor asks whether it is finalized. */
#include "victim.h"
#include <pthread.h>

static pthread_key_t key;

static void at_thread_exit(void *value)
{
    (void)value;
    call_comm_rank(7);
}

static void *work(void *argument)
{
    pthread_setspecific(key, argument);
    call_comm_rank(5);
    return NULL;
}

static void at_exit(void)
{
    call_comm_rank(11);
    MPI_Finalize();
}

__attribute__((destructor)) static void at_unload(void)
{
    int initialized = 0, finalized = 0, version = 0, subversion = 0;
    MPI_Initialized(&initialized);
    MPI_Finalized(&finalized);
    MPI_Get_version(&version, &subversion);
    printf("initialized %d finalized %d version %d\n", initialized, finalized, version > 0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    atexit(at_exit);
    pthread_key_create(&key, at_thread_exit);
    if (pthread_create(&thread, NULL, work, &key) != 0)
        return 7;
    pthread_join(thread, NULL);
    call_comm_rank(3);
    return 0;
}
