"""Computes in Python functions whose stacks are known. It calls MPI by ctypes, so that it needs no package.

Arguments: file name of the MPI library, what to do, seconds of CPU time.
"""
import ctypes
import os
import subprocess
import sys
import threading
import time

LIBRARY = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)
# By the global scope, as a module that is linked with the library would.
MPI = ctypes.CDLL(None)
if hasattr(LIBRARY, "ompi_mpi_comm_world"):
    WORLD = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(LIBRARY, "ompi_mpi_comm_world")))
else:
    WORLD = ctypes.c_int(0x44000000)


def burn(seconds):
    end, n = time.thread_time() + seconds, 0
    while time.thread_time() < end:
        for i in range(200):
            n += i * i
    return n


def light(seconds):
    return burn(seconds / 4)


def heavy(seconds):
    n = burn(seconds * 3 / 4)  # line of heavy
    return n


def shares(seconds):
    for _ in range(20):
        light(seconds / 20)
        heavy(seconds / 20)
        MPI.MPI_Barrier(WORLD)


def recursion(depth, seconds):
    return burn(seconds) if depth == 0 else recursion(depth - 1, seconds)


def chain(depth, seconds):
    if depth:
        yield from chain(depth - 1, seconds)
    else:
        burn(seconds)
    yield depth


async def awaits(depth, seconds):
    return burn(seconds) if depth == 0 else await awaits(depth - 1, seconds)


def coroutine(seconds):
    try:
        awaits(2, seconds).send(None)
    except StopIteration:
        pass


def λ_größe(seconds):
    return burn(seconds)


def stacks(seconds):
    recursion(30, seconds)
    list(chain(3, seconds))
    coroutine(seconds)
    scope = {"burn": burn}
    exec(compile("def made(seconds):\n    pass\n    burn(seconds)\n", "made.py", "exec"), scope)
    scope["made"](seconds)
    sorted([1], key=lambda _: burn(seconds))
    λ_größe(seconds)


def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def raises(depth):
    if depth == 0:
        raise ValueError
    try:
        raises(depth - 1)
    finally:
        depth += 1


def made(turn):
    scope = {}
    source = "def made_%d(x):\n    return sum(y * 2 for y in range(x))\n" % turn
    exec(compile(source, "made_%d.py" % (turn % 7), "exec"), scope)
    return scope["made_%d" % turn](30)


def churn(seconds):
    """Makes and ends frames of all kinds as fast as it can, and checks what they compute."""
    end, turn, sum_of_all = time.monotonic() + seconds, 0, 0
    while time.monotonic() < end:
        sum_of_all += fib(8) + sum(chain(20, 0)) + made(turn)
        sum_of_all += sorted(range(40, 0, -1), key=lambda value: -value)[0]
        try:
            raises(10)
        except ValueError:
            sum_of_all += 1
        coroutine(0)
        turn += 1
    assert sum_of_all == turn * (21 + 210 + 870 + 40 + 1), "%d turns: %d" % (turn, sum_of_all)


def threads(seconds):
    def in_thread():
        heavy(seconds)

    others = [threading.Thread(target=in_thread) for _ in range(2)]
    for other in others:
        other.start()
    light(seconds)
    for other in others:
        other.join()


def churn_in_threads(seconds):
    others = [threading.Thread(target=churn, args=(seconds,)) for _ in range(2)]
    for other in others:
        other.start()
    churn(seconds)
    for other in others:
        other.join()


def children(seconds):
    child = os.fork()
    if child == 0:
        burn(seconds)
        os._exit(7)
    heavy(seconds)
    assert os.waitpid(child, 0)[1] == 7 << 8
    out = subprocess.check_output([sys.executable, "-c", "print(sum(range(10 ** 6)))"])
    assert out.split() == [b"499999500000"], out


def dies(seconds):
    heavy(seconds)
    os.kill(os.getpid(), 9)


def waits(seconds):
    for _ in range(20):
        MPI.MPI_Barrier(WORLD)  # line of the call
        burn(seconds / 20)


MPI.MPI_Init(None, None)
globals()[sys.argv[2]](float(sys.argv[3]))
MPI.MPI_Finalize()
print("right")
