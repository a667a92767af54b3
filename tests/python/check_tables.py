"""Asks the questions of docs/guide/tables.md with DuckDB, Polars and PySpark, of tables in one file and in parts.

All three must give the same answers, and those of `gammachi report --json`. Statistics of the groups of rows must be
such that a reader skips those of another time and the parts of other ranks.
"""

import ast
import collections
import json
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import duckdb
import polars as pl
from pyspark.sql import SparkSession, functions as F

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guide" / "tables.md"
QUESTIONS = 5


class Wrong(Exception):
    """A reader found something other than what was recorded."""


def near(one, other):
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-6, abs_tol=1e-6)
    return one == other


def equal(what, found, wanted):
    rows = list(zip(sorted(found), sorted(wanted)))
    differs = [pair for pair in rows if len(pair[0]) != len(pair[1]) or not all(map(near, *pair))]
    if len(found) != len(wanted) or differs:
        raise Wrong(f"{what}: {len(found)} rows instead of {len(wanted)}; {differs[:2]}")


def questions():
    """By heading, the blocks of code below it."""
    blocks, heading, language, lines = {}, None, None, []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            heading = line[3:]
            blocks[heading] = {}
        elif line.startswith("```") and language is None:
            language, lines = line[3:], []
        elif line == "```":
            if heading:
                reader = "DuckDB" if language == "sql" else "Spark" if "spark." in lines[0] else "Polars"
                blocks[heading][reader] = "\n".join(lines)
            language = None
        else:
            lines.append(line)
    complete = [heading for heading, of_readers in blocks.items() if len(of_readers) == 3]
    if len(complete) != QUESTIONS or len(blocks) != QUESTIONS:
        raise Wrong(f"{PAGE}: {len(complete)} of {len(blocks)} questions have three answers, {QUESTIONS} should")
    return blocks


def answer(reader, code, spark):
    if reader == "DuckDB":
        return duckdb.sql(code).fetchall()
    value = eval(compile(ast.parse(code, mode="eval"), PAGE.name, "eval"),
                 {"pl": pl, "F": F, "spark": spark})
    return value.rows() if reader == "Polars" else [tuple(row) for row in value.collect()]


def of_report(report):
    """The answers, as the report gives them, and how each is made of the rows of a table."""
    def totals(rows, key, value):
        sums = collections.defaultdict(float)
        for row in rows:
            sums[row[key]] += row[value]
        return list(sums.items())

    def by_class(rows):
        """Sizes as powers of two: messages and bytes."""
        sums = collections.defaultdict(lambda: [0, 0])
        for size, messages, _ in rows:
            of_class = sums[1 << (size.bit_length() - 1) if size else 0]
            of_class[0] += messages
            of_class[1] += messages * size
        return [(size, *counts) for size, counts in sums.items()]

    matrix = report["matrix"]
    ranks = range(report["world_size"])
    pairs = [(s, d, matrix["count"][s][d], matrix["bytes"][s][d]) for s in ranks for d in ranks]
    # MPI_Init and MPI_Finalize lie outside of what the report measures.
    outside = ("MPI_Init", "MPI_Init_thread", "MPI_Finalize")
    return [
        ([(c["function"], c["count"], c["time_s"]) for c in report["calls"] if c["function"] not in outside],
         lambda rows: [row for row in rows if row[0] not in outside]),
        ([(rank["rank"], rank["mpi_s"]) for rank in report["ranks"]], list),
        ([(state["state"], state["seconds"]) for state in report["causes"]["states"]],
         lambda rows: totals(rows, 1, 2)),
        ([pair for pair in pairs if pair[2]], list),
        ([(s["from_bytes"], s["count"], s["bytes"]) for s in report["sizes"]], by_class),
    ]


def check_statistics(tables):
    """Checks that statistics let a reader skip groups of rows."""
    groups = duckdb.sql(f"""
        SELECT file_name, row_group_id, path_in_schema, stats_min_value::BIGINT, stats_max_value::BIGINT
        FROM parquet_metadata('{tables}/calls.parquet/*/*.parquet')
        WHERE path_in_schema IN ('begin_ns', 'rank') ORDER BY ALL""").fetchall()
    begins = [group for group in groups if group[2] == "begin_ns"]
    by_file = collections.defaultdict(list)
    for file, _, _, low, high in begins:
        by_file[file].append((low, high))
    for file, stretches in by_file.items():
        if any(one[1] > next[0] for one, next in zip(stretches, stretches[1:])):
            raise Wrong(f"{file}: groups of rows are not in order of time")
    last = max(high for *_, high in begins)
    wanted = sum(1 for *_, low, high in begins if low <= last // 2 <= high)
    ranks = collections.defaultdict(set)
    for file, _, column, low, high in groups:
        if column == "rank":
            ranks[file].update(range(low, high + 1))
    if sum(map(len, ranks.values())) != len(set().union(*ranks.values())):
        raise Wrong(f"{tables}: a rank is in several parts")
    return len(by_file), len(begins), wanted


def ask(layout, report, spark):
    """Asks all questions of the tables in the current directory."""
    for (question, blocks), (wanted, made) in zip(questions().items(), of_report(report)):
        answers = {reader: answer(reader, code, spark) for reader, code in blocks.items()}
        for reader, rows in answers.items():
            equal(f"{question} {reader}, {layout}, and DuckDB", rows, answers["DuckDB"])
            equal(f"{question} {reader}, {layout}, and the report", made(rows), wanted)


def check(command, run, part_calls, spark):
    def printed(*words):
        return subprocess.run([command, *words], check=True, capture_output=True, text=True).stdout

    report = json.loads(printed("report", "--json", run))
    # Spark reads relative to the directory in which it was started: there the tables come and go.
    here = pathlib.Path.cwd()
    for layout, calls in (("files", 1 << 62), ("parts", part_calls)):
        printed("export", run, "--to", "parquet", "--out", f"{here}/{layout}", "--part-calls", str(calls))
        for table in (here / layout).iterdir():
            table.rename(here / table.name)
        ask(layout, report, spark)
        if layout == "parts":
            parts, groups, wanted = check_statistics(here)
        for table in here.iterdir():
            shutil.rmtree(table) if table.is_dir() else table.unlink()
    print(f"{run}: {QUESTIONS} questions, the same answers by DuckDB, Polars, Spark and the report; {parts} parts with "
          f"{groups} groups of rows of calls, {wanted} of them with a moment in the middle")


def main():
    command, *runs = sys.argv[1:]
    runs = [os.path.abspath(run) for run in runs]
    here = tempfile.mkdtemp()
    os.chdir(here)
    spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    wrong = 0
    for run in runs:
        run, _, part_calls = run.rpartition(":")
        try:
            check(command, run, int(part_calls), spark)
        except Wrong as what:
            print(f"{run}: {what}", file=sys.stderr)
            wrong += 1
    spark.stop()
    shutil.rmtree(here)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
