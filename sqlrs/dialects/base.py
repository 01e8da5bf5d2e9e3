"""The questions that SQL of every database answers in its own way, with the usual answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from sqlglot import exp

from sqlrs.trees.build import all_of

_TO_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}


COMMON_TYPES = frozenset(
    """
    smallint int2 int integer int4 bigint int8 real float float4 float8 decimal numeric dec text
    varchar character_varying char character bpchar boolean bool date timestamp timestamptz time
    interval uuid double_precision
    """.split()  # noqa: SIM905
)
"""Words of types that PostgreSQL and DuckDB read alike."""


class Dialect:
    """One database's SQL. Each subclass says what differs; none holds any state."""

    name: ClassVar[str]
    """What sqlglot and the command line call it."""
    title: ClassVar[str]
    """What people call it."""
    type_words: ClassVar[frozenset[str]] = frozenset()
    """The types that a cast may name, by the word as written: lower case, blanks as underscores.

    A parser reads the types of many databases and writes the nearest one of this database in their
    place: what PostgreSQL does not know as tinyint would be counted as smallint. The tests compare
    each word's type with the type of what the tree writes for it.
    """
    keeps_case: ClassVar[bool] = False
    """Whether a quoted name means exactly that spelling; otherwise names differ by letters only."""
    common_columns_first: ClassVar[bool] = False
    """Whether USING and NATURAL show the common columns before all others."""
    uses_indexes: ClassVar[bool] = False
    """Whether its joins look rows up in indexes that an owner can create."""
    materialised: ClassVar[bool] = True
    """Whether a common table expression can be told to be evaluated once, as it stands."""
    looks_up_in_lists: ClassVar[bool] = False
    """Whether a text that is cast to a list is one value, in which an element is soon found."""
    guesses_places: ClassVar[bool] = False
    """Whether it has log2, by which numbers of nearly the same size are soon put together."""
    symbols: ClassVar[frozenset[str]] = frozenset()
    """Operators that only this database has."""
    try_cast: ClassVar[bool] = True
    """Whether TRY_CAST is its own word."""
    texts_name_the_moment: ClassVar[bool] = False
    """Whether a text that is cast to a date or time may name the present moment."""
    converts_each_row: ClassVar[bool] = True
    """Whether values of different types are made alike row by row, which can fail on some.

    Otherwise a text is read with the statement, and types that meet compare without a failure.
    """
    nulls_equal_in_rows: ClassVar[bool] = False
    """Whether (1, NULL) = (1, NULL) is true, not unknown."""
    texts_take_on_types: ClassVar[bool] = False
    """Whether a plain text takes on the type that it is set against, but not out of a subquery."""
    exact_powers: ClassVar[bool] = False
    """Whether a power of decimals has all its digits."""
    views_have_rights: ClassVar[bool] = False
    """Whether a view can be read by who may not read the tables behind it."""
    read_by_clients: ClassVar[bool] = False
    """Whether the proxy's clients write this very SQL: no text of theirs means something else."""
    holds_functions: ClassVar[bool] = False
    """Whether a private count can be installed in it as a function."""

    hashes_large_tables: ClassVar[bool] = False
    """Whether it would rather hash a large table than a few rows of a step, which it knows not."""
    whole_columns: ClassVar[float] = 10_000_000
    """Up to so many rows of a column are read for statistics; of a larger table a sample is."""
    quick_rows: ClassVar[float | None] = None
    """Up to so many rows read and joined a plan with more steps gains nothing; None: as usual."""
    sums_words: ClassVar[bool] = False
    """Whether it sums numbers of 128 bits about as quickly as small ones, and has their bits."""
    regroups: ClassVar[bool] = False
    """Whether to keep few groups of a join and to read them again takes less than the join."""
    regroups_many: ClassVar[bool] = False
    """Whether that is so of however many groups."""
    keeps_texts_private: ClassVar[bool] = False
    """Whether nobody writes the text of a statement to a log: values of rows may stand in it."""
    most_chained: ClassVar[int] = 0
    """Up to so many residuals are evaluated in one statement in which one leads to the next."""
    runs_above: ClassVar[bool] = False
    """Whether what stands above the cuts, which runs in DuckDB, is read there as it is written."""
    keeps_settings: ClassVar[bool] = False
    """Whether every snapshot of an engine has the settings with which the engine was opened."""
    names_calls: ClassVar[bool] = False
    """Whether an output without an alias is called by its function alone: count, not count(*)."""

    has_moments_of_tools: ClassVar[bool] = True
    """Whether to_char, age and AT TIME ZONE mean what they do in PostgreSQL."""
    judges_conditions: ClassVar[bool] = False
    """Whether the compiler lets pass what it cannot read, so that it must see all conditions."""

    def as_read(self, tree: exp.Expr) -> exp.Expr:
        """A parsed statement with every node saying what this database means by it."""
        return tree

    def written(self, tree: exp.Expr, *, pretty: bool = False) -> str:
        """The text of a statement."""
        return tree.sql(dialect=self.name, pretty=pretty)

    def folded(self, name: str, *, quoted: bool) -> str:
        """The form in which two spellings of one name are equal: only ASCII is folded."""
        return name if quoted and self.keeps_case else name.translate(_TO_LOWER)

    def type_of(self, value: exp.Expr) -> exp.Expression:
        """The name of a value's type, as text."""
        return exp.Anonymous(this="typeof", expressions=[value.copy()])

    def whole_number_type(self) -> exp.DataType:
        """The type in which products and sums of whole numbers lose no digit, and do not fail."""
        return exp.DataType.build("decimal(38, 0)")

    def keeps_order(self, *, tables_only: bool, values_alike: bool) -> bool:
        """Whether a join of several inputs is written so that it is evaluated in the plan's order.

        ``tables_only``: all inputs are tables as they stand. ``values_alike``: equal values of the
        columns that are joined next can stand for each other in any expression.
        """
        return False

    def joined_next(
        self, place: exp.Expression, joined_on: Sequence[exp.Expression]
    ) -> exp.Expression:
        """A column of a join that comes first, as what is joined next reads it."""
        return place

    def evaluated_first(self, select: exp.Select) -> exp.Select:
        """The join as a relation that is not merged with the joins around it."""
        return select

    def summed(
        self,
        counts: Sequence[exp.Expression],
        total: exp.Expression,
        joined_on: Sequence[exp.Expression],
        size: int,
        *,
        each_grouped: bool = False,
    ) -> exp.Expression:
        """The number of results of a group, over a join of ``size`` inputs on ``joined_on``.

        ``total`` is the product of the inputs' ``counts``, or 1 where none has any.
        ``each_grouped``: each input has a variable of its own that the groups keep.
        """
        return exp.Sum(this=total) if counts else exp.Count(this=exp.Star())


def where_joined(value: exp.Expression, joined_on: Sequence[exp.Expression]) -> exp.Expression:
    """The value in a form that depends on all equalities of a join, which hold wherever it is."""
    holds = all_of([condition.copy() for condition in joined_on])
    return exp.Case(ifs=[exp.If(this=holds, true=value)])
