// Programs whose communication is one collective operation.
#include "job.h"

static void dots(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / job->p);
        allreduce(8, MPI_COMM_WORLD);
        allreduce(16, MPI_COMM_WORLD);
    }
}

// Data-parallel training: the size of the gradient does not depend on the number of ranks.
static void gradients(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / job->p);
        allreduce(65536, MPI_COMM_WORLD);
    }
}

static void broadcast(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        MPI_Bcast(payload, 500000, MPI_BYTE, 0, MPI_COMM_WORLD);
        compute(job, job->flops / job->p);
    }
}

static void allgather(const struct job *job) {
    int each = count_of(job->bytes / 16 / job->p);
    compute(job, job->flops / job->p);
    MPI_Allgather(payload, each, MPI_BYTE, payload + PAYLOAD / 2, each, MPI_BYTE, MPI_COMM_WORLD);
}

static void gather_results(const struct job *job) {
    int each = count_of(job->bytes / 4 / job->p);
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / job->p);
        MPI_Gather(payload, each, MPI_BYTE, payload + PAYLOAD / 2, each, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
}

// Offsets in a file: every rank needs the sum over those before it.
static void prefix_sums(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / job->p);
        int previous = job->rank ? job->rank - 1 : MPI_PROC_NULL;
        int next = job->rank + 1 < job->p ? job->rank + 1 : MPI_PROC_NULL;
        MPI_Recv(payload, 8, MPI_BYTE, previous, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(payload, 8, MPI_BYTE, next, 0, MPI_COMM_WORLD);
    }
    allreduce(8, MPI_COMM_WORLD);
}

const struct entry collectives[] = {
    {"dots", dots},           {"gradients", gradients},           {"broadcast", broadcast},
    {"allgather", allgather}, {"gather-results", gather_results}, {"prefix-sums", prefix_sums},
    {0, 0}};
