"""Which types a cast may name, for each engine, by the word as written.

A parser reads the types of many engines and writes the nearest one of this engine in their place:
what PostgreSQL does not know as tinyint would be counted as smallint. The tests compare each word's
type with the type of what the tree writes for it.
"""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_BOTH = _words(
    "smallint int2 int integer int4 bigint int8 real float float4 float8 decimal numeric dec "
    "text varchar character_varying char character bpchar boolean bool date timestamp timestamptz "
    "time interval uuid double_precision"
)
_DUCKDB = _words(
    "tinyint int1 hugeint int128 utinyint usmallint uinteger ubigint double string datetime "
    "short long signed int64 logical timestamp_us"
)

TYPE_WORDS: dict[str, frozenset[str]] = {"duckdb": _BOTH | _DUCKDB, "postgres": _BOTH}
"""By dialect, the words of types in lower case; blanks inside are underscores."""
