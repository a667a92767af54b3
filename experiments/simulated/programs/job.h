// Parameters and functions for every simulated program.
//
// All ranks run in one process and share their globals (smpirun -no-privatize), so sums over ranks
// need no messages. Payloads are never read: one buffer serves all ranks, and SimGrid does not copy it.
#ifndef JOB_H
#define JOB_H

#include <mpi.h>

struct job {
    int rank, p;
    double flops;  // of the whole problem, per iteration
    double bytes;  // of the whole problem
    int iterations;
};

// Computes: simulated time passes, and counts as useful (gamma) of this rank.
void compute(const struct job *job, double flops);

// Sends and receives `bytes` along a pair of neighbours (MPI_PROC_NULL allowed).
void exchange(double bytes, int to, int from, MPI_Comm comm);

// An allreduce of `bytes` whose operation costs nothing to simulate.
void allreduce(double bytes, MPI_Comm comm);

// A number in [0, 1) that depends only on the arguments.
double uniform(unsigned a, unsigned b);

// The shared payload.
extern char *payload;
enum { PAYLOAD = 512 << 20 };

int count_of(double bytes);
int whole_log2(int p);

// A communicator of a grid as square as p allows (or a cube), periodic.
MPI_Comm grid_of(int p, int dimensions, int *extents);

// Of a grid the part along some dimensions; of all ranks those with one colour. Made once.
MPI_Comm part_of(MPI_Comm grid, const int *remain);
MPI_Comm split_by(int colour, int rank);

typedef void (*Kind)(const struct job *);
struct entry {
    const char *name;
    Kind run;
};
extern const struct entry collectives[], halos[], transposes[], sweeps[], farms[], factorisations[],
    uneven[], later[], apart[], judges[], unseen[], unseen2[], unseen3[];

#endif
