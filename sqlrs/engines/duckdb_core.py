"""DuckDB's core, which is connections and errors, without the layer of relations above it.

``import duckdb`` also brings relations, expressions and the metadata of packages: three quarters of
its time, for what nothing here uses but data frames, which import it as a whole (frames.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import duckdb
else:
    import _duckdb as duckdb

__all__ = ["VERSION", "duckdb"]

VERSION = duckdb.__version__.removeprefix("v")
"""That of the engine, which is what counts."""
