"""One run: its tables, what the commands say of it, its pictures."""

import os
import subprocess
import time
import warnings
from pathlib import Path

from . import _native
from ._command import Error, command, command_path, joined, options_of, run_command
from ._table import Table


class TraceWarning(UserWarning):
    """Something in a run that every reader should know: damage, missing ranks, uncertain clocks."""


class Picture:
    """A picture as SVG, which notebooks show.

    Attributes
    ----------
    svg : str
        The picture's source.
    """

    def __init__(self, svg):
        self.svg = svg

    def _repr_svg_(self):
        return self.svg

    def save(self, path):
        """Writes the picture to a file."""
        Path(path).write_text(self.svg, encoding="utf-8")


class Plot:
    """Pictures of a run; see :attr:`Run.plot`. Options are those of ``gammachi plot``."""

    def __init__(self, path):
        self._path = path

    def _draw(self, kind, options):
        return Picture(run_command("plot", "--kind", kind, "--out", "-", *options_of(options), "--", self._path))

    def timeline(self, ranks=None, window=None):
        """A row for each rank, coloured by kind of call.

        Parameters
        ----------
        ranks : iterable of int, optional
            Only these ranks.
        window : (float, float), optional
            Only this stretch, seconds since the first rank left MPI_Init.
        """
        return self._draw("timeline", {"ranks": ranks, "window": window})

    def tau_chi(self, region=None):
        """Every rank in τ–χ space, with lines of equal efficiency."""
        return self._draw("tau-chi", {"region": region})

    def matrix(self, count=False, region=None):
        """Bytes from rank to rank, or with `count` the number of messages."""
        return self._draw("matrix-count" if count else "matrix", {"region": region})

    def sizes(self, region=None):
        """Messages by size."""
        return self._draw("sizes", {"region": region})

    def durations(self):
        """Calls by duration and kind."""
        return self._draw("durations", {})


