"""A Jacobi solver of the heat equation on a ring of ranks, with mpi4py: pickled and buffered messages,
derived communicators, collectives, one-sided access and non-blocking halos. Prints the residual."""

import array
import sys

from mpi4py import MPI

world = MPI.COMM_WORLD
rank, size = world.Get_rank(), world.Get_size()
cells, steps = int(sys.argv[1]), int(sys.argv[2])

settings = world.bcast({"cells": cells, "steps": steps} if rank == 0 else None)
ring = world.Create_cart([size], periods=[True])
left, right = ring.Shift(0, 1)
here = array.array("d", [float(rank == 0)] * (settings["cells"] + 2))
window = MPI.Win.Allocate(8, comm=world)

change = 0.0
for step in range(settings["steps"]):
    requests = [
        ring.Isend([memoryview(here)[1:2], MPI.DOUBLE], left, 1),
        ring.Isend([memoryview(here)[-2:-1], MPI.DOUBLE], right, 2),
        ring.Irecv([memoryview(here)[-1:], MPI.DOUBLE], right, 1),
        ring.Irecv([memoryview(here)[:1], MPI.DOUBLE], left, 2),
    ]
    MPI.Request.Waitall(requests)
    new = array.array("d", here)
    for i in range(1, len(here) - 1):
        new[i] = 0.5 * here[i] + 0.25 * (here[i - 1] + here[i + 1])
    change = max(abs(a - b) for a, b in zip(new, here))
    here = new
    if step % 10 == 0:
        change = ring.allreduce(change, op=MPI.MAX)

window.Fence()
if rank != 0:
    window.Accumulate([array.array("d", [1.0]), MPI.DOUBLE], 0, op=MPI.SUM)
window.Fence()
half = world.Split(rank % 2, rank)
totals = half.gather(sum(here[1:-1]), root=0)
total = world.allreduce(sum(here[1:-1]))
if rank == 0:
    print(f"total {total:.6f} of {float(cells):.6f}, change {change:.3e}, {len(totals)} even ranks")
half.Free()
window.Free()
