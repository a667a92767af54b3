/* Four threads simultaneously make, use and free their own datatypes of many sizes; the tag of each message is
   its number of bytes. */
#include "victim.h"
#include <pthread.h>

#define THREADS 4
#define TIMES 5000

static void *churn(void *argument)
{
    static char nothing[1];
    unsigned chosen = *(int *)argument;
    for (int i = 0; i < TIMES; i++) {
        MPI_Datatype type;
        int size;
        chosen = chosen * 1103515245u + 12345u;
        size = 1 + chosen / 65536 % 1000;
        MPI_Type_contiguous(size, MPI_INT, &type);
        MPI_Type_commit(&type);
        MPI_Send(nothing, 1, type, MPI_PROC_NULL, 4 * size, MPI_COMM_WORLD);
        MPI_Type_free(&type);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int provided, numbers[THREADS];
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    for (int i = 0; i < THREADS; i++) {
        numbers[i] = i + 1;
        if (pthread_create(&threads[i], NULL, churn, &numbers[i]) != 0)
            return 70;
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    MPI_Finalize();
    return 0;
}
