"""Tables by Arrow's C stream interface."""


class Table:
    """A table in memory, which pyarrow, Polars, pandas (from 3.0), DuckDB and others take as it is.

    ``pyarrow.table(t)``, ``polars.DataFrame(t)`` and ``duckdb.sql("from t")`` work by Arrow's C stream
    interface (``__arrow_c_stream__``), without a copy through text; text columns are dictionaries.
    """

    def __init__(self, native):
        self._native = native

    def __arrow_c_stream__(self, requested_schema=None):
        return self._native.__arrow_c_stream__(requested_schema)

    def __len__(self):
        return self._native.num_rows

    @property
    def num_rows(self):
        """Number of rows."""
        return self._native.num_rows

    @property
    def column_names(self):
        """Names of the columns, in their order."""
        return self._native.column_names

    @property
    def nbytes(self):
        """Bytes of all buffers."""
        return self._native.nbytes

    def to_polars(self):
        """The table as a ``polars.DataFrame``; needs polars."""
        import polars

        return polars.DataFrame(self)

    def to_pyarrow(self):
        """The table as a ``pyarrow.Table``; needs pyarrow."""
        import pyarrow

        return pyarrow.table(self)

    def to_pandas(self):
        """The table as a ``pandas.DataFrame``; needs pandas and pyarrow."""
        return self.to_pyarrow().to_pandas()

    def __repr__(self):
        return f"<gammachi.Table: {self.num_rows} rows of {', '.join(self.column_names)}>"
