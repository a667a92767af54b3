"""The Python package, installed from its wheel, on runs that it records: what its users rely on.

scripts/check-python runs it in a virtual environment with the wheel, pyarrow, Polars and pandas. The
variables LAUNCH (a launcher) and PROGRAM (tests/victims/works_in_regions.c, compiled) say what to run.
"""

import contextlib
import inspect
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import numpy
import numpydoc.validate
import pandas
import polars
import pyarrow

import gammachi

RANKS, ITERATIONS = 3, 20
work = tempfile.TemporaryDirectory()


def record(name, *words, **options):
    launch = [*os.environ["LAUNCH"].split(), "-n", str(RANKS), os.environ["PROGRAM"], *words]
    return gammachi.record(launch, out=Path(work.name, name), **options)


def setUpModule():
    global run
    # Rank 2 sleeps 10 ms more in each "smooth".
    run = record("late.gammachi", f"iterations={ITERATIONS}", "smooth=2:10000", param={"N": 7})


def tearDownModule():
    work.cleanup()


class Tables(unittest.TestCase):
    def test_time_in_calls_is_that_of_the_report(self):
        calls = run.calls().to_polars()
        for rank in run.report(no_messages=True)["ranks"]:
            # From the return of MPI_Init to the begin of MPI_Finalize.
            outside = polars.col("function").cast(polars.String).is_in(["MPI_Init", "MPI_Init_thread", "MPI_Finalize"])
            counted = calls.filter((polars.col("rank") == rank["rank"]) & ~outside)
            inside = (counted["end_ns"] - counted["begin_ns"]).sum() / 1e9
            self.assertAlmostEqual(inside, rank["mpi_s"], delta=1e-4 * rank["mpi_s"] + 1e-6)

    def test_every_call_is_there_and_the_same_in_all_libraries(self):
        table = run.calls()
        counted = polars.DataFrame(table)["function"].cast(polars.String).value_counts()
        counted = dict(counted.iter_rows())
        self.assertEqual(counted["MPI_Sendrecv"], RANKS * ITERATIONS)
        self.assertEqual(counted["MPI_Allreduce"], RANKS * ITERATIONS)
        arrow = pyarrow.table(table)
        self.assertEqual(arrow.num_rows, len(table))
        self.assertEqual(arrow.column_names, table.column_names)
        arrow.validate(full=True)
        frame = table.to_pandas()
        self.assertIsInstance(frame, pandas.DataFrame)
        self.assertEqual((frame["function"] == "MPI_Sendrecv").sum(), RANKS * ITERATIONS)

    def test_filters_give_what_filtering_the_whole_gives(self):
        whole = run.calls().to_polars()
        one = run.calls(ranks=1, functions="MPI_Allreduce", columns=["rank", "begin_ns"]).to_polars()
        wanted = whole.filter((polars.col("rank") == 1) & (polars.col("function") == "MPI_Allreduce"))
        self.assertTrue(one.equals(wanted.select("rank", "begin_ns")))
        first, last = 0.05, 0.1
        window = run.calls(window=(first, last)).to_polars()
        inside = whole.filter((polars.col("begin_ns") >= first * 1e9) & (polars.col("begin_ns") < last * 1e9))
        self.assertGreater(len(inside), 0)
        self.assertTrue(window.select("rank", "begin_ns").equals(inside.select("rank", "begin_ns")))
        self.assertEqual(len(run.calls(region="smooth")), 0)
        self.assertEqual(len(run.regions(ranks=[0, 2])), 2 * 2 * ITERATIONS)

    def test_ranks_may_be_any_integers(self):
        wanted = len(run.calls(ranks=[1]))
        for same in [1, numpy.int64(1), range(1, 2), numpy.array([1]), {1}, iter([1])]:
            self.assertEqual(len(run.calls(ranks=same)), wanted)

    def test_messages_and_collectives_match(self):
        messages = run.messages().to_polars()
        self.assertEqual(len(messages), RANKS * ITERATIONS)
        self.assertTrue((messages["receive_end_ns"] >= messages["send_begin_ns"]).all())
        self.assertEqual(len(run.unmatched()), 0)
        members = run.collectives().to_polars().filter(polars.col("function") == "MPI_Allreduce")
        self.assertEqual(len(members), RANKS * ITERATIONS)

    def test_waits_name_the_delaying_rank(self):
        waits = run.waits().to_polars()
        self.assertGreater(waits.filter(polars.col("delayed_by") == 2)["waited_ns"].sum(), 0)
        # A rank that waited itself is the next one's delaying rank; the cost goes to whoever was late first.
        cost = polars.col("direct_ns") + polars.col("indirect_ns")
        by_rank = run.causes().to_polars().group_by("rank").agg(cost.sum().alias("cost"))
        self.assertEqual(by_rank.sort("cost")["rank"][-1], 2)
        self.assertEqual(len(run.iterations()), ITERATIONS)
        path = run.critical_path().to_polars()
        self.assertTrue((path["end_ns"][:-1] == path["begin_ns"][1:]).all())

    def test_threads_and_files_are_empty_unless_recorded(self):
        self.assertEqual((run.threads(), run.files(), run.files("rank"), run.hybrid), ([], [], [], None))
        self.assertEqual((len(run.parallel_regions()), len(run.file_calls())), (0, 0))
        with self.assertRaisesRegex(ValueError, "'rank'"):
            run.files("thread")

    def test_files_are_those_of_the_report(self):
        recorded = record("io.gammachi", "iterations=2", io=True, file_names=True)
        report = recorded.report()
        self.assertEqual((recorded.files(), recorded.files("rank")), (report["files"], report["rank_files"]))
        self.assertEqual(len(recorded.files("rank")), RANKS)
        rows = recorded.file_calls().to_polars()
        reads = rows.filter(polars.col("kind").cast(polars.String) == "read")
        # Other threads have no rows.
        self.assertLessEqual(reads["bytes"].sum(), sum(rank["read_bytes"] for rank in recorded.files("rank")))

    def test_tables_of_the_report_have_its_figures_and_units(self):
        tables, document = run.tables(), run.report()
        self.assertLessEqual({"report_ranks", "report_calls", "report_waits", "report_delays"}, set(tables))
        ranks = tables["report_ranks"].to_polars()
        for key in ["rank", "compute_s", "lost_s"]:
            self.assertEqual(ranks[key].to_list(), [rank[key] for rank in document["ranks"]])
        self.assertEqual(ranks["rank"].dtype, polars.Int64)
        schema = pyarrow.table(tables["report_ranks"]).schema
        self.assertEqual(schema.field("lost_s").metadata, {b"unit": b"s"})
        calls = run.table("report_calls", columns=["function", "count", "share"])
        self.assertEqual(calls.units, {"count": "1", "share": "1"})
        self.assertIn("MPI_Allreduce", calls.to_polars()["function"])
        self.assertEqual(run.calls(columns=["begin_ns", "bytes", "tag"]).units, {"begin_ns": "ns", "bytes": "B"})

    def test_sampled_code_by_function_line_rank_and_thread(self):
        with self.assertRaises(ValueError):
            run.code()
        with self.assertRaisesRegex(ValueError, "'line'"):
            run.code("column")
        sampled = record("sampled.gammachi", f"iterations={ITERATIONS}", "spin=1", sample=499)
        functions, lines, parts = [sampled.code(by).to_polars() for by in ["function", "line", "part"]]
        document = sampled.report()["code"]
        self.assertEqual(functions["self_s"].to_list(), [row["self_s"] for row in document if row["rank"] is None])
        self.assertIn("work", functions["function"])
        of_ranks = parts.filter(polars.col("part") == "rank")
        self.assertEqual(set(of_ranks["rank"]), set(range(RANKS)))
        self.assertIn("region", set(parts["part"]))
        for table, of in [(lines, functions), (of_ranks, functions)]:
            own = [one.filter(polars.col("function") == "work")["self_s"].sum() for one in (table, of)]
            self.assertAlmostEqual(*own, delta=1e-9)
        self.assertEqual(sampled.code("line").units["self_s"], "s")

    def test_every_table_can_be_read_and_read_again(self):
        for name in ["run", "ranks", "communicators", "members", "recorder", "causes"]:
            table = run.table(name)
            self.assertEqual(len(table.to_pyarrow()), len(table.to_pyarrow()))
        self.assertEqual(len(run.ranks()), RANKS)


