"""Types of the native part, python/src."""

from collections.abc import Collection
from os import PathLike

__version__: str

class Error(Exception):
    """A run or study that cannot be read, recorded or explained."""

class Run:
    def __init__(self, path: str | PathLike[str]) -> None: ...
    @property
    def remarks(self) -> list[str]: ...
    @property
    def size(self) -> int: ...
    def table(
        self,
        name: str,
        ranks: list[int] | None = None,
        window: tuple[float, float] | None = None,
        functions: Collection[str] | None = None,
        region: str | None = None,
        columns: list[str] | None = None,
    ) -> Table: ...
    def report_tables(self) -> list[str]: ...

class Table:
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...
    @property
    def num_rows(self) -> int: ...
    @property
    def column_names(self) -> list[str]: ...
    @property
    def units(self) -> dict[str, str]: ...
    @property
    def nbytes(self) -> int: ...
