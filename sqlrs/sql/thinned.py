"""Rows of a table that agree with none of few rows are left out as they are read.

Of a step PostgreSQL knows no values and expects long chains in a hash table of it, so that it would
rather hash all rows of a large table, and write that to disk, than a few hundred rows of a step. A
condition that is a value of its own is no join: the step's values are hashed once, if they are
expected to be few.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from sqlrs.planning.bags import Grouping, Input
from sqlrs.planning.leaves import Picked
from sqlrs.query import Variable
from sqlrs.trees.build import select_from, table_named
from sqlrs.trees.identifiers import again, column
from sqlrs.trees.predicates import Places


def is_few(one: Input) -> bool:
    """Whether an input has the rows of a limited number of groups, and PostgreSQL knows that."""
    if isinstance(one, Grouping):
        return any(isinstance(leaf, Picked) and leaf.limited for leaf in one.join.leaves)
    return isinstance(one, Picked) and one.limited


def among(own: Places, name: str, columns: Mapping[Variable, str]) -> Iterable[exp.Expression]:
    """That the columns of a table have values of the step with that name and these columns."""
    for v in sorted(own.keys() & columns.keys()):
        values = select_from(table_named(name), column(columns[v], name))
        found = exp.In(this=again(own[v]), query=values.subquery(copy=False))
        yield exp.Is(this=exp.paren(found, copy=False), expression=exp.true())
