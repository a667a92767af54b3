/* 2 ranks meet every 10 ms for 0.6 s, after the first quarter with 100 MB more than before; then both are
 * killed by SIGKILL. */
#include "victim.h"

int main(int argc, char **argv)
{
    char *memory = NULL;

    MPI_Init(&argc, &argv);
    for (int step = 0; step < 60; step++) {
        if (step == 15) {
            memory = malloc(100 << 20);
            memset(memory, 1, 100 << 20);
        }
        usleep(10 * 1000);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    kill(getpid(), SIGKILL);
    return memory ? memory[7] : 0;
}
