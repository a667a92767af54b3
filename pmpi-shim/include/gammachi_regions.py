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


if _begin and _end:

    def region_begin(name):
        """Begins a region."""
        _begin(name.encode())

    def region_end(name):
        """Ends a region."""
        _end(name.encode())

else:

    def region_begin(name):
        """Begins a region; the recorder is absent."""

    def region_end(name):
        """Ends a region; the recorder is absent."""


if _work:

    def work(flops, bytes=0.0):
        """Declares the floating-point operations done since the last call, and the bytes they moved."""
        _work(flops, bytes)

else:

    def work(flops, bytes=0.0):
        """Declares floating-point operations; the recorder is absent."""


@contextlib.contextmanager
def region(name):
    """A region that lasts for a `with` block, even if an exception leaves the block."""
    region_begin(name)
    try:
        yield
    finally:
        region_end(name)