class Run:
    """A recorded run; :func:`gammachi.open` makes one.

    Times in tables are nanoseconds since the first rank left MPI_Init, on one timeline for all ranks.
    docs/reference/export.md explains every column.

    Parameters
    ----------
    path : path-like
        The run directory.

    Raises
    ------
    Error
        It cannot be read; with the file, what is wrong and what to do.
    """

    def __init__(self, path):
        self.path = Path(path)
        self._native = _native.Run(self.path)
        self._report = {}
        for remark in self._native.remarks:
            warnings.warn(remark, TraceWarning, stacklevel=3)

    def __repr__(self):
        return f"<gammachi.Run {str(self.path)!r}: {self.size} ranks>"

    @property
    def size(self):
        """Number of ranks in MPI_COMM_WORLD."""
        return self._native.size

    # Tables

    def table(self, name, **wanted):
        """A table by its name; `wanted` are the parameters of :meth:`calls`."""
        for plural in ("functions", "columns"):
            if isinstance(wanted.get(plural), str):
                wanted[plural] = [wanted[plural]]
        if isinstance(wanted.get("ranks"), int):
            wanted["ranks"] = [wanted["ranks"]]
        elif wanted.get("ranks") is not None:
            wanted["ranks"] = list(wanted["ranks"])
        if wanted.get("functions") is not None:
            wanted["functions"] = set(wanted["functions"])
        if wanted.get("window") is not None:
            wanted["window"] = tuple(wanted["window"])
        return Table(self._native.table(name, **wanted))

    def calls(self, ranks=None, functions=None, window=None, region=None, columns=None):
        """Every recorded call.

        Parameters
        ----------
        ranks : int or iterable of int, optional
            Only calls of these ranks.
        functions : str or iterable of str, optional
            Only calls of these MPI functions, such as ``"MPI_Recv"``.
        window : (float, float), optional
            Only calls that begin in these seconds since the first rank left MPI_Init.
        region : str, optional
            Only calls inside of this region, which the program marked.
        columns : iterable of str, optional
            Only these columns.

        Returns
        -------
        Table
        """
        return self.table("calls", ranks=ranks, functions=functions, window=window, region=region, columns=columns)

    def messages(self, ranks=None, window=None, columns=None):
        """Every message with both its ends; with `ranks` those between them."""
        return self.table("messages", ranks=ranks, window=window, columns=columns)

    def unmatched(self, ranks=None, window=None, columns=None):
        """Sends and receives without a partner, and why."""
        return self.table("unmatched", ranks=ranks, window=window, columns=columns)

    def collectives(self, ranks=None, window=None, columns=None):
        """Collective operations, a row for each member."""
        return self.table("collectives", ranks=ranks, window=window, columns=columns)

    def regions(self, ranks=None, window=None, columns=None):
        """Regions that the program marked, each time that they ran."""
        return self.table("regions", ranks=ranks, window=window, columns=columns)

    def ranks(self):
        """Ranks: host, process, begin, end, how well the clock is known."""
        return self.table("ranks")

    def communicators(self):
        """Communicators; their members are ``table("members")``."""
        return self.table("communicators")

    def waits(self, columns=None):
        """Every wait: state, length, where, and the rank that made it wait."""
        return self.table("waits", columns=columns)

    def causes(self):
        """What made ranks wait, and what that cost the others."""
        return self.table("causes")

    def iterations(self):
        """Iterations that were found, with their slowest rank."""
        return self.table("iterations")

    def critical_path(self):
        """The stretches of the critical path in order of time."""
        return self.table("critical_path")

    # What the commands say

    def report(self, **options):
        """What ``gammachi report --json`` says (docs/reference/report-json.md), as a dictionary.

        Parameters
        ----------
        **options
            Options of the command: ``region="solve"``, ``window=(1.5, 20)``, ``from_start=True``.
        """
        key = tuple(sorted((name, joined(value) if value is not None else None) for name, value in options.items()))
        if key not in self._report:
            self._report[key] = command("report", self.path, **options)
        return self._report[key]

    def why(self, **options):
        """What ``gammachi why --json`` says: who waited for whom, what made them late, what it cost."""
        return command("why", self.path, **options)

    def whatif(self, **options):
        """What ``gammachi whatif --json`` says: without options the answers to standard questions.

        Parameters
        ----------
        **options
            Options of the command: ``latency="x0.5"``, ``rank=3, speed=1.2``, ``balance="all"``.
        """
        return command("whatif", self.path, **options)

    @property
    def efficiency(self):
        """Parallel efficiency of the whole run; None where it cannot be told."""
        return self.report()["efficiency"]["parallel"]

    @property
    def verdict(self):
        """The report's sentences about the run."""
        return "\n".join(self.report()["verdict"])

    @property
    def plot(self):
        """Pictures of the run: ``run.plot.timeline()``, ``tau_chi()``, ``matrix()`` …"""
        return Plot(self.path)


def open(path):
    """Opens a run directory that ``gammachi run`` wrote.

    Parameters
    ----------
    path : path-like
        The run directory, packed or not.

    Returns
    -------
    Run

    Raises
    ------
    Error
        It cannot be read; with the file, what is wrong and what to do.
    """
    return Run(path)


def record(launch, out=None, check=True, **options):
    """Runs an MPI program and records it.

    Parameters
    ----------
    launch : sequence of str
        Launcher and its arguments, as they would be typed: ``["mpirun", "-n", "4", "./app"]``.
    out : path-like, optional
        Run directory to write; by default one named after the program and the time.
    check : bool
        Whether a program that fails raises an error. Its run is readable all the same.
    **options
        Options of ``gammachi run``: ``level=2``, ``compute="blas"``, ``param={"N": 20000}``.

    Returns
    -------
    Run

    Raises
    ------
    Error
        The program ended with another exit code than 0 (see `check`), or nothing was recorded.
    """
    launch = [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in launch]
    if out is None:
        out = f"{Path(launch[-1]).stem or 'run'}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.gammachi"
    words = [str(command_path()), "run", "--out", os.fspath(out), *options_of(options), "--", *launch]
    code = subprocess.run(words, check=False).returncode
    if code and check:
        raise Error(f"{' '.join(launch)}: ended with exit code {code}; gammachi.open({os.fspath(out)!r}) "
                    "reads what was recorded until then")
    return Run(out)
