"""What differs between the databases' SQL: one object a dialect, found here by its name."""

from __future__ import annotations

from sqlrs.dialects.base import Dialect
from sqlrs.dialects.duckdb import DuckDB
from sqlrs.dialects.postgres import Postgres
from sqlrs.dialects.spark import Spark

_DIALECTS: dict[str, Dialect] = {d.name: d for d in (DuckDB(), Postgres(), Spark())}
NAMES = tuple(_DIALECTS)


def dialect_named(name: str) -> Dialect:
    """The dialect of that name, which must be one of ``NAMES``."""
    return _DIALECTS[name]
