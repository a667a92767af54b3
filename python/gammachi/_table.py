"""Tables by Arrow's C stream interface."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._command import Error

if TYPE_CHECKING:
    from . import _native


def _library(name: str, method: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as missing:
        raise Error(f"{method}() needs {missing.name}, which is not installed: pip install {missing.name}") from missing


class Table:
    """A table in memory, which pyarrow, Polars, pandas (from 3.0), DuckDB and others take as it is.

    ``pyarrow.table(t)``, ``polars.DataFrame(t)`` and ``duckdb.sql("from t")`` work by Arrow's C stream
    interface (``__arrow_c_stream__``), without a copy through text; text columns are dictionaries.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return self._native.num_rows

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return self._native.num_rows

    @property
    def column_names(self) -> list[str]:
        """Names of the columns, in their order."""
        return self._native.column_names

    @property
    def units(self) -> dict[str, str]:
        """Units of the columns that have one, as in their metadata: ``s``, ``ns``, ``B``, ``1/s``, ``1`` …"""
        return self._native.units

    @property
    def nbytes(self) -> int:
        """Bytes of all buffers."""
        return self._native.nbytes

    def to_polars(self) -> Any:
        """The table as Polars has it.

        Returns
        -------
        polars.DataFrame

        Raises
        ------
        Error
            Polars is not installed.
        """
        return _library("polars", "to_polars").DataFrame(self)

    def to_pyarrow(self) -> Any:
        """The table as pyarrow has it.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        Error
            pyarrow is not installed.
        """
        return _library("pyarrow", "to_pyarrow").table(self)

    def to_pandas(self) -> Any:
        """The table as pandas has it, through pyarrow.

        Returns
        -------
        pandas.DataFrame
            Text columns are categories.

        Raises
        ------
        Error
            pandas or pyarrow is not installed.
        """
        _library("pandas", "to_pandas")
        return _library("pyarrow", "to_pandas").table(self).to_pandas()

    def __repr__(self) -> str:
        return f"<gammachi.Table: {self.num_rows} rows of {', '.join(self.column_names)}>"
