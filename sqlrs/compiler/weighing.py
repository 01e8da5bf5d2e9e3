"""What a query sums -> products of whole numbers from 0 to a bound, one factor for each table.

A sum of signed numbers is a difference of two sums; a product over several tables is one term, and
a sum over several tables one for each of its parts. Where one part is NULL the whole is, so each
term also holds the tests of what the others read. NULL weighs 0.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from math import prod

from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiler.bounded_expressions import BoundedExpressions, aliases, branches
from sqlrs.compiler.bounded_values import (
    FAR,
    MOST,
    BoundedValue,
    TooLarge,
    any_null,
    common_unit,
)
from sqlrs.compiler.flat import FlatQuery
from sqlrs.compiler.held_products import common_cut
from sqlrs.compiler.parts_by_table import addends, factors
from sqlrs.records import dataclass
from sqlrs.trees.build import number
from sqlrs.trees.totals import MOST_SMALL

MOST_TERMS = 16
"""The largest number of terms: each of them is a query of its own."""


@dataclass(frozen=True, eq=False)
class Factor:
    """A whole number from 0 to ``bound`` for each row of one occurrence, over bare columns.

    ``decimal``: its type is one with digits behind the point, all of them 0.
    """

    alias: str
    expression: exp.Expr
    bound: int
    decimal: bool = False


@dataclass(frozen=True, eq=False)
class WeightTerm:
    """A result counts ``coefficient`` times the product of the factors; no factor: a count."""

    coefficient: int
    factors: tuple[Factor, ...]


@dataclass(frozen=True, eq=False)
class Weighing:
    """The sum over all results is ``unit`` times that of the terms; without terms it is 0."""

    terms: tuple[WeightTerm, ...]
    unit: Fraction


@dataclass(frozen=True, eq=False)
class _Product:
    """A number times at most one value of each table."""

    number: Fraction
    parts: dict[str, BoundedValue]


@dataclass(frozen=True, eq=False)
class _Polynomial:
    """A sum of products. It is NULL where one of ``nulls``, each of one table, is.

    ``scattered``: it is NULL on further rows, where its products are NULL or 0 too.
    """

    products: tuple[_Product, ...]
    nulls: tuple[tuple[str, exp.Expr], ...] = ()
    whole: bool = True
    scattered: bool = False


def weigh(flat: FlatQuery, catalog: Catalog) -> Weighing:
    """The terms of the query's sum, or a refusal."""
    weigher = _Weigher(flat, catalog)
    try:
        return weigher.weighing()
    except TooLarge:
        raise weigher.values.too_large(weighed(flat)) from None


def weighed(flat: FlatQuery) -> exp.Expr:
    """What the query sums, which must be something."""
    if flat.weight is None:
        raise ValueError("the query sums nothing")
    return flat.weight


