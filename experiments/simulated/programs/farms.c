// Programs in which one rank serves or delays the others.
#include "job.h"

// One rank hands out tasks of uneven length.
static void master_workers(const struct job *job) {
    int tasks = 2048 > 2 * job->p ? 2048 : 2 * job->p;
    double each = job->flops / tasks;
    if (job->p == 1) {
        for (int task = 0; task < tasks; task++)
            compute(job, each * (0.5 + uniform((unsigned)task, 1)));
        return;
    }
    if (job->rank == 0) {
        int working = job->p - 1, next = 0, answer;
        while (working) {
            MPI_Status status;
            MPI_Recv(&answer, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, &status);
            int task = next < tasks ? next++ : -1;
            working -= task < 0;
            MPI_Send(&task, 1, MPI_INT, status.MPI_SOURCE, 0, MPI_COMM_WORLD);
        }
        return;
    }
    for (int task = 0;;) {
        MPI_Send(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        MPI_Recv(&task, 1, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (task < 0)
            break;
        compute(job, each * (0.5 + uniform((unsigned)task, 1)));
    }
}

// One rank reads and prepares what all ranks need.
static void serial_part(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        if (job->rank == 0)
            compute(job, job->flops / 200);
        MPI_Bcast(payload, 65536, MPI_BYTE, 0, MPI_COMM_WORLD);
        compute(job, job->flops / job->p);
    }
}

// Every rank repeats a part of the work.
static void replicated_part(const struct job *job) {
    for (int i = 0; i < job->iterations; i++) {
        compute(job, job->flops / job->p + 1e5 + job->flops / 2000);
        allreduce(64, MPI_COMM_WORLD);
    }
}

// Rank 0 writes the results of one rank after another, with a handshake.
static void funnel(const struct job *job) {
    compute(job, job->flops / job->p);
    int each = count_of(job->bytes / 16 / job->p);
    for (int rank = 1; rank < job->p; rank++) {
        if (job->rank == 0) {
            MPI_Send(payload, 1, MPI_BYTE, rank, 0, MPI_COMM_WORLD);
            MPI_Recv(payload, each, MPI_BYTE, rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else if (job->rank == rank) {
            MPI_Recv(payload, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            MPI_Send(payload, each, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
        }
    }
}

const struct entry farms[] = {{"master-workers", master_workers},
                              {"serial-part", serial_part},
                              {"replicated-part", replicated_part},
                              {"funnel", funnel},
                              {0, 0}};
