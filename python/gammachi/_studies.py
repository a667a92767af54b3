"""Studies of many runs, and predictions from them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Union

from ._command import Error, StrPath, command, command_path, options_of, run_command, words_of

Sources = Union[StrPath, Iterable[StrPath]]


def _several(sources: Sources) -> list[StrPath]:
    return [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)


def scaling(sources: Sources, **options: Any) -> dict[str, Any]:
    """What ``gammachi scaling --json`` says: how far a program scales, from small runs alone.

    Parameters
    ----------
    sources : path-like or sequence of path-like
        A study, run directories, or one CSV table.
    **options : object
        Options of the command: ``predict=[64, 128]``, ``region="solve"``, ``anchor_one=True``.

    Returns
    -------
    dict
        See docs/reference/predictions-json.md.
    """
    document: dict[str, Any] = command("scaling", *_several(sources), **options)
    return document


def model(sources: Sources, **options: Any) -> dict[str, Any]:
    """What ``gammachi model --json`` says: times as sums of basis functions, and what they predict.

    Parameters
    ----------
    sources : path-like or sequence of path-like
        A table of runs, a study, or run directories.
    **options : object
        Options of the command: ``basis="N^3/p, 1"``, ``vars=["p", "N"]``, ``predict="large.csv"``.

    Returns
    -------
    dict
        See docs/reference/predictions-json.md.
    """
    document: dict[str, Any] = command("model", *_several(sources), **options)
    return document


def compare(before: Sources, after: Sources, **options: Any) -> dict[str, Any]:
    """What ``gammachi compare --json`` says: what changed between runs, and why.

    Parameters
    ----------
    before, after : path-like or sequence of path-like
        Runs, studies or baselines on both sides of a change.
    **options : object
        Options of the command: ``only={"N": 1000}``.

    Returns
    -------
    dict
        See docs/reference/compare-json.md.
    """
    words = [*options_of(options), *_several(before), "--", *_several(after)]
    document: dict[str, Any] = json.loads(run_command("compare", "--json", *words))
    return document


def sweep(launch: str | Sequence[StrPath], np: int | Iterable[int], out: StrPath, **options: Any) -> Path:
    """Runs a study: every combination of rank counts and parameters, repeated.

    Parameters
    ----------
    launch : str or sequence of str
        Launcher and arguments with placeholders: ``["mpirun", "-n", "{np}", "./app", "{N}"]``.
    np : int or iterable of int
        Rank counts.
    out : path-like
        Study directory to write, or to go on with.
    **options : object
        Options of ``gammachi sweep``: ``param={"N": [1000, 2000]}``, ``repeat=5``.

    Returns
    -------
    pathlib.Path
        The study, for :func:`scaling` and :func:`model`.
    """
    words = [str(command_path()), "sweep", *options_of({"np": np, "out": out, **options}), "--",
             *words_of(launch)]
    code = subprocess.run(words, check=False).returncode
    if code:
        raise Error(f"{os.fspath(out)}: the study ended with exit code {code}; the same call goes on with it")
    return Path(out)
