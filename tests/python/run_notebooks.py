"""Executes notebooks, each in a folder of its own; any error in a cell ends it with that cell's traceback."""

import sys
import tempfile
import time

import nbformat
from nbclient import NotebookClient

for path in sys.argv[1:]:
    begin = time.perf_counter()
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": folder}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", []) if output.output_type != "stream"]
    assert shown, f"{path}: shows nothing"
    print(f"{path}: {len(notebook.cells)} cells, {len(shown)} results, {time.perf_counter() - begin:.0f} s")