class Documents(unittest.TestCase):
    def test_what_the_commands_say(self):
        self.assertGreater(run.efficiency, 0)
        self.assertLess(run.efficiency, 1)
        screen = subprocess.run(["gammachi", "report", run.path], capture_output=True, text=True, check=True).stdout
        self.assertIn(" ".join(run.verdict.split()), " ".join(screen.split()))
        self.assertIn("smooth", str(run.why()["causes"]))
        self.assertTrue(run.whatif(rank=2, speed=2))
        after = record("after.gammachi", f"iterations={ITERATIONS}", param={"N": 7})
        self.assertEqual(gammachi.compare(run.path, after.path)["before"]["runs"], [run.path.name])

    def test_pictures_are_shown_by_notebooks(self):
        for picture in [run.plot.timeline(ranks=[0, 1]), run.plot.tau_chi(), run.plot.matrix(count=True),
                        run.plot.sizes(), run.plot.durations()]:
            self.assertTrue(picture._repr_svg_().lstrip().startswith("<svg"))
        picture.save(Path(work.name, "durations.svg"))

    def test_a_study_is_made_and_predicted_from(self):
        launch = [*os.environ["LAUNCH"].split(), "-n", "{np}", os.environ["PROGRAM"], "iterations={K}"]
        study = gammachi.sweep(launch, np=[1, 2, 3], out=Path(work.name, "study"), param={"K": [4]}, repeat=1)
        predicted = gammachi.scaling(study, predict=[4])
        self.assertEqual(predicted["fits"][0]["predictions"][0]["p"], 4)


