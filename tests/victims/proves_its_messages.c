/* proves_its_messages MESSAGES PREFIX: 2 ranks send this number of messages of 8 bytes, alternating between the two
 * directions, and count the calls that have returned. */
#include "victim.h"
#include "proof.h"

/* Messages in one direction before the direction changes: on a busy machine each change costs a time slice of the
 * core. */
#define BURST 50

int main(int argc, char **argv)
{
    int rank;
    long messages = atol(argv[1]);
    double data = 0;
    volatile uint64_t *proof;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    proof = proof_of(argv[2], rank);
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
