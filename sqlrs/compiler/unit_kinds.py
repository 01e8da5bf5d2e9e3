"""Types of expressions inside one unit: None where a type is not clear, so that a rule refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.conditions import Reference, reference
from sqlrs.compiler.kinds import BIGINT, is_truth, kind_of
from sqlrs.records import dataclass
from sqlrs.values import values_of

HUGE = ColumnType(Family.INTEGER, "HUGEINT")
"""What a sum of whole numbers is: in PostgreSQL a numeric without places."""
_BOOLEAN = ColumnType(Family.BOOLEAN, "BOOLEAN")
_TIMESTAMP = ColumnType(Family.TIMESTAMP, "TIMESTAMP")
_TEXTS = (exp.DataType.Type.TEXT, exp.DataType.Type.VARCHAR)
_TIMESTAMPS = (exp.DataType.Type.TIMESTAMP, exp.DataType.Type.TIMESTAMPNTZ)
_MOST_PLACES = 12
_UNNAMED = ColumnType(Family.TEXT, "VARCHAR")


@dataclass(frozen=True, eq=False)
class Known:
    """Of one column of a relation. ``origin``: the same value over columns of stored tables.

    ``positive``: it is not below 0. The origin holds for every row: docs/proofs/partitioned.md.
    """

    kind: ColumnType | None
    nullable: bool = True
    positive: bool = False
    origin: exp.Expr | None = None


Columns = Mapping[Reference, Known]


def kind_in(tree: exp.Expr, columns: Columns) -> ColumnType | None:
    """The type of an expression, None if it is not clear."""
    tree = tree.unnest()

    def inside(part: exp.Expr) -> ColumnType | None:
        return kind_in(part, columns)

    match tree:
        case exp.Column():
            known = columns.get(reference(tree))
            return None if known is None else known.kind
        case exp.Window() | exp.Filter():
            return inside(tree.this)
        case exp.Count() | exp.CountIf() | exp.Rank() | exp.DenseRank() | exp.RowNumber():
            return BIGINT
        case exp.Lag() | exp.Lead() | exp.FirstValue():
            return inside(tree.this)
        case exp.Sum():
            return _summed(inside(argument_of(tree)))
        case exp.Min() | exp.Max():
            return inside(argument_of(tree))
        case exp.LogicalAnd() | exp.LogicalOr() | exp.Exists() | exp.Boolean():
            return _BOOLEAN
        case exp.Case() | exp.If() | exp.Coalesce() | exp.Nullif() | exp.Greatest() | exp.Least():
            return _common([inside(one) for one in chosen_from(tree)])
        case exp.Add() | exp.Sub() | exp.Mul():
            return _computed(tree, inside(tree.this), inside(tree.expression))
        case exp.Neg() | exp.Abs():
            return inside(tree.this)
        case exp.TimestampTrunc():
            return _TIMESTAMP
        case exp.Cast():
            # A text keeps the collation of the column that it is cast from.
            plain = all(_is_plain(columns.get(reference(c))) for c in tree.find_all(exp.Column))
            return _cast(tree.to) if plain or tree.to.this not in _TEXTS else None
        case exp.Literal():
            return _literal(tree)
        case exp.Select() if len(tree.expressions) == 1:
            return inside(tree.expressions[0].unalias())
        case exp.Subquery():
            return inside(tree.this)
    if is_truth(tree):
        return _BOOLEAN
    if not all(reference(one) in columns for one in tree.find_all(exp.Column)):
        return None
    types = {place: known.kind for place, known in columns.items() if known.kind is not None}
    if any(reference(one) not in types for one in tree.find_all(exp.Column)):
        return None
    return kind_of(tree, types.__getitem__)


def places_of(kind: ColumnType | None) -> int | None:
    """How many decimal places every value of the type has at most; None if that is not known."""
    if kind is None:
        return None
    if kind.family is Family.INTEGER:
        return 0
    if kind.family is not Family.DECIMAL:
        return None
    if kind.places is not None:
        return kind.places
    name = kind.name.lower()
    scale = name[name.find(",") + 1 : -1] if "," in name and name.endswith(")") else ""
    return int(scale) if scale.strip().isdigit() else None


def decimal_kind(places: int, *, modified: bool) -> ColumnType:
    """The widest decimal of so many places; ``modified``: the type's name holds them."""
    if modified:
        return ColumnType(Family.DECIMAL, f"DECIMAL(38,{places})")
    return ColumnType(Family.DECIMAL, "numeric", places=places)


