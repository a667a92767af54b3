"""mpi4py's lower-case methods: each makes one or more MPI calls with pickles."""

import signal

from mpi4py import MPI

signal.alarm(120)
world = MPI.COMM_WORLD
rank = world.Get_rank()
if rank == 0:
    world.send([1, 2, 3], 1, 1)
    world.isend("text", 1, 2).wait()
else:
    assert world.recv(None, 0, 1) == [1, 2, 3]
    assert world.irecv(None, 0, 2).wait() == "text"
assert world.bcast({"a": 1} if rank == 0 else None, 0) == {"a": 1}
assert world.gather(rank, 1) == ([0, 1] if rank == 1 else None)
assert world.allreduce(rank + 1) == 3
world.barrier()
