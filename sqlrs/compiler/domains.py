"""The public domain of every group key: which values it can have, known without private rows.

A key's values come from public tables, from the query's own conditions, from expressions with
finitely many values, or from the schema and the owner's word; else the query is refused. What is
printed of a key comes from here, never from a private row.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.column_values import ColumnValues
from sqlrs.compiler.enumerated import Enumerated, output, value_of
from sqlrs.compiler.finite import KnownValues
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.grounds import form, grounds_of
from sqlrs.compiler.kinds import null_folded
from sqlrs.compiler.public_pieces import Piece, public_pieces
from sqlrs.errors import QueryRefused
from sqlrs.measures import KeyDomain
from sqlrs.records import dataclass
from sqlrs.trees.build import inner, select_from, union_of
from sqlrs.trees.identifiers import column, identifier

_LONGEST_SHOWN = 60


def find_domains(alternatives: Sequence[FlatQuery], catalog: Catalog) -> tuple[KeyDomain, ...]:
    """Domains that together hold every key once: the values in any of the alternatives.

    Alternatives are the flat queries of a signed sum, without what only some aggregates count (a
    FILTER); they have the same keys, of which one that an outer join leaves empty is NULL.
    """
    count = len(alternatives[0].keys)
    if any(len(flat.keys) != count for flat in alternatives):
        raise ValueError("the alternatives have different numbers of keys")
    found = [_pieces(flat, catalog) for flat in alternatives]
    return tuple(_domain(block, found) for block in _blocks(found, count))


@dataclass(frozen=True, eq=False)
class _Found:
    """The keys of one alternative: those that are constants, and pieces of the others."""

    fixed: dict[int, exp.Expr]
    pieces: tuple[Piece, ...]


def _pieces(flat: FlatQuery, catalog: Catalog) -> _Found:
    grounds = grounds_of(flat, catalog)
    keys = {number: form(null_folded(key)) for number, key in enumerate(flat.keys)}
    fixed = {number: key for number, key in keys.items() if not key.find(exp.Column)}
    varying = {number: key for number, key in keys.items() if number not in fixed}
    pieces = public_pieces(grounds, varying)
    held = {number for piece in pieces for number in piece.keys}
    known = KnownValues(grounds, ColumnValues(grounds))
    for number, key in varying.items():
        if number not in held:
            values = known.of(key)
            if values is None:
                raise _unknown(flat, number, key)
            if values.most == 0:
                raise _no_value(flat, number, key)
            pieces.append(_as_piece(number, values))
    return _Found(fixed, tuple(pieces))


def _as_piece(number: int, values: Enumerated) -> Piece:
    key = output(value_of("d"), f"k{number}")
    select = select_from(inner(values.select.copy(), "d"), key)
    select.set("distinct", exp.Distinct())
    return Piece((number,), select, values.origin)


def _blocks(found: Sequence[_Found], count: int) -> list[tuple[int, ...]]:
    """The keys that some alternative knows together."""
    leader = list(range(count))
    for one in found:
        for piece in one.pieces:
            joined = {leader[number] for number in piece.keys}
            leader = [min(joined) if old in joined else old for old in leader]
    return [
        tuple(number for number in range(count) if leader[number] == first)
        for first in dict.fromkeys(leader)
    ]


def _domain(block: tuple[int, ...], found: Sequence[_Found]) -> KeyDomain:
    branches = list(dict.fromkeys(_branch(block, one) for one in found))
    pieces = [piece for one in found for piece in one.pieces if set(piece.keys) & set(block)]
    origins = [piece.origin for piece in pieces]
    fixed = [one.fixed[number] for one in found for number in block if number in one.fixed]
    if any(isinstance(key, exp.Null) for key in fixed):
        origins.append("NULL without a partner" if pieces else "NULL")
    if any(not isinstance(key, exp.Null) for key in fixed):
        origins.append("a constant")
    return KeyDomain(block, _united(block, branches), "; ".join(dict.fromkeys(origins)))


def _branch(block: tuple[int, ...], found: _Found) -> exp.Select:
    """All combinations of the values that the keys of a block have in one alternative."""
    pieces = [piece for piece in found.pieces if set(piece.keys) <= set(block)]
    if len(pieces) == 1 and pieces[0].keys == block:
        return pieces[0].select
    outputs: dict[int, exp.Expr] = {
        number: column(f"k{number}", f"p{place}")
        for place, piece in enumerate(pieces)
        for number in piece.keys
    }
    outputs.update({n: key.copy() for n, key in found.fixed.items() if n in block})
    named_outputs = [output(outputs[number], f"k{number}") for number in block]
    if not pieces:
        return exp.Select(expressions=named_outputs)
    first, *rest = [inner(piece.select.copy(), f"p{i}") for i, piece in enumerate(pieces)]
    select = select_from(first, *named_outputs)
    for other in rest:
        select.append("joins", exp.Join(this=other, kind="CROSS"))
    return select


def _united(block: tuple[int, ...], branches: Sequence[exp.Select]) -> exp.Select:
    if len(branches) == 1:
        return branches[0]
    # A NULL takes on the type of what stands before it.
    ordered = sorted(branches, key=lambda one: sum(map(_is_null, one.expressions)))
    union = union_of([one.copy() for one in ordered])
    rows = exp.Subquery(this=union, alias=exp.TableAlias(this=identifier("d")))
    select = select_from(rows, *(column(f"k{number}", "d") for number in block))
    select.set("distinct", exp.Distinct())
    return select


def _is_null(tree: exp.Expr) -> bool:
    return isinstance(tree.unalias(), exp.Null)


def _unknown(flat: FlatQuery, number: int, key: exp.Expr) -> QueryRefused:
    return flat.source.refusal(
        "unknown_domain",
        flat.keys[number],
        f"the values of {_shown(flat, key)} are not known without the private rows",
    )


def _no_value(flat: FlatQuery, number: int, key: exp.Expr) -> QueryRefused:
    return flat.source.refusal(
        "unknown_domain",
        flat.keys[number],
        f"the conditions leave no value for {_shown(flat, key)}, so there is no group",
        "look at the ranges and lists in WHERE: a range goes from its smaller end to its larger",
    )


def _shown(flat: FlatQuery, key: exp.Expr) -> str:
    """The key for people."""
    tree = key.copy()
    for name in tree.find_all(exp.Identifier):
        name.set("quoted", False)
    text = tree.sql(flat.source.dialect)
    return text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
