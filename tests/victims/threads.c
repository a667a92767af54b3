/* threads THREADS ROUNDS STACK_KB WAVES: waves of threads that each make ROUNDS exchanges with
 * themselves (MPI_Isend, MPI_Recv, MPI_Wait) and end; then the main thread continues. */
#include "victim.h"
#include <pthread.h>

static int rounds;

static void *work(void *argument)
{
    int tag = (int)(long)argument, in = -1;
    MPI_Request request;
    for (int i = 0; i < rounds; i++) {
        MPI_Isend(&tag, 1, MPI_INT, 0, tag, MPI_COMM_SELF, &request);
        MPI_Recv(&in, 1, MPI_INT, 0, tag, MPI_COMM_SELF, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (in != tag)
            abort();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int count = atoi(argv[1]), provided, waves = atoi(argv[4]);
    pthread_t threads[64];
    pthread_attr_t attributes;

    rounds = atoi(argv[2]);
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    if (provided != MPI_THREAD_MULTIPLE)
        return 9;
    pthread_attr_init(&attributes);
    if (pthread_attr_setstacksize(&attributes, 1024 * atol(argv[3])) != 0)
        return 8;
    for (int wave = 0; wave < waves; wave++) {
        for (long i = 0; i < count; i++)
            if (pthread_create(&threads[i], &attributes, work, (void *)i) != 0)
                return 7;
        for (int i = 0; i < count; i++)
            pthread_join(threads[i], NULL);
        call_comm_rank(1);
    }
    MPI_Finalize();
    return 0;
}
