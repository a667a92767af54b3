"""What a type checker sees of the package; `mypy --strict` reads it, nobody runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import gammachi

run: gammachi.Run = gammachi.record("mpirun -n 4 ./app", out=Path("app.gammachi"), level=2)
efficiency: Optional[float] = run.efficiency
calls: gammachi.Table = run.calls(ranks=range(2), functions="MPI_Recv", window=(0.5, 1), columns=["rank"])
names: list[str] = calls.column_names
rows: int = len(run.waits())
units: dict[str, str] = run.tables()["report_ranks"].units
lines: gammachi.Table = run.code("line")
picture: gammachi.Picture = run.plot.timeline(ranks=1)
document: dict[str, Any] = gammachi.scaling(gammachi.sweep(["./app"], np=[1, 2], out="study"), predict=[4])


@gammachi.region("double")
def double(x: int) -> int:
    with gammachi.region("inner"):
        return 2 * x


doubled: int = double(2)
double("2")  # type: ignore[arg-type]
run.code("rank")  # type: ignore[arg-type]
run.calls(rank=2)  # type: ignore[call-arg]
