"""One run: its tables, what the commands say of it, its pictures."""

from __future__ import annotations

import operator
import os
import shutil
import subprocess
import time
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, Optional, SupportsIndex, Union

from . import _native
from ._command import Error, StrPath, command, command_path, joined, options_of, run_command, words_of
from ._table import Table

Ranks = Optional[Union[SupportsIndex, Iterable[SupportsIndex]]]
Names = Optional[Union[str, Iterable[str]]]
Window = Optional[Sequence[float]]


class TraceWarning(UserWarning):
    """Something in a run that every reader should know: damage, missing ranks, uncertain clocks."""


class Picture:
    """A picture as SVG, which notebooks show.

    Attributes
    ----------
    svg : str
        The picture's source.
    """

    def __init__(self, svg: str) -> None:
        self.svg = svg

    def _repr_svg_(self) -> str:
        return self.svg

    def save(self, path: StrPath) -> None:
        """Writes the picture to a file.

        Parameters
        ----------
        path : path-like
            The file; one of that name is replaced.
        """
        Path(path).write_text(self.svg, encoding="utf-8")


class Plot:
    """Pictures of a run; see :attr:`Run.plot`. Options are those of ``gammachi view --svg``."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def _draw(self, kind: str, options: dict[str, Any]) -> Picture:
        return Picture(run_command("view", "--kind", kind, "--svg", "-", *options_of(options), "--", self._path))

    def timeline(self, ranks: Ranks = None, window: Window = None) -> Picture:
        """A row for each rank, coloured by kind of call.

        Parameters
        ----------
        ranks : int or iterable of int, optional
            Only these ranks.
        window : (float, float), optional
            Only this stretch, seconds since the first rank left MPI_Init.

        Returns
        -------
        Picture
        """
        return self._draw("timeline", {"ranks": ranks, "window": window})

    def tau_chi(self, region: Optional[str] = None) -> Picture:
        """Every rank in τ–χ space, with lines of equal efficiency.

        Parameters
        ----------
        region : str, optional
            Only inside of this region, which the program marked.

        Returns
        -------
        Picture
        """
        return self._draw("tau-chi", {"region": region})

    def matrix(self, count: bool = False, region: Optional[str] = None) -> Picture:
        """Bytes sent from rank to rank.

        Parameters
        ----------
        count : bool
            The number of messages instead of bytes.
        region : str, optional
            Only inside of this region, which the program marked.

        Returns
        -------
        Picture
        """
        return self._draw("matrix-count" if count else "matrix", {"region": region})

    def sizes(self, region: Optional[str] = None) -> Picture:
        """Messages by size.

        Parameters
        ----------
        region : str, optional
            Only inside of this region, which the program marked.

        Returns
        -------
        Picture
        """
        return self._draw("sizes", {"region": region})

    def durations(self) -> Picture:
        """Calls by duration and kind.

        Returns
        -------
        Picture
        """
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

    def __init__(self, path: StrPath) -> None:
        self.path = Path(path)
        self._native = _native.Run(self.path)
        self._report: dict[Any, dict[str, Any]] = {}
        for remark in self._native.remarks:
            warnings.warn(remark, TraceWarning, stacklevel=3)

    def __repr__(self) -> str:
        return f"<gammachi.Run {str(self.path)!r}: {self.size} ranks>"

    @property
    def size(self) -> int:
        """Number of ranks in MPI_COMM_WORLD."""
        return self._native.size

    # Tables

    def table(
        self,
        name: str,
        ranks: Ranks = None,
        functions: Names = None,
        window: Window = None,
        region: Optional[str] = None,
        columns: Names = None,
    ) -> Table:
        """A table by its name; the other methods are shorter to write.

        Parameters
        ----------
        name : str
            As in docs/reference/export.md: ``"calls"``, ``"members"``, ``"report_ranks"`` …
        ranks, functions, window, region, columns : optional
            Parameters of :meth:`calls`; `functions` and `region` are for calls only.

        Returns
        -------
        Table

        Raises
        ------
        ValueError
            There is no such table, column, rank or region; with those that there are.
        """
        return Table(self._native.table(
            name,
            ranks=_numbers(ranks),
            window=_pair(window),
            functions=None if functions is None else set(_names(functions)),
            region=region,
            columns=None if columns is None else _names(columns),
        ))

    def tables(self) -> dict[str, Table]:
        """The tables of ``gammachi report`` and ``why``, with all their rows and exact numbers.

        Call sites, delays and the like are words, as on the screen; :attr:`Table.units` tells seconds from
        shares.

        Returns
        -------
        dict of str to Table
            Those that have rows, by the names that :meth:`table` takes: ``"report_ranks"``,
            ``"report_calls"``, ``"report_waits"``, ``"report_delays"`` …

        Raises
        ------
        Error
            The run was recorded at level 0, or has more than 50 million events.
        """
        return {name: self.table(name) for name in self._native.report_tables()}

    def code(self, by: Literal["function", "line", "part"] = "function") -> Table:
        """CPU time in the program's own functions, from samples (``gammachi run --sample``).

        Parameters
        ----------
        by : {"function", "line", "part"}
            A row for each function of all ranks; for each source line with own time; for each function of each
            part of the run, which the column ``part`` names: ``"rank"``; where several threads of a rank were
            sampled, ``"thread"`` of a rank and ``"threads"`` of all ranks (column ``thread``); ``"region"``;
            ``"phase"``; ``"slow iterations"`` and ``"other iterations"`` of a phase.

        Returns
        -------
        Table
            Seconds in the function or line itself (``self_s``) with their standard error (``error_s``), most
            first.

        Raises
        ------
        ValueError
            The code was not sampled, or `by` is none of these.
        """
        names = {"function": "report_code", "line": "report_code_lines", "part": "report_code_parts"}
        if by not in names:
            raise ValueError(f"by is {by!r}; it can be {', '.join(map(repr, names))}")
        return self.table(names[by])

    def calls(
        self,
        ranks: Ranks = None,
        functions: Names = None,
        window: Window = None,
        region: Optional[str] = None,
        columns: Names = None,
    ) -> Table:
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

    def messages(self, ranks: Ranks = None, window: Window = None, columns: Names = None) -> Table:
        """Every message with both its ends; with `ranks` those between them.

        Parameters
        ----------
        ranks, window, columns : optional
            Parameters of :meth:`calls`.

        Returns
        -------
        Table
        """
        return self.table("messages", ranks=ranks, window=window, columns=columns)

    def unmatched(self, ranks: Ranks = None, window: Window = None, columns: Names = None) -> Table:
        """Sends and receives without a partner, and why.

        Parameters
        ----------
        ranks, window, columns : optional
            Parameters of :meth:`calls`.

        Returns
        -------
        Table
        """
        return self.table("unmatched", ranks=ranks, window=window, columns=columns)

    def collectives(self, ranks: Ranks = None, window: Window = None, columns: Names = None) -> Table:
        """Collective operations, a row for each member.

        Parameters
        ----------
        ranks, window, columns : optional
            Parameters of :meth:`calls`.

        Returns
        -------
        Table
        """
        return self.table("collectives", ranks=ranks, window=window, columns=columns)

    def regions(self, ranks: Ranks = None, window: Window = None, columns: Names = None) -> Table:
        """Regions that the program marked, each time that they ran.

        Parameters
        ----------
        ranks, window, columns : optional
            Parameters of :meth:`calls`.

        Returns
        -------
        Table
        """
        return self.table("regions", ranks=ranks, window=window, columns=columns)

    def parallel_regions(self, ranks: Ranks = None, window: Window = None, columns: Names = None) -> Table:
        """Parallel regions of OpenMP (``gammachi run --openmp``), each time that they ran.

        Parameters
        ----------
        ranks, window, columns : optional
            Parameters of :meth:`calls`.

        Returns
        -------
        Table
            Without rows if they were not recorded.
        """
        return self.table("parallel_regions", ranks=ranks, window=window, columns=columns)

    def file_calls(self, ranks: Ranks = None, window: Window = None, columns: Names = None) -> Table:
        """Calls on files (``gammachi run --io``): a row for calls of one kind on one file, one after the other.

        Parameters
        ----------
        ranks, window, columns : optional
            Parameters of :meth:`calls`.

        Returns
        -------
        Table
            Without rows if they were not recorded.
        """
        return self.table("file_calls", ranks=ranks, window=window, columns=columns)

    def threads(self) -> list[dict[str, Any]]:
        """What the OpenMP threads of each rank do, in seconds of threads.

        Returns
        -------
        list of dict
            As ``threads`` of docs/reference/report-json.md; empty if that is not known.
        """
        told: list[dict[str, Any]] = self.report().get("threads") or []
        return told

    def files(self, by: Literal["file", "rank"] = "file") -> list[dict[str, Any]]:
        """Files that the program works on: calls, bytes, seconds.

        Parameters
        ----------
        by : {"file", "rank"}
            One for each file, or for each rank.

        Returns
        -------
        list of dict
            As ``files`` and ``rank_files`` of docs/reference/report-json.md; empty if they were not recorded.

        Raises
        ------
        ValueError
            If `by` is neither.
        """
        keys = {"file": "files", "rank": "rank_files"}
        if by not in keys:
            raise ValueError(f"by is {by!r}; it can be {', '.join(map(repr, keys))}")
        told: list[dict[str, Any]] = self.report().get(keys[by]) or []
        return told

    def ranks(self) -> Table:
        """Ranks: host, process, begin, end, how well the clock is known.

        Returns
        -------
        Table
        """
        return self.table("ranks")

    def communicators(self) -> Table:
        """Communicators; their members are ``table("members")``.

        Returns
        -------
        Table
        """
        return self.table("communicators")

    def waits(self, columns: Names = None) -> Table:
        """Every wait: state, length, where, and the rank that made it wait.

        Parameters
        ----------
        columns : iterable of str, optional
            Only these columns.

        Returns
        -------
        Table
        """
        return self.table("waits", columns=columns)

    def causes(self) -> Table:
        """What made ranks wait, and what that cost the others.

        Returns
        -------
        Table
        """
        return self.table("causes")

    def iterations(self) -> Table:
        """Iterations that were found, with their slowest rank.

        Returns
        -------
        Table
        """
        return self.table("iterations")

    def critical_path(self) -> Table:
        """The stretches of the critical path in order of time.

        Returns
        -------
        Table
        """
        return self.table("critical_path")

    # What the commands say

    def report(self, **options: Any) -> dict[str, Any]:
        """What ``gammachi report --json`` says (docs/reference/report-json.md), as a dictionary.

        Parameters
        ----------
        **options : object
            Options of the command: ``region="solve"``, ``window=(1.5, 20)``, ``from_start=True``.

        Returns
        -------
        dict
            The same one when asked again.
        """
        key = tuple(sorted((name, joined(value) if value is not None else None) for name, value in options.items()))
        if key not in self._report:
            self._report[key] = command("report", self.path, **options)
        return self._report[key]

    def why(self, **options: Any) -> dict[str, Any]:
        """What ``gammachi why --json`` says: who waited for whom, what made them late, what it cost.

        Parameters
        ----------
        **options : object
            Options of the command.

        Returns
        -------
        dict
            See docs/reference/why-json.md.
        """
        document: dict[str, Any] = command("why", self.path, **options)
        return document

    def whatif(self, **options: Any) -> dict[str, Any]:
        """What ``gammachi whatif --json`` says: without options the answers to standard questions.

        Parameters
        ----------
        **options : object
            Options of the command: ``latency="x0.5"``, ``rank=3, speed=1.2``, ``balance="all"``.

        Returns
        -------
        dict
            See docs/reference/predictions-json.md.
        """
        document: dict[str, Any] = command("whatif", self.path, **options)
        return document

    @property
    def efficiency(self) -> Optional[float]:
        """Parallel efficiency of the whole run; None where it cannot be told."""
        told: Optional[float] = self.report()["efficiency"]["parallel"]
        return told

    @property
    def hybrid(self) -> Optional[dict[str, Any]]:
        """Efficiency of all OpenMP threads and its factors; None where it cannot be told."""
        told: Optional[dict[str, Any]] = self.report().get("hybrid")
        return told

    @property
    def verdict(self) -> str:
        """The report's sentences about the run."""
        return "\n".join(self.report()["verdict"])

    @property
    def plot(self) -> Plot:
        """Pictures of the run: ``run.plot.timeline()``, ``tau_chi()``, ``matrix()`` …"""
        return Plot(self.path)