class Recording(unittest.TestCase):
    def test_a_launch_line_as_it_is_typed(self):
        before = os.getcwd()
        os.chdir(work.name)
        try:
            line = f"{os.environ['LAUNCH']} -n 2 '{os.environ['PROGRAM']}' iterations=2"
            recorded = gammachi.record(line)
        finally:
            os.chdir(before)
        self.assertEqual(recorded.size, 2)
        self.assertTrue(recorded.path.name.startswith(Path(os.environ["PROGRAM"]).stem), recorded.path)


class Guide(unittest.TestCase):
    def test_the_analyses_for_users_of_pipit(self):
        guide = Path(__file__).parents[2] / "docs/guide/python.md"
        code = guide.read_text().split("## Coming from pipit")[1].split("```python\n")[1].split("```")[0]
        has = {"run": run}
        exec(code, has)
        total = has["calls"].groupby("function", observed=True).ns.sum()
        self.assertAlmostEqual(has["flat"]["MPI_Allreduce"], total["MPI_Allreduce"] / RANKS)
        # What is in the intervals is all that there is.
        self.assertEqual(len(has["profile"]), 50)
        self.assertLess((has["profile"].sum() - total).abs().max(), 1)
        self.assertEqual(has["matrix"].shape, (RANKS, RANKS))
        self.assertEqual(has["matrix"].sum().sum(), run.messages().to_pandas()["bytes"].sum())
        self.assertEqual(has["late"].sum(), run.waits().to_pandas().dropna(subset="delayed_by")["waited_ns"].sum())
        self.assertGreater(has["late"][2], 0)
        self.assertGreater(len(has["path"]), 0)


class Reference(unittest.TestCase):
    def test_everything_public_is_documented_in_numpydocs_form(self):
        missing = {"GL08", "PR01", "PR02", "PR03", "PR07", "RT01"}
        found = []
        for name in gammachi.__all__:
            member = getattr(gammachi, name)
            names = [f"gammachi.{name}"]
            if inspect.isclass(member):
                # Users make none of these themselves, so nothing is said of how.
                names = [] if member in (gammachi.Picture, gammachi.Plot, gammachi.Table) else names
                names += [f"gammachi.{name}.{inner}" for inner in vars(member) if not inner.startswith("_")]
            for name in names:
                errors = numpydoc.validate.validate(name)["errors"]
                found += [f"{name}: {said}" for code, said in errors if code in missing]
        self.assertEqual(found, [])

    def test_a_type_checker_knows_the_package(self):
        program = Path(__file__).with_name("typed_use.py")
        checked = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--cache-dir", work.name, program],
                                 capture_output=True, text=True, check=False)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)


