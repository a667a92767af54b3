/* Counts the allocations of a thread while it makes MPI calls, from its first one on, because a signal handler
 * may call MPI while its thread is inside malloc. Prints the count. */
#include "victim.h"
#include <pthread.h>
#include <stdlib.h>

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *old, size_t bytes);
void __libc_free(void *old);

static __thread int counting;
static __thread long counted;

void *malloc(size_t bytes)
{
    counted += counting;
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
    counted += counting;
    return __libc_calloc(count, bytes);
}

void *realloc(void *old, size_t bytes)
{
    counted += counting;
    return __libc_realloc(old, bytes);
}

void free(void *old)
{
    counted += counting;
    __libc_free(old);
}

static void *calls(void *unused)
{
    (void)unused;
    counting = 1;
    /* Windows that are opened, filled and returned. */
    call_comm_rank(100000);
    counting = 0;
    return (void *)counted;
}

int main(int argc, char **argv)
{
    int provided;
    pthread_t thread;
    void *result = NULL;

    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    pthread_create(&thread, NULL, calls, NULL);
    pthread_join(thread, &result);
    printf("%ld\n", (long)result);
    MPI_Finalize();
    return 0;
}