def argument_of(call: exp.Expr) -> exp.Expr:
    """What an aggregate reads, DISTINCT or not."""
    value: exp.Expr | None = call.this
    if isinstance(value, exp.Distinct) and len(value.expressions) == 1:
        value = value.expressions[0]
    return exp.Null() if value is None else value


def _summed(kind: ColumnType | None) -> ColumnType | None:
    if kind is None:
        return None
    if kind.family is Family.INTEGER:
        return HUGE
    return _decimal(places_of(kind), [kind])


def _computed(
    tree: exp.Expr, left: ColumnType | None, right: ColumnType | None
) -> ColumnType | None:
    if left is None or right is None:
        return None
    if left.family is right.family is Family.INTEGER:
        return HUGE if HUGE in (left, right) else BIGINT
    one, other = places_of(left), places_of(right)
    if one is None or other is None:
        return None
    places = one + other if isinstance(tree, exp.Mul) else max(one, other)
    return _decimal(places, [left, right])


def _decimal(places: int | None, kinds: Sequence[ColumnType]) -> ColumnType | None:
    if places is None or places > _MOST_PLACES:
        return None
    decimals = [one for one in kinds if one.family is Family.DECIMAL]
    return decimal_kind(places, modified=all("(" in one.name for one in decimals))


def _common(kinds: Sequence[ColumnType | None]) -> ColumnType | None:
    """The type of all of them. Decimals of different places would be told apart."""
    first = kinds[0] if kinds else None
    if first is None or None in kinds:
        return None
    same = all(one is not None and one.family is first.family for one in kinds)
    if same and first.family is Family.INTEGER:
        return HUGE if HUGE in kinds else BIGINT
    if same and first.family is Family.DECIMAL:
        places = {places_of(one) for one in kinds}
        return _decimal(places.pop(), [first]) if len(places) == 1 else None
    return first if all(one == first for one in kinds) else None


def chosen_from(tree: exp.Expr) -> list[exp.Expr]:
    """What the value of CASE and its like is one of; NULL, which has every type, is left out."""
    found: list[exp.Expr | None]
    match tree:
        case exp.Case():
            found = [*(one.args["true"] for one in tree.args["ifs"]), tree.args.get("default")]
        case exp.If():
            found = [tree.args["true"], tree.args.get("false")]
        case exp.Nullif():
            found = [tree.this]
        case _:
            found = [tree.this, *tree.expressions]
    given = [one.unnest() for one in found if one is not None]
    return [one for one in given if not isinstance(one, exp.Null)]


def _cast(target: exp.DataType) -> ColumnType | None:
    kind = target.this
    if kind in exp.DataType.INTEGER_TYPES:
        return BIGINT if kind not in (exp.DataType.Type.INT128, exp.DataType.Type.UINT128) else None
    if kind is exp.DataType.Type.DECIMAL and len(target.expressions) == 2:
        return _decimal(int(target.expressions[1].name), [decimal_kind(0, modified=False)])
    if kind is exp.DataType.Type.DATE:
        return ColumnType(Family.DATE, "DATE")
    if kind is exp.DataType.Type.BOOLEAN:
        return _BOOLEAN
    if kind in _TIMESTAMPS and not target.expressions:
        return _TIMESTAMP
    return _UNNAMED if kind in _TEXTS else None


def _is_plain(known: Known | None) -> bool:
    if known is None or known.kind is None:
        return False
    text = known.kind.family in (Family.TEXT, Family.OTHER)
    return values_of(known.kind).one_form or not text


def _literal(tree: exp.Literal) -> ColumnType | None:
    if tree.is_string:
        return _UNNAMED
    if tree.is_int:
        return BIGINT
    whole, dot, behind = str(tree.this).partition(".")
    plain = bool(dot) and (whole + behind).isdigit()
    return _decimal(len(behind), [decimal_kind(0, modified=False)]) if plain else None
