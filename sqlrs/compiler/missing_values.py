"""Expressions over columns that an outer join leaves empty, as far as NULL decides them."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from sqlrs.compiler.conditions import RELATIONS

# NULL wherever a part is NULL.
_STRICT = (
    *RELATIONS,
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg),
    *(exp.Like, exp.ILike, exp.SimilarTo, exp.DPipe),
)


def is_missing(value: exp.Expr) -> bool:
    """Whether it is NULL, with or without a type."""
    value = value.unnest()
    if type(value) is exp.Cast:
        return is_missing(value.this)
    return isinstance(value, exp.Null)


def decided(tree: exp.Expr) -> exp.Expr:
    """The same value, with everything worked out that NULL decides; the tree itself may change."""
    for name, part in list(tree.args.items()):
        if isinstance(part, exp.Expr):
            tree.set(name, decided(part))
        elif isinstance(part, list):
            parts = [decided(one) if isinstance(one, exp.Expr) else one for one in part]
            tree.set(name, parts)
    rule = _RULES.get(type(tree))
    if rule is not None:
        return rule(tree)
    if isinstance(tree, _STRICT) and any(map(is_missing, tree.iter_expressions())):
        return exp.Null()
    return tree


def _paren(tree: exp.Expr) -> exp.Expr:
    inside = tree.this
    return inside if isinstance(inside, exp.Null | exp.Boolean) or is_missing(inside) else tree


def _is(tree: exp.Expr) -> exp.Expr:
    if not is_missing(tree.this):
        return tree
    holds = isinstance(tree.expression, exp.Null) is not bool(tree.args.get("negate"))
    return exp.true() if holds else exp.false()


def _not(tree: exp.Expr) -> exp.Expr:
    inside = tree.this.unnest()
    if isinstance(inside, exp.Boolean):
        return exp.false() if inside.this else exp.true()
    return exp.Null() if is_missing(inside) else tree


def _null_safe(tree: exp.Expr) -> exp.Expr:
    missing = [is_missing(tree.this), is_missing(tree.expression)]
    if not any(missing):
        return tree
    if all(missing):
        return exp.true() if isinstance(tree, exp.NullSafeEQ) else exp.false()
    other = tree.expression if missing[0] else tree.this
    empty = exp.Is(this=other, expression=exp.Null())
    return empty if isinstance(tree, exp.NullSafeEQ) else exp.Not(this=empty)


def _member(tree: exp.Expr) -> exp.Expr:
    return exp.Null() if is_missing(tree.this) else tree


def _and(tree: exp.Expr) -> exp.Expr:
    return _connected(tree, neutral=True)


def _or(tree: exp.Expr) -> exp.Expr:
    return _connected(tree, neutral=False)


def _connected(tree: exp.Expr, *, neutral: bool) -> exp.Expr:
    sides = [tree.this.unnest(), tree.expression.unnest()]
    for side, other in (sides, reversed(sides)):
        if isinstance(side, exp.Boolean):
            return other if bool(side.this) is neutral else side
    return exp.Null() if all(map(is_missing, sides)) else tree


def _coalesce(tree: exp.Expr) -> exp.Expr:
    values = [tree.this, *tree.expressions]
    left: list[exp.Expr] = [value for value in values if not is_missing(value)]
    if not left:
        return exp.Null()
    if len(left) == 1:
        return left[0]
    tree.set("this", left[0])
    tree.set("expressions", left[1:])
    return tree


def _case(tree: exp.Expr) -> exp.Expr:
    if tree.this is not None:
        return tree
    branches = []
    for branch in tree.args["ifs"]:
        condition = branch.this.unnest()
        if is_missing(condition) or condition == exp.false():
            continue
        if condition == exp.true():
            tree.set("default", branch.args["true"])
            break
        branches.append(branch)
    if not branches:
        default: exp.Expr | None = tree.args.get("default")
        return exp.Null() if default is None else default
    tree.set("ifs", branches)
    return tree


_RULES: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Paren: _paren,
    exp.Is: _is,
    exp.Not: _not,
    exp.NullSafeEQ: _null_safe,
    exp.NullSafeNEQ: _null_safe,
    exp.In: _member,
    exp.Between: _member,
    exp.And: _and,
    exp.Or: _or,
    exp.Coalesce: _coalesce,
    exp.Case: _case,
}
