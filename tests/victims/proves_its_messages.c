/* proves_its_messages MESSAGES PREFIX: 2 ranks send that many messages of 8 bytes, some each way in turn. After
 * each call each rank writes into the mapped file PREFIX-RANK how many have returned, beside its process id: what
 * stands there has happened, however the process ends. */
#include "victim.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

/* Messages in one direction before the other one has its turn: on a busy machine each turn costs a slice of
 * the core. */
#define BURST 50

int main(int argc, char **argv)
{
    int rank, file;
    long messages = atol(argv[1]);
    char path[4096];
    double data = 0;
    volatile uint64_t *proof;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    snprintf(path, sizeof path, "%s-%d", argv[2], rank);
    file = open(path, O_RDWR | O_CREAT, 0600);
    if (file < 0 || ftruncate(file, 16) != 0)
        return 9;
    proof = mmap(NULL, 16, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (proof == MAP_FAILED)
        return 8;
    proof[1] = (uint64_t)getpid();
    for (long i = 0; i < messages; i++) {
        if (rank == i / BURST % 2)
            MPI_Send(&data, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD);
        else
            MPI_Recv(&data, 1, MPI_DOUBLE, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        proof[0] = (uint64_t)i + 1;
    }
    MPI_Finalize();
    return 0;
}
