"""DuckDB's SQL, and what its optimizer must not be left to."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.dialects.base import COMMON_TYPES, Dialect, where_joined


class DuckDB(Dialect):
    """Names differ by letters only; joins keep their order by columns that depend on them."""

    name = "duckdb"
    title = "DuckDB"
    type_words = COMMON_TYPES | frozenset(
        """
        tinyint int1 hugeint int128 utinyint usmallint uinteger ubigint double string datetime
        short long signed int64 logical timestamp_us
        """.split()  # noqa: SIM905
    )
    symbols = frozenset({"==", "//"})
    nulls_equal_in_rows = True
    looks_up_in_lists = True
    guesses_places = True
    runs_above = True
    sums_words = True
    regroups = True
    regroups_many = True
    keeps_texts_private = True
    keeps_settings = True

    def whole_number_type(self) -> exp.DataType:
        """128 bits, in which it also sums."""
        return exp.DataType(this=exp.DataType.Type.INT128)

    def keeps_order(self, *, tables_only: bool, values_alike: bool) -> bool:
        """Wherever a column may be read through an expression."""
        return values_alike

    def joined_next(
        self, place: exp.Expression, joined_on: Sequence[exp.Expression]
    ) -> exp.Expression:
        """It cannot merge where the columns that are joined next depend on the join.

        An OFFSET would do, but DuckDB may wait for ever behind one.
        """
        return where_joined(place, joined_on)

    def summed(
        self,
        counts: Sequence[exp.Expression],
        total: exp.Expression,
        joined_on: Sequence[exp.Expression],
        size: int,
        *,
        each_grouped: bool = False,
    ) -> exp.Expression:
        """DuckDB may move a part of an aggregate below one of several joins.

        That multiplies the groups where keys overlap, and groups two inputs for nothing where each
        has a column that is grouped by; it leaves constants and expressions over all inputs alone.
        """
        few = size < 3 and not (size == 2 and each_grouped and not counts)
        if few or (counts and not joined_on):
            return super().summed(counts, total, joined_on, size)
        return exp.Sum(this=where_joined(total, joined_on) if counts else total)
