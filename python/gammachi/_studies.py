"""Studies of many runs, and predictions from them."""

import os
import subprocess

from ._command import Error, command, command_path, options_of


def _several(sources):
    return [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)


def scaling(sources, **options):
    """What ``gammachi scaling --json`` says: how far a program scales, from small runs alone.

    Parameters
    ----------
    sources : path-like or sequence of path-like
        A study, run directories, or one CSV table.
    **options
        Options of the command: ``predict=[64, 128]``, ``region="solve"``, ``anchor_one=True``.

    Returns
    -------
    dict
        See docs/reference/predictions-json.md.
    """
    return command("scaling", *_several(sources), **options)


def model(sources, **options):
    """What ``gammachi model --json`` says: times as sums of basis functions, and what they predict.

    Parameters
    ----------
    sources : path-like or sequence of path-like
        A table of runs, a study, or run directories.
    **options
        Options of the command: ``basis="N^3/p, 1"``, ``vars=["p", "N"]``, ``predict="large.csv"``.

    Returns
    -------
    dict
        See docs/reference/predictions-json.md.
    """
    return command("model", *_several(sources), **options)


def compare(before, after, **options):
    """What ``gammachi compare --json`` says: what changed between runs, and why.

    Parameters
    ----------
    before, after : path-like or sequence of path-like
        Runs, studies or baselines on both sides of a change.

    Returns
    -------
    dict
        See docs/reference/compare-json.md.
    """
    import json

    from ._command import run_command

    words = [*options_of(options), *_several(before), "--", *_several(after)]
    return json.loads(run_command("compare", "--json", *words))


def sweep(launch, np, out, **options):
    """Runs a study: every combination of rank counts and parameters, repeated.

    Parameters
    ----------
    launch : sequence of str
        Launcher and arguments with placeholders: ``["mpirun", "-n", "{np}", "./app", "{N}"]``.
    np : sequence of int
        Rank counts.
    out : path-like
        Study directory to write, or to go on with.
    **options
        Options of ``gammachi sweep``: ``param={"N": [1000, 2000]}``, ``repeat=5``.

    Returns
    -------
    pathlib.Path
        The study, for :func:`scaling` and :func:`model`.
    """
    from pathlib import Path

    words = [str(command_path()), "sweep", *options_of({"np": np, "out": out, **options}), "--",
             *(str(word) for word in launch)]
    code = subprocess.run(words, check=False).returncode
    if code:
        raise Error(f"{os.fspath(out)}: the study ended with exit code {code}; the same call goes on with it")
    return Path(out)
