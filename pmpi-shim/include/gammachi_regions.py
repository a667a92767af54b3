"""Names regions of a Python program's time for gammachi's reports, and declares work.

    from gammachi_regions import region, work

    with region("solve"):
        ...
        work(flops=2.0 * n * n, bytes=8.0 * n * n)

One file, no dependencies: copy it beside the program. gammachi.h explains the calls.
Without the recorder (a preloaded libgammachi.so) the calls do nothing.

SPDX-License-Identifier: MIT OR Apache-2.0
"""

import contextlib
import ctypes

__all__ = ["region", "region_begin", "region_end", "work"]


def _find(name, *types):
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError):
        return None
    function.argtypes = types
    function.restype = None
    return function


_begin = _find("gammachi_recorder_region_begin", ctypes.c_char_p)
_end = _find("gammachi_recorder_region_end", ctypes.c_char_p)
_work = _find("gammachi_recorder_work", ctypes.c_double, ctypes.c_double)


def region_begin(name):
    """Begins a region, if the recorder is there.

    Parameters
    ----------
    name : str
        As reports will show it.
    """
    if _begin is not None:
        _begin(name.encode())


def region_end(name):
    """Ends a region.

    Parameters
    ----------
    name : str
        As it began.
    """
    if _end is not None:
        _end(name.encode())


def work(flops, bytes=0.0):
    """Declares what was done since the last call.

    Parameters
    ----------
    flops : float
        Floating-point operations.
    bytes : float
        Bytes that they moved from or to memory.
    """
    if _work is not None:
        _work(flops, bytes)


@contextlib.contextmanager
def region(name):
    """A region that lasts for a `with` block or a decorated function, even if an exception leaves it.

    Parameters
    ----------
    name : str
        As reports will show it.

    Returns
    -------
    contextlib.ContextDecorator
        For ``with region("solve"):`` or ``@region("solve")``.
    """
    region_begin(name)
    try:
        yield
    finally:
        region_end(name)
