"""Runs the command `gammachi` and turns what it says into values and exceptions."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Union

from ._native import Error

__all__ = ["Error", "StrPath", "command", "command_path"]

StrPath = Union[str, "os.PathLike[str]"]


def command_path() -> Path:
    """Path of the command `gammachi` that belongs to this package.

    Returns
    -------
    pathlib.Path
        ``GAMMACHI_COMMAND`` where it is set, else the command installed with this package, else the
        first one in ``PATH``.

    Raises
    ------
    Error
        There is none.
    """
    named = os.environ.get("GAMMACHI_COMMAND")
    if named:
        return Path(named)
    from importlib import metadata

    try:
        files = metadata.files("gammachi") or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        if file.parts[-2:] == ("bin", "gammachi"):
            path = Path(file.locate()).resolve()
            if path.is_file():
                return path
    found = shutil.which("gammachi")
    if found is None:
        raise Error("the command gammachi is neither installed with this package nor in PATH; "
                    "set GAMMACHI_COMMAND to its path")
    return Path(found)


def options_of(options: dict[str, Any]) -> list[str]:
    """Keyword arguments as options of the command: ``at_most="3%"`` is ``--at-most 3%``."""
    words: list[str] = []
    for name, value in options.items():
        option = "--" + name.rstrip("_").replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            words.append(option)
        elif isinstance(value, dict):
            for key, one in value.items():
                words += [option, f"{key}={joined(one)}"]
        else:
            words.append(f"{option}={joined(value)}")
    return words


def joined(value: Any) -> str:
    """A value as the command line has it; several are separated by commas."""
    if isinstance(value, (str, bytes, os.PathLike)):
        return os.fsdecode(value)
    try:
        return ",".join(str(one) for one in value)
    except TypeError:
        return str(value)


def words_of(launch: str | Sequence[StrPath]) -> list[str]:
    """A launch line as words: a string is split as a shell splits it."""
    if isinstance(launch, str):
        return shlex.split(launch)
    return [os.fspath(word) if isinstance(word, os.PathLike) else str(word) for word in launch]


def run_command(name: str, *arguments: Any) -> str:
    """Runs a subcommand; gives what it wrote to standard output.

    Raises
    ------
    Error
        With what it wrote to standard error: what is wrong and what to do.
    """
    words = [str(command_path()), name, *(os.fspath(a) if isinstance(a, os.PathLike) else str(a) for a in arguments)]
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                          text=True, errors="replace", check=False)
    if done.returncode:
        told = done.stderr.strip().removeprefix("gammachi: ")
        raise Error(told or f"gammachi {name} ended with exit code {done.returncode}")
    return done.stdout


def command(name: str, *arguments: Any, **options: Any) -> Any:
    """What ``gammachi NAME ARGUMENTS --json`` says, for any subcommand that has ``--json``.

    Parameters
    ----------
    name : str
        The subcommand, such as ``"roofline"``.
    *arguments : str or path-like
        Its arguments: paths, mostly.
    **options : object
        Its options: ``points=3`` is ``--points 3``, ``anchor_one=True`` is ``--anchor-one``, a list
        is joined by commas, a dictionary gives the option once for each ``NAME=VALUE``.

    Returns
    -------
    dict or list
        The JSON document, as docs/reference explains it.

    Raises
    ------
    Error
        With the command's own advice.
    """
    return json.loads(run_command(name, "--json", *options_of(options), "--", *arguments))
