"""The small program of program.c with mpi4py's upper-case methods."""

import signal
from array import array

from mpi4py import MPI

signal.alarm(120)
world = MPI.COMM_WORLD
rank = world.Get_rank()
assert world.Get_size() == 2
other = 1 - rank


def ints(*values):
    return array("i", values)


def blocking():
    values = ints(1, 2, 3, 0)
    status = MPI.Status()
    if rank == 0:
        world.Send([values, 3, MPI.INT], 1, 1)
        world.Send([values, 0, MPI.INT], 1, 2)
    else:
        world.Probe(MPI.ANY_SOURCE, 1, status)
        world.Recv([values, 4, MPI.INT], MPI.ANY_SOURCE, MPI.ANY_TAG, status)
        assert (status.source, status.tag, status.Get_count(MPI.INT)) == (0, 1, 3)
        world.Recv([values, 4, MPI.INT], 0, 2)
    world.Send([values, 1, MPI.INT], MPI.PROC_NULL, 3)
    back = array("d", [0, 0])
    world.Sendrecv(array("d", [1.5, 2.5]), other, 4, back, other, 4, status)
    assert back[1] == 2.5 and status.source == other


def non_blocking():
    mine, got = ints(rank), [ints(-1), ints(-1)]
    statuses = [MPI.Status(), MPI.Status()]
    for way in range(2):
        requests = [world.Irecv(got[way], other, 5), world.Isend(mine, other, 5)]
        if way == 0:
            MPI.Request.Waitall(requests)
        else:
            MPI.Request.Waitall(requests, statuses)
        assert got[way][0] == other and requests[0] == MPI.REQUEST_NULL
    assert statuses[0].source == other and statuses[0].tag == 5
    requests = [world.Irecv(got[0], other, 6), world.Isend(mine, other, 6)]
    requests[0].Wait(statuses[0])
    requests[1].Wait()


def collective():
    values, both, total = ints(rank, 1, 2, 3), ints(-1, -1), ints(1)
    whole = array("d", [0, 0])
    world.Bcast(values, 0)
    assert values[0] == 0
    world.Reduce(array("d", [1, 2]), whole, MPI.SUM, 1)
    assert rank == 0 or whole[1] == 4
    world.Allgather(ints(10 + rank), both)
    assert both[1] == 11
    world.Alltoall(both, ints(-1, -1))
    world.Barrier()
    world.Allreduce(MPI.IN_PLACE, total, MPI.SUM)
    assert total[0] == 2


def communicators():
    twin = world.Dup()
    twin.Barrier()
    half = twin.Split(rank, 0)
    half.Barrier()
    half.Free()
    twin.Free()
    assert twin == MPI.COMM_NULL


def the_rest():
    values, got, memory = ints(0, 1, 2, 3, 4, 5), ints(0, 0, 0, 0, 0, 0), ints(*[-1] * 16)
    three = MPI.INT.Create_contiguous(3)
    three.Commit()
    if rank == 0:
        world.Send([values, 2, three], 1, 7)
    else:
        world.Recv([got, 2, three], 0, 7)
        assert got[5] == 5
    three.Free()

    requests = [
        world.Recv_init([got, 1, MPI.INT], other, 8),
        world.Send_init([values, 1, MPI.INT], other, 8),
    ]
    MPI.Prequest.Startall(requests)
    MPI.Request.Waitall(requests)
    for request in requests:
        request.Free()

    window = MPI.Win.Create(memory, 4, MPI.INFO_NULL, world)
    window.Fence()
    window.Put(ints(rank), other)
    window.Fence()
    window.Free()
    assert memory[0] == other


blocking()
non_blocking()
collective()
communicators()
the_rest()
