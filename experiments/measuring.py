"""Shared by the scripts that measure: failed runs, the machine, spreads."""
import argparse
import pathlib
import platform
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


class Failure(Exception):
    """A run failed; the text names it and gives advice."""


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def built(mpi):
    """The path of the kernels' binary, built if it is not up to date."""
    done = subprocess.run([ROOT / "scripts/build-kernels", mpi], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Failure(f"scripts/build-kernels {mpi} failed with exit code {done.returncode}")
    return pathlib.Path(done.stdout.strip().splitlines()[-1])


def tree_bytes(directory):
    """Bytes on disk of all files under `directory`."""
    return sum(f.stat().st_blocks * 512 for f in directory.rglob("*") if f.is_file())


def spread(values):
    """Median and quartiles."""
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    return {"median": middle, "q1": low, "q3": high}


def machine():
    """Name of the processor."""
    for line in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model"):
            return value.strip()
    return platform.machine()


def file_system(directory):
    """Type of the file system that contains `directory`."""
    done = subprocess.run(["findmnt", "-n", "-o", "FSTYPE", "-T", directory], stdout=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip() or "unknown"


def cell(value):
    return f"{value['median']:.2f} [{value['q1']:.2f}, {value['q3']:.2f}]"
