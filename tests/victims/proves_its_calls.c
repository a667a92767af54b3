/* proves_its_calls CALLS PREFIX: every rank makes this number of very short calls, so that much of the time goes into
 * changing the recorder's windows, and counts those that have returned. */
#include "victim.h"
#include "proof.h"

int main(int argc, char **argv)
{
    int rank, is_initialized;
    long calls = atol(argv[1]);
    volatile uint64_t *proof;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    proof = proof_of(argv[2], rank);
    for (long i = 0; i < calls; i++) {
        MPI_Initialized(&is_initialized);
        proof[0] = (uint64_t)i + 1;
    }
    MPI_Finalize();
    return 0;
}