def _numbers(ranks: Ranks) -> Optional[list[int]]:
    if ranks is None:
        return None
    # Numbers of NumPy count, too.
    given = ranks if isinstance(ranks, Iterable) else [ranks]
    numbers = [operator.index(rank) for rank in given]
    for number in numbers:
        if not 0 <= number < 1 << 32:
            raise ValueError(f"{number} is not a rank: they are counted from 0")
    return numbers


def _names(names: str | Iterable[str]) -> list[str]:
    return [names] if isinstance(names, str) else list(names)


def _pair(window: Window) -> Optional[tuple[float, float]]:
    if window is None:
        return None
    if len(window) != 2:
        raise ValueError(f"window has {len(window)} numbers, not two: from and to, in seconds")
    return float(window[0]), float(window[1])


def open(path: StrPath) -> Run:
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


def record(
    launch: str | Sequence[StrPath],
    out: Optional[StrPath] = None,
    check: bool = True,
    **options: Any,
) -> Run:
    """Runs an MPI program and records it.

    Parameters
    ----------
    launch : str or sequence of str
        Launcher and its arguments: ``"mpirun -n 4 ./app"`` or ``["mpirun", "-n", "4", "./app"]``.
    out : path-like, optional
        Run directory to write; by default one named after the program and the time.
    check : bool
        Whether a program that fails raises an error. Its run is readable all the same.
    **options : object
        Options of ``gammachi run``: ``level=2``, ``compute="blas"``, ``param={"N": 20000}``.

    Returns
    -------
    Run

    Raises
    ------
    Error
        The program ended with another exit code than 0 (see `check`), or nothing was recorded.
    """
    program = words_of(launch)
    if not program:
        raise Error("there is nothing to run: name a launcher and a program")
    if out is None:
        out = f"{_program_name(program)}-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.gammachi"
    words = [str(command_path()), "run", "--out", os.fspath(out), *options_of(options), "--", *program]
    code = subprocess.run(words, check=False).returncode
    if code and not Path(out).is_dir():
        raise Error(f"{' '.join(program)}: ended with exit code {code}, and nothing was recorded; "
                    "standard error says why (in a notebook, the terminal of its server)")
    if code and check:
        raise Error(f"{' '.join(program)}: ended with exit code {code}; gammachi.open({os.fspath(out)!r}) "
                    "reads what was recorded until then")
    return Run(out)


def _program_name(launch: Sequence[str]) -> str:
    """The program behind a launcher and its options: its name goes into the run directory's."""
    for word in launch[1:]:
        name = Path(word).stem
        if word.endswith(".py") or (shutil.which(word) and not name.startswith("python")):
            return name
    return Path(launch[-1]).stem or "run"
