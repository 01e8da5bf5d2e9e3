"""What stands above released numbers where it only picks columns of one relation: no engine.

A count alone, or counts and sums of a few groups, need no DuckDB to be shown: the columns of the
relation are the answer's, in its order. All else runs in the DuckDB of ``released``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.engines.released import Layout, ReleasedRelation, Result, refuse_too_many
from sqlrs.records import dataclass

# Those whose values DuckDB gives back as they were; a DECIMAL has its digits already.
_EXACT = re.compile(r"BIGINT|HUGEINT|DECIMAL\(\d+, ?\d+\)")
_PARTS = frozenset({"expressions", "from_"})


def only_picks(statement: exp.Query) -> bool:
    """Whether a statement is ``SELECT r.x AS name, … FROM r`` and nothing else."""
    if not isinstance(statement, exp.Select):
        return False
    if {part for part, value in statement.args.items() if value} != _PARTS:
        return False
    source = statement.args["from_"].this
    if not isinstance(source, exp.Table) or {k for k, v in source.args.items() if v} != {"this"}:
        return False
    return all(
        isinstance(one, exp.Alias)
        and isinstance(one.this, exp.Column)
        and {k for k, v in one.this.args.items() if v} == {"this", "table"}
        and isinstance(one.this.this, exp.Identifier)
        and one.this.table == source.name
        for one in statement.expressions
    )


@dataclass(eq=False)
class PickedColumns:
    """The columns of one relation that a statement picks, in place of a ``ReleasedDatabase``."""

    layout: Layout
    name: str
    columns: tuple[tuple[str, str], ...]
    places: tuple[int, ...]
    rows: tuple[Row, ...] = ()

    @classmethod
    def of(cls, statement: exp.Query, layout: Layout) -> PickedColumns | None:
        """Those of a statement; None where it does more, or picks other values than exact ones."""
        if not only_picks(statement):
            return None
        name = statement.args["from_"].this.name
        held = layout.columns.get(name, ())
        kinds = dict(held)
        names = [one.this.name for one in statement.selects]
        if not all(_EXACT.fullmatch(kinds.get(one, "")) for one in names):
            return None
        places = tuple([one for one, _ in held].index(own) for own in names)
        columns = tuple(
            (one.alias, kinds[own].replace(" ", ""))
            for one, own in zip(statement.selects, names, strict=True)
        )
        return cls(layout, name, columns, places)

    def fill(self, relations: Sequence[ReleasedRelation]) -> None:
        """Take the rows of the relation."""
        (own,) = (one for one in relations if one.name == self.name)
        refuse_too_many(own.rows)
        self.rows = own.rows

    def run(self, statement: exp.Query) -> Result:
        """The rows, in the relation's order."""
        return Result(
            self.columns, tuple(tuple(row[place] for place in self.places) for row in self.rows)
        )

    def close(self) -> None:
        """Forget everything."""
        self.rows = ()
