"""Items of FROM: the columns they show, their names, and what USING and NATURAL make of two."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrs.catalog import ColumnType
from sqlrs.compiler.flat import operand, stand_at
from sqlrs.compiler.names import Relation, fold
from sqlrs.compiler.source import Source
from sqlrs.dialects import dialect_named
from sqlrs.records import dataclass
from sqlrs.trees.constants import data_type

Columns = tuple[tuple[str | None, exp.Expr], ...]
"""Columns by folded name, each an expression over the columns of the flat query."""


@dataclass(frozen=True, eq=False)
class FromItem:
    """An item of FROM: the relations it names, and the columns that need no alias."""

    relations: tuple[Relation, ...]
    visible: Columns
    distinct: tuple[exp.Expr, ...] | None = None


def named(
    name: str | None,
    columns: Columns,
    alias: exp.Expr | None,
    distinct: tuple[exp.Expr, ...] | None,
    source: Source,
    *,
    schema: str | None = None,
) -> FromItem:
    """The item of one relation, its columns renamed as the alias says."""
    own = renamed(columns, alias, source)
    return FromItem((Relation(name, own, schema),), own, distinct)


def renamed(columns: Columns, alias: exp.Expr | None, source: Source) -> Columns:
    """The columns under the names that an alias such as d(a, b) gives to the first of them."""
    names = (alias.args.get("columns") or []) if alias is not None else []
    if len(names) > len(columns):
        raise source.refusal("wrong_columns", names[len(columns)])
    new = [fold(name, source.dialect) for name in names]
    return tuple(
        (new[i] if i < len(new) else name, value) for i, (name, value) in enumerate(columns)
    )


def alias_name(alias: exp.Expr | None, source: Source) -> str | None:
    """The folded name of an alias, if there is one."""
    return None if alias is None or alias.this is None else fold(alias.this, source.dialect)


def joined(
    left: FromItem, right: FromItem, join: exp.Join, source: Source, *, right_stays: bool = False
) -> tuple[FromItem, list[exp.Expr]]:
    """Both sides as one item, and the equalities that USING or NATURAL stand for.

    Their common columns are those of the left side, or of the right one where that ``stays``.
    """
    if join.args.get("method") == "NATURAL":
        places: dict[str, exp.Expr] = dict.fromkeys(_shared(left, right, join, source), join)
    else:
        places = {fold(name, source.dialect): name for name in join.args.get("using") or ()}
    first: list[tuple[str | None, exp.Expr]] = []
    equalities: list[exp.Expr] = []
    for name, place in places.items():
        one, other = _only(left, name, place, source), _only(right, name, place, source)
        equality = exp.EQ(this=operand(one), expression=operand(other))
        span = source.span(place)
        stand_at(equality, span.start, span.end - 1)
        equalities.append(equality)
        first.append((name, other if right_stays else one))
    common = dict(first)
    visible = tuple((name, common.get(name, value)) for name, value in left.visible)
    if dialect_named(source.dialect).common_columns_first:
        visible = (*first, *(column for column in visible if column[0] not in places))
    rest = tuple(column for column in right.visible if column[0] not in places)
    return FromItem(left.relations + right.relations, visible + rest), equalities


def without_rows(item: FromItem, types: Callable[[exp.Expr], ColumnType | None]) -> FromItem:
    """The item as an outer join shows it beside rows without a partner: NULL everywhere."""

    def empty(columns: Columns) -> Columns:
        return tuple((name, _null(types(value))) for name, value in columns)

    relations = tuple(Relation(one.alias, empty(one.columns), one.schema) for one in item.relations)
    return FromItem(relations, empty(item.visible))


def _null(kind: ColumnType | None) -> exp.Expr:
    # With its type: which function of several is called depends on it.
    return exp.Null() if kind is None else exp.cast(exp.Null(), data_type(kind))


def _shared(left: FromItem, right: FromItem, join: exp.Join, source: Source) -> list[str]:
    # One engine renames the second of two columns of one name, and would then join on that name.
    for item in (left, right):
        known = [name for name, _ in item.visible]
        if len(set(known)) < len(known):
            raise source.refusal(
                "ambiguous_name", join, "a side of the NATURAL JOIN has a column name twice"
            )
    others = {name for name, _ in right.visible}
    names = [name for name, _ in left.visible if name is not None and name in others]
    if not names:
        raise source.refusal(
            "join_form", join, "the tables share no column name", "write JOIN … ON, or CROSS JOIN"
        )
    return names


def _only(item: FromItem, name: str, place: exp.Expr, source: Source) -> exp.Expr:
    found = [meaning for known, meaning in item.visible if known == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise source.refusal("ambiguous_name", place, f"{name} can mean several columns")
    raise source.refusal("unknown_column", place, f"there is no column {name} on both sides")
