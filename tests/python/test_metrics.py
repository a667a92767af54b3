"""The figures of `gammachi watch --metrics`, read by Prometheus' own parsers, and the dashboard that asks for them.

Environment: `LAUNCH` starts MPI programs, `PROGRAM` is tests/victims/sleeps_in_turn.c, `gammachi` is in the path.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import urllib.request

from prometheus_client import parser as classic
from prometheus_client.openmetrics import parser as openmetrics

DASHBOARD = pathlib.Path(__file__).parents[2] / "docs/grafana/gammachi.json"
PORT = 19_101
PATIENCE_S = 120


def wait_for(find):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = find()
        if found:
            return found
        time.sleep(0.1)
    raise AssertionError("it does not come")


def read(path):
    return path.read_text() if path.exists() else None


def names(text):
    """Names of the samples, as Prometheus stores them."""
    return {sample.name for family in openmetrics.text_string_to_metric_families(text) for sample in family.samples}


class Metrics(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            run, ends = folder / 'odd "name" \\ here.gammachi', folder / "ends"
            job = subprocess.Popen(
                ["gammachi", "run", "--flight", "--metrics", str(folder / "run.prom"), "--out", str(run), "--"]
                + os.environ["LAUNCH"].split()
                + ["-n", "2", os.environ["PROGRAM"], str(ends)]
            )
            try:
                whole = lambda: (text := read(folder / "run.prom")) and "gammachi_iteration_seconds{" in text and text
                cls.file = wait_for(whole)
            finally:
                ends.touch()
                job.wait()
            # A second job, whose watcher serves the figures of each rank.
            ends.unlink()
            run = folder / "second.gammachi"
            job = subprocess.Popen(
                ["gammachi", "run", "--flight", "--metrics", f"{PORT},ranks", "--out", str(run), "--"]
                + os.environ["LAUNCH"].split()
                + ["-n", "2", os.environ["PROGRAM"], str(ends)]
            )
            try:
                cls.served = wait_for(cls.ask)
            finally:
                ends.touch()
                job.wait()

    @staticmethod
    def ask():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics") as answer:
                text = answer.read().decode()
        except OSError:
            return None
        return text if "gammachi_ranks{" in text else None

    def test_both_parsers_read_them(self):
        for text in (self.file, self.served):
            families = {family.name: family for family in openmetrics.text_string_to_metric_families(text)}
            self.assertEqual(families["gammachi_mpi_seconds"].type, "counter")
            self.assertEqual(families["gammachi_ranks"].type, "gauge")
            # node exporter's textfile collector reads the older format.
            older = {sample.name for family in classic.text_string_to_metric_families(text) for sample in family.samples}
            self.assertEqual(older, names(text))

    def test_labels_are_those_of_the_run(self):
        for family in openmetrics.text_string_to_metric_families(self.file):
            for sample in family.samples:
                self.assertEqual(sample.labels["run"], 'odd "name" \\ here.gammachi')
                self.assertNotIn("rank", sample.labels)
        ranks = [
            sample.labels["rank"]
            for family in openmetrics.text_string_to_metric_families(self.served)
            for sample in family.samples
            if sample.name == "gammachi_calls_total"
        ]
        self.assertEqual(ranks, ["0", "1"])

    def test_dashboard_asks_for_metrics_that_exist(self):
        dashboard = json.loads(DASHBOARD.read_text())
        asked = set()
        for panel in dashboard["panels"]:
            for target in panel["targets"]:
                asked |= set(re.findall(r"\bgammachi_\w+", target["expr"]))
        for variable in dashboard["templating"]["list"]:
            asked |= set(re.findall(r"\bgammachi_\w+", json.dumps(variable["query"])))
        self.assertEqual(asked - names(self.file), set())
        self.assertEqual(names(self.file) - asked, set(), "and it shows all of them")
        ids = [panel["id"] for panel in dashboard["panels"]]
        self.assertEqual(len(ids), len(set(ids)))


if __name__ == "__main__":
    unittest.main()
