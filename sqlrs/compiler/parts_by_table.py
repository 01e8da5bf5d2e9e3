"""The parts of a sum or product over several tables, those of each table together.

The ends of what one table gives are closer than the sums of the ends of its parts.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sqlrs.compiler.bounded_expressions import aliases


def addends(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a sum, those of one table together: their ends are closer than one by one."""
    groups: dict[frozenset[str], exp.Expr] = {}
    mixed: list[exp.Expr] = []
    for minus, part in _each_addend(node, minus=False):
        tables = aliases(part)
        signed = exp.Neg(this=exp.Paren(this=part.copy())) if minus else part.copy()
        if len(tables) > 1:
            mixed.append(signed)
        elif tables in groups:
            kind = exp.Sub if minus else exp.Add
            groups[tables] = kind(this=groups[tables], expression=exp.Paren(this=part.copy()))
        else:
            groups[tables] = signed
    return [*groups.values(), *mixed]


def _each_addend(node: exp.Expr, *, minus: bool) -> Iterator[tuple[bool, exp.Expr]]:
    node = node.unnest()
    if isinstance(node, exp.Add | exp.Sub) and len(aliases(node)) > 1:
        yield from _each_addend(node.this, minus=minus)
        yield from _each_addend(node.expression, minus=minus ^ isinstance(node, exp.Sub))
    elif isinstance(node, exp.Neg) and len(aliases(node)) > 1:
        yield from _each_addend(node.this, minus=not minus)
    else:
        yield minus, node


def factors(node: exp.Expr) -> list[exp.Expr]:
    """The parts of a product, those of one table together."""
    groups: dict[frozenset[str], exp.Expr] = {}
    mixed: list[exp.Expr] = []
    for part in _each_factor(node):
        tables = aliases(part)
        if len(tables) > 1:
            mixed.append(part)
        elif tables in groups:
            groups[tables] = exp.Mul(
                this=exp.Paren(this=groups[tables]), expression=exp.Paren(this=part.copy())
            )
        else:
            groups[tables] = part.copy()
    return [*groups.values(), *mixed]


def _each_factor(node: exp.Expr) -> Iterator[exp.Expr]:
    node = node.unnest()
    if isinstance(node, exp.Mul) and len(aliases(node)) > 1:
        yield from _each_factor(node.this)
        yield from _each_factor(node.expression)
    else:
        yield node
