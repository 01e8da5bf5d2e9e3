"""Parameters $1, $2, … of an installed function: constants of a known type and an unknown value.

In the tree each is a cast of itself to its type. No stage reads a value off it: it is no literal,
so no column is bound to it, no domain and no bound follow from it, and no condition is decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.compiler.source import Source
from sqlrs.errors import UsageError
from sqlrs.values import MOMENTS, NUMBERS

MAX_PARAMETERS = 20

_KINDS = exp.DataType.Type
# As PostgreSQL names them, with the names that people use.
_TYPES: dict[str, tuple[exp.DType, Family, tuple[str, ...]]] = {
    "smallint": (_KINDS.SMALLINT, Family.INTEGER, ("int2",)),
    "integer": (_KINDS.INT, Family.INTEGER, ("int", "int4")),
    "bigint": (_KINDS.BIGINT, Family.INTEGER, ("int8",)),
    "numeric": (_KINDS.DECIMAL, Family.DECIMAL, ("decimal",)),
    "real": (_KINDS.FLOAT, Family.FLOAT, ("float4",)),
    "double precision": (_KINDS.DOUBLE, Family.FLOAT, ("double", "float8", "float")),
    "text": (_KINDS.TEXT, Family.TEXT, ("varchar", "string")),
    "boolean": (_KINDS.BOOLEAN, Family.BOOLEAN, ("bool",)),
    "date": (_KINDS.DATE, Family.DATE, ()),
    "timestamp without time zone": (_KINDS.TIMESTAMP, Family.TIMESTAMP, ("timestamp",)),
    "timestamp with time zone": (_KINDS.TIMESTAMPTZ, Family.TIMESTAMP_TZ, ("timestamptz",)),
    "uuid": (_KINDS.UUID, Family.OTHER, ()),
}
_NAMES = {name: name for name in _TYPES} | {
    short: name for name, (_, _, others) in _TYPES.items() for short in others
}
_FAMILIES = {kind: family for kind, family, _ in _TYPES.values()}
# What gives a result for every value, so that no argument makes a call fail on some data only.
_COMPARES = (
    *(exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE),
    *(exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.In, exp.Between),
)


def parameter_types(names: Iterable[str]) -> tuple[str, ...]:
    """The types as PostgreSQL names them, or an error that lists those there are."""
    found = []
    for name in names:
        plain = " ".join(name.lower().split())
        if plain not in _NAMES:
            shown = ", ".join(
                others[0] if others else long for long, (_, _, others) in _TYPES.items()
            )
            raise UsageError(f"{name!r} is no type of a parameter", hint=f"one of {shown}")
        found.append(_NAMES[plain])
    if len(found) > MAX_PARAMETERS:
        raise UsageError(f"a function has at most {MAX_PARAMETERS} parameters")
    return tuple(found)


def with_types(tree: exp.Expr, source: Source) -> None:
    """Give each declared parameter of a tree its type; the others are left to be refused."""
    if not source.parameters:
        return
    used = set()
    for node in list(tree.find_all(exp.Parameter)):
        number = _number(node)
        if number is None:
            continue
        if not 1 <= number <= len(source.parameters):
            raise source.refusal("unknown_parameter", node, f"${number} has no type")
        if not isinstance(_holder(node), _COMPARES):
            raise source.refusal(
                "parameter",
                node,
                "a parameter is compared with something and used in no other way",
                "=, <>, <, >, BETWEEN, IN (…), IS NULL; compute its value in the call",
            )
        used.add(number)
        kind = _TYPES[source.parameters[number - 1]][0]
        node.replace(exp.Cast(this=node.copy(), to=exp.DataType(this=kind, nested=False)))
    for number in range(1, len(source.parameters) + 1):
        if number not in used:
            raise source.refusal("unknown_parameter", message=f"${number} is not in the query")


def is_parameter(node: exp.Expr) -> bool:
    """Whether it is a declared parameter with its type."""
    return type(node) is exp.Cast and isinstance(node.this, exp.Parameter)


def has_parameter(trees: Iterable[object]) -> bool:
    """Whether a parameter stands in one of the trees."""
    return any(isinstance(one, exp.Expr) and one.find(exp.Parameter) for one in trees)


def is_comparable(node: exp.Cast, column: ColumnType) -> bool:
    """Whether PostgreSQL compares all values of the column with the parameter."""
    families: Sequence[Family] = (_FAMILIES[node.to.this], column.family)
    if Family.OTHER in families:
        return column.family is Family.OTHER and node.to.sql("postgres").lower() == column.name
    return len(set(families)) == 1 or set(families) <= NUMBERS or set(families) <= MOMENTS


def _number(node: exp.Parameter) -> int | None:
    digits = node.name if isinstance(node.this, exp.Literal) else ""
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else None


def _holder(node: exp.Expr) -> exp.Expr | None:
    holder = node.parent
    while isinstance(holder, exp.Paren):
        holder = holder.parent
    return holder