class _Weigher:
    def __init__(self, flat: FlatQuery, catalog: Catalog) -> None:
        self.values = BoundedExpressions(flat, catalog)
        self._numbers = self.values.numbers
        self._weight = weighed(flat)
        # It holds what reads no table, such as a CASE over constants.
        self._first = next(o.alias for o in flat.occurrences if o.outer)

    def weighing(self) -> Weighing:
        found = self._polynomial(self._weight)
        if found is None:
            return Weighing((), Fraction(1))
        products = self._tested(found)
        units = [abs(one.number) * prod(v.unit for v in one.parts.values()) for one in products]
        unit = common_unit(units)
        terms: list[WeightTerm] = []
        for one, worth in zip(products, units, strict=True):
            times = int(worth / unit) * (1 if one.number > 0 else -1)
            terms += self._terms(times, one)
            self._check_number(len(terms))
        return Weighing(tuple(terms), unit if terms else Fraction(1))

    # Sums of products; None is NULL for every result.

    def _polynomial(self, node: exp.Expr) -> _Polynomial | None:
        node = node.unnest()
        tables = aliases(node)
        if len(tables) < 2:
            return self._single(node, next(iter(tables), None))
        match node:
            case exp.Neg():
                return self._times(self._polynomial(node.this), Fraction(-1))
            case exp.Add() | exp.Sub():
                return self._sum(node)
            case exp.Mul():
                return self._multiplied([self._polynomial(part) for part in factors(node)])
            case exp.Div() if not aliases(node.expression):
                return self._quotient(node)
            case exp.Case() | exp.If():
                return self._case(node)
        raise self.values.source.refusal(
            "unsupported",
            node,
            "this reads several tables in a way that is not summed",
            "sums, products and CASE may combine tables; all else reads the columns of one",
        )

    def _single(self, node: exp.Expr, alias: str | None) -> _Polynomial | None:
        value = self.values.value(node)
        if value.empty:
            return None
        if value.constant:
            number = value.number
            products = (_Product(number, {}),) if number else ()
            return _Polynomial(products, whole=value.whole)
        alias = alias or self._first
        nulls = tuple((alias, tree) for tree in value.nulls)
        return _Polynomial((_Product(Fraction(1), {alias: value}),), nulls, value.whole)

    def _sum(self, node: exp.Expr) -> _Polynomial | None:
        found = [self._polynomial(part) for part in addends(node)]
        parts = [part for part in found if part is not None]
        if len(parts) < len(found):
            return None
        if any(part.scattered for part in parts):
            raise self.values.source.refusal(
                "unsupported",
                node,
                "a CASE over several tables that may be NULL is not added to something else",
                "give it an ELSE, and coalesce(…, 0) around what may be NULL in it",
            )
        products = tuple(one for part in parts for one in part.products)
        nulls = tuple(test for part in parts for test in part.nulls)
        return self._limited(_Polynomial(products, nulls, all(part.whole for part in parts)))

    def _multiplied(self, found: Sequence[_Polynomial | None]) -> _Polynomial | None:
        result = _Polynomial((_Product(Fraction(1), {}),))
        for part in found:
            if part is None:
                return None
            # Before they are multiplied out: each product copies what it is made of.
            self._check_number(len(result.products) * len(part.products))
            products = tuple(
                self._joined(one, two) for one in result.products for two in part.products
            )
            result = _Polynomial(
                products,
                (*result.nulls, *part.nulls),
                result.whole and part.whole,
                result.scattered or part.scattered,
            )
        return result

    def _joined(self, one: _Product, two: _Product) -> _Product:
        parts = dict(one.parts)
        for alias, value in two.parts.items():
            held = parts.get(alias)
            parts[alias] = value if held is None else self._numbers.multiplied(held, value)
        return _Product(one.number * two.number, parts)

    def _quotient(self, node: exp.Div) -> _Polynomial | None:
        divisor = self.values.value(node.expression)
        if not divisor.constant or divisor.number == 0:
            # It says why.
            self.values.value(node)
        dividend = self._polynomial(node.this)
        if dividend is not None:
            self.values.check_division(node, whole=dividend.whole and divisor.whole)
            dividend = replace(dividend, whole=False)
        return self._times(dividend, 1 / divisor.number)

    def _times(self, found: _Polynomial | None, number: Fraction) -> _Polynomial | None:
        if found is None:
            return None
        products = tuple(_Product(one.number * number, one.parts) for one in found.products)
        return replace(found, products=products)

    def _case(self, node: exp.Case | exp.If) -> _Polynomial | None:
        """Each value times the test that its branch is taken: conditions of one table only."""
        pairs, last = branches(node)
        tables = frozenset[str]().union(*(aliases(condition) for condition, _ in pairs))
        if len(tables) > 1:
            raise self.values.source.refusal(
                "unsupported",
                node,
                "the conditions of this CASE read several tables",
                "let all conditions of a CASE read one table; the values may read others",
            )
        holder = next(iter(tables), self._first)
        conditions = [self.values.condition(condition) for condition, _ in pairs]
        products: list[_Product] = []
        whole, scattered = True, False
        for place, value in enumerate([*(value for _, value in pairs), last]):
            found = self._polynomial(value)
            if found is None:
                scattered = True
                continue
            whole = whole and found.whole
            scattered = scattered or found.scattered or bool(found.nulls)
            taken = _Product(Fraction(1), {holder: self._taken(conditions, place)})
            products += [self._joined(one, taken) for one in self._tested(found)]
        return self._limited(_Polynomial(tuple(products), (), whole, scattered))

    def _taken(self, conditions: Sequence[exp.Expr], place: int) -> BoundedValue:
        """1 where the branch at a place is the first whose condition is true, else 0."""
        truths = [self._numbers.literal(int(at == place)) for at in range(len(conditions) + 1)]
        ifs = [
            exp.If(this=condition.copy(), true=truth)
            for condition, truth in zip(conditions, truths, strict=False)
        ]
        return BoundedValue(exp.Case(ifs=ifs, default=truths[-1]), 0, 1)

    def _limited(self, found: _Polynomial) -> _Polynomial:
        self._check_number(len(found.products))
        return found

    def _check_number(self, parts: int) -> None:
        if parts > MOST_TERMS:
            raise self.values.source.refusal(
                "too_complex",
                self._weight,
                f"this falls into more than {MOST_TERMS} sums over single tables and products",
                "ask several sums and add the answers",
            )

    # Terms.

    def _tested(self, found: _Polynomial) -> list[_Product]:
        """The products, each 0 wherever the whole is NULL."""
        return [self._joined(one, self._tests(one, found.nulls)) for one in found.products]

    def _tests(self, one: _Product, nulls: Iterable[tuple[str, exp.Expr]]) -> _Product:
        missing: dict[str, dict[str, exp.Expr]] = {}
        for alias, tree in nulls:
            held = one.parts.get(alias)
            known = () if held is None else held.nulls
            if tree.sql() not in {other.sql() for other in known}:
                missing.setdefault(alias, {})[tree.sql()] = tree
        tests: dict[str, BoundedValue] = {}
        for alias, trees in missing.items():
            absent = exp.Paren(this=any_null(trees.values()))
            tests[alias] = self._numbers.indicator(exp.Not(this=absent))
        return _Product(Fraction(1), tests)

    def _terms(self, times: int, one: _Product) -> Iterator[WeightTerm]:
        choices = [list(self._signed(alias, value)) for alias, value in sorted(one.parts.items())]
        for chosen in product(*choices):
            held = tuple(factor for _, factor in chosen)
            if prod(factor.bound for factor in held) > MOST:
                held = self._held(held, one.parts)
            yield WeightTerm(times * prod(sign for sign, _ in chosen), held)

    def _held(self, given: Sequence[Factor], parts: dict[str, BoundedValue]) -> tuple[Factor, ...]:
        """The factors, the larger ones cut so that no product is too large."""
        if not self._numbers.held:
            raise TooLarge
        cut = common_cut([factor.bound for factor in given])
        return tuple(
            factor if factor.bound <= cut else self._cut(factor, cut, parts[factor.alias].unit)
            for factor in given
        )

    def _cut(self, factor: Factor, cut: int, unit: Fraction) -> Factor:
        if cut * unit < FAR:
            raise TooLarge
        limit = self._numbers.literal(cut)
        tree = exp.Least(this=factor.expression, expressions=[limit], ignore_nulls=True)
        return Factor(factor.alias, tree, cut)

    def _signed(self, alias: str, value: BoundedValue) -> Iterator[tuple[int, Factor]]:
        """The part above 0 and the part below 0, where there are such values."""
        if value.between is not None and max(-value.low, value.high) <= MOST_SMALL:
            yield from _quick(alias, value, value.between)
            return
        for sign, one in ((1, value), (-1, self._numbers.negated(value))):
            if one.high > 0:
                tree = one.tree.copy()
                if one.low < 0:
                    zero = self._numbers.literal(0)
                    tree = exp.Greatest(this=tree, expressions=[zero], ignore_nulls=True)
                if one.nulls:
                    tree = exp.Coalesce(this=tree, expressions=[self._numbers.literal(0)])
                yield sign, Factor(alias, tree, one.high)


def _quick(
    alias: str, value: BoundedValue, between: Callable[[int, int], exp.Expr]
) -> Iterator[tuple[int, Factor]]:
    """Both parts in a type that is summed quickly."""
    parts = []
    if value.high > 0:
        parts.append((1, between(max(value.low, 0), value.high), value.high))
    if value.low < 0:
        below = between(value.low, min(value.high, 0))
        parts.append((-1, exp.Neg(this=exp.Paren(this=below)), -value.low))
    for sign, tree, bound in parts:
        if value.nulls:
            tree = exp.Coalesce(this=tree, expressions=[number(0)])
        yield sign, Factor(alias, tree, bound, value.decimal)
