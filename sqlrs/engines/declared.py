"""The functions that an owner vouches for, checked against what the database says of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from sqlrs.catalog import Catalog, ColumnType, DeclaredFunction, Routine
from sqlrs.compiler.functions import LISTED, VOLATILE_NAMES
from sqlrs.dialects import dialect_named
from sqlrs.engines.base import Snapshot
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.inputs.signatures import Signature

_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.ASCII)
# The column type for the text by which an engine calls a value's type.
TypeNamed = Callable[[str], ColumnType]


def declared_functions(
    snapshot: Snapshot,
    catalog: Catalog,
    signatures: Mapping[str, Signature],
    type_named: TypeNamed,
) -> tuple[DeclaredFunction, ...]:
    """The functions as declared; what the database contradicts is a UsageError. No row is read."""
    if not signatures:
        return ()
    for name in signatures:
        _check_name(name, catalog.dialect)
    routines = {routine.name: routine for routine in snapshot.routines(frozenset(signatures))}
    return tuple(
        _declared(snapshot, catalog.dialect, name, signature, routines.get(name), type_named)
        for name, signature in signatures.items()
    )


def _check_name(name: str, dialect: str) -> None:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"a function cannot be declared as {name!r}",
            hint="names of functions are made of small letters, digits and underscores",
        )
    if name in VOLATILE_NAMES:
        raise UsageError(f"the value of {name} changes from call to call")
    try:
        call = parse_one(f"{name}(x)", dialect=dialect)
    except SqlglotError:
        call = exp.Null()
    if type(call) is not exp.Anonymous or name in LISTED:
        raise UsageError(
            f"{name} has a meaning of its own in SQL", hint="give the function another name"
        )


def _declared(
    snapshot: Snapshot,
    dialect: str,
    name: str,
    signature: Signature,
    routine: Routine | None,
    type_named: TypeNamed,
) -> DeclaredFunction:
    if routine is None:
        raise UsageError(
            f"the database has no function {name}", hint="create it, or leave out its declaration"
        )
    if routine.problem is not None:
        raise UsageError(
            f"the function {name} cannot be declared: it {routine.problem}",
            hint="a function must have no side effects and give the same result for the same "
            "arguments, whatever the tables hold",
        )
    if routine.takes != len(signature.takes):
        raise UsageError(
            f"the function {name} takes {routine.takes} arguments, not {len(signature.takes)}"
        )
    found, *kinds = _types(snapshot, dialect, name, signature)
    *takes, returns = [type_named(kind) for kind in kinds]
    if _without_size(found) != _without_size(returns.name):
        raise UsageError(f"the function {name} returns {found}, not {signature.returns}")
    return DeclaredFunction(name, tuple(takes), returns, routine)


def _types(snapshot: Snapshot, dialect: str, name: str, signature: Signature) -> list[str]:
    """The names of the types: of a call's result, of the arguments, of the declared result."""
    try:
        nulls = [
            exp.cast(exp.Null(), exp.DataType.build(kind, dialect=dialect))
            for kind in (*signature.takes, signature.returns)
        ]
    except (SqlglotError, ValueError):
        raise UsageError(
            f"the signature of {name} names a type that is not known", hint=str(signature)
        ) from None
    call = exp.Anonymous(this=name, expressions=[null.copy() for null in nulls[:-1]])
    asked = [dialect_named(dialect).type_of(one) for one in (call, *nulls)]
    try:
        ((*names,),) = snapshot.rows(exp.select(*asked))
    except EngineFailed:
        raise UsageError(
            f"the function {name} cannot be called as {name}{signature}",
            hint="its types, its schema or the rights on it are others",
        ) from None
    return [str(one) for one in names]


def _without_size(kind: str) -> str:
    return kind.partition("(")[0]
