"""A statement above a release that only shows its numbers: read off, without a database."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.engines.base import Row
from sqlrs.engines.released import ReleasedRelation

# Python's numbers are what DuckDB gives for these; a DECIMAL has its digits already.
_WHOLE = frozenset({"BIGINT", "HUGEINT"})
_DECIMAL = "DECIMAL("


def read_off(statement: exp.Query, relations: Sequence[ReleasedRelation]) -> tuple[Row, ...] | None:
    """The row of a statement that names columns of the only relation and does nothing else."""
    if len(relations) != 1 or len(relations[0].rows) != 1:
        return None
    (relation,) = relations
    if not isinstance(statement, exp.Select) or _said(statement) != {"expressions", "from_"}:
        return None
    source = statement.args["from_"].this
    if not isinstance(source, exp.Table) or _said(source) != {"this"}:
        return None
    if source.name != relation.name:
        return None
    places = {name: (place, kind) for place, (name, kind) in enumerate(relation.columns)}
    chosen = []
    for one in statement.expressions:
        shown = one.unalias()
        if not isinstance(shown, exp.Column) or shown.table != relation.name:
            return None
        place, kind = places.get(shown.name, (0, ""))
        if kind not in _WHOLE and not kind.startswith(_DECIMAL):
            return None
        chosen.append(place)
    (row,) = relation.rows
    return (tuple(row[place] for place in chosen),)


def _said(tree: exp.Expr) -> set[str]:
    """The parts that a tree has."""
    return {name for name, value in tree.args.items() if value}
