"""Runs of MPI programs, recorded and explained by gammachi, as tables, dictionaries and pictures.

>>> import gammachi
>>> run = gammachi.record(["mpirun", "-n", "4", "./app"])      # doctest: +SKIP
>>> run.efficiency                                             # doctest: +SKIP
0.77
>>> run.calls(functions=["MPI_Recv"]).to_polars()              # doctest: +SKIP

:func:`open` reads a run directory that ``gammachi run`` wrote; its methods give tables that pyarrow,
Polars, pandas and DuckDB take without a copy, and what the commands say as dictionaries.
:func:`region` and :func:`work` mark a Python program's own time. The command itself is installed
beside this package.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._regions import region, region_begin, region_end, work
else:
    from gammachi_regions import region, region_begin, region_end, work

from ._command import Error, command, command_path
from ._run import Plot, Picture, Run, TraceWarning, open, record
from ._studies import compare, model, scaling, sweep
from ._table import Table
from ._native import __version__

__all__ = [
    "Error", "Picture", "Plot", "Run", "Table", "TraceWarning", "command", "command_path", "compare",
    "model", "open", "record", "region", "region_begin", "region_end", "scaling", "sweep", "work",
]