class Faults(unittest.TestCase):
    def refused(self, error, said, function, *arguments, **options):
        with self.assertRaises(error) as caught:
            function(*arguments, **options)
        self.assertIn(said, str(caught.exception))

    def test_what_cannot_be_is_refused_with_advice(self):
        self.refused(gammachi.Error, "no such run directory", gammachi.open, "/nowhere")
        self.refused(gammachi.Error, "no rank file", gammachi.open, work.name)
        self.refused(ValueError, "it has rank, thread", run.calls, columns=["when"])
        self.refused(ValueError, "ranks 0 to 2", run.calls, ranks=3)
        self.refused(ValueError, "-1 is not a rank", run.calls, ranks=-1)
        self.refused(ValueError, "not two", run.calls, window=(1, 2, 3))
        self.refused(ValueError, "the run has", run.calls, region="slove")
        self.refused(ValueError, "report_ranks", run.table, "waitings")
        self.refused(gammachi.Error, "whole runs only", run.table, "report_ranks", ranks=1)
        self.refused(gammachi.Error, "did you mean smooth", run.report, region="smoth")
        self.refused(gammachi.Error, "/nowhere.csv: no such", gammachi.scaling, "/nowhere.csv")

    def test_a_program_that_was_killed_is_read_as_far_as_it_came(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            died = record("died.gammachi", "dies=1", check=False)
        self.assertGreater(len(died.calls()), 0)
        self.assertIn("ended before MPI_Finalize", died.verdict)
        self.assertTrue(all(issubclass(one.category, gammachi.TraceWarning) for one in caught))
        self.refused(gammachi.Error, "exit code", record, "died-2.gammachi", "dies=1")

    def test_a_launcher_that_is_not_there_is_no_run(self):
        self.refused(gammachi.Error, "nothing was recorded", gammachi.record, "no-such-launcher -n 2 true",
                     out=Path(work.name, "absent.gammachi"))
        self.refused(gammachi.Error, "name a launcher", gammachi.record, [])

    def test_a_library_that_is_missing_is_named(self):
        with mock.patch.dict(sys.modules, {"polars": None}):
            self.refused(gammachi.Error, "pip install polars", run.ranks().to_polars)

    def test_damaged_files_are_named(self):
        broken = Path(work.name, "broken.gammachi")
        subprocess.run(["cp", "-r", run.path, broken], check=True)
        next(broken.glob("ranks-*/rank-000001.gmc")).write_bytes(b"nonsense")
        with self.assertWarnsRegex(gammachi.TraceWarning, "rank-000001"):
            self.assertEqual(len(gammachi.open(broken).ranks()), RANKS - 1)


class Marks(unittest.TestCase):
    def test_regions_without_the_recorder_do_nothing(self):
        with gammachi.region("solve"):
            gammachi.work(flops=1.0)
        import gammachi_regions

        self.assertIs(gammachi_regions.region, gammachi.region)

        @gammachi.region("solve")
        def twice(x):
            return 2 * x

        self.assertEqual(twice(2), 4)

    def test_tables_outlive_their_run_and_threads_may_read(self):
        from concurrent.futures import ThreadPoolExecutor

        opened = gammachi.open(run.path)
        with ThreadPoolExecutor(4) as pool:
            tables = list(pool.map(lambda rank: opened.calls(ranks=rank), [0, 1, 2, 0, 1, 2]))
        del opened
        self.assertEqual(sum(len(table.to_polars()) for table in tables), 2 * len(run.calls()))


if __name__ == "__main__":
    # Ctrl-C ends it at once, whatever a launcher does with signals.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(unittest.main())
