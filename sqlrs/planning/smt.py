"""General predicates across a boundary: the largest set of rows that one assignment satisfies.

For each value of the boundary, a solver (z3, the extra ``smt``) finds values of the external
variables that satisfy as many rows as possible: MaxSMT with one soft clause for each row. What the
solver understands is decided from the predicate and the columns' types alone; reaching its limit
raises, it never changes the formula. docs/proofs/general.md has the argument.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from sqlrs.catalog import ColumnType, Family
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.planning.external import Names, grouped_rows
from sqlrs.query import Comparison, Constant, General, Query, Variable
from sqlrs.residuals import Residual

if TYPE_CHECKING:
    import z3

DEFAULT_SOLVER_SECONDS = 60.0
_EPOCH = date(1970, 1, 1)
_NUMERIC = frozenset({Family.INTEGER, Family.DECIMAL, Family.DATE})

# A number with an exponent, or with more digits than a decimal holds, makes the engine compute in
# floating point, where a row can pass that exact arithmetic leaves out.
_EXACT_NUMBER = re.compile(r"(?=.{1,30}$)(\d+\.?\d*|\.\d+)", re.ASCII)

_COMPARISONS = (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.EQ, exp.NEQ)
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul)
_BOOLEAN = (exp.And, exp.Or, exp.Not)


def solvable(query: Query) -> frozenset[General]:
    """The general predicates that the solver understands, from the query alone.

    All variables that comparisons connect across atoms must be numbers too: the solver has no
    order of texts or times.
    """
    compared = frozenset[Variable]().union(*(p.variables for p in query.comparisons))
    if not all(_is_number(v.type) for v in compared):
        return frozenset()
    return frozenset(p for p in query.generals if understood(p))


def understood(predicate: General) -> bool:
    """Whether every part of the predicate is arithmetic, comparison or logic on numbers or days."""
    if not all(_is_number(v.type) for v in predicate.arguments):
        return False
    kinds = {f"v{i}": v.type.family for i, v in enumerate(predicate.arguments)}
    return _is_condition(cast(exp.Expression, predicate.condition), kinds)


def _is_number(kind: ColumnType) -> bool:
    """Whether every value is a number or a day: PostgreSQL's numeric may be NaN or infinite."""
    return kind.family in _NUMERIC and kind.name.lower() != "numeric"


def _is_condition(tree: exp.Expr, kinds: Mapping[str, Family]) -> bool:
    if isinstance(tree, exp.Paren | exp.Not):
        return _is_condition(tree.this, kinds)
    if isinstance(tree, exp.And | exp.Or):
        return _is_condition(tree.this, kinds) and _is_condition(tree.expression, kinds)
    if isinstance(tree, _COMPARISONS):
        return _kind(tree.this, kinds) is not None and _kind(tree.expression, kinds) is not None
    if isinstance(tree, exp.In):
        items = [tree.this, *tree.expressions]
        plain = not tree.args.get("query") and not tree.args.get("unnest")
        return plain and all(_kind(item, kinds) is not None for item in items)
    return isinstance(tree, exp.Boolean)


def _kind(tree: exp.Expr, kinds: Mapping[str, Family]) -> Family | None:
    """The family of a value that the solver can compute, or None."""
    if isinstance(tree, exp.Paren):
        return _kind(tree.this, kinds)
    if isinstance(tree, exp.Placeholder):
        return kinds[tree.name]
    if isinstance(tree, exp.Literal):
        if tree.is_string or not _EXACT_NUMBER.fullmatch(tree.name):
            return None
        return Family.INTEGER if tree.is_int else Family.DECIMAL
    if isinstance(tree, exp.Neg | exp.Abs):
        inner = _kind(tree.this, kinds)
        return inner if inner in (Family.INTEGER, Family.DECIMAL) else None
    if isinstance(tree, exp.Mod):
        whole = _kind(tree.this, kinds) is Family.INTEGER
        return Family.INTEGER if whole and _positive(tree.expression) else None
    if isinstance(tree, _ARITHMETIC):
        return _sum_kind(tree, kinds)
    return None


def _sum_kind(tree: exp.Expr, kinds: Mapping[str, Family]) -> Family | None:
    left, right = _kind(tree.this, kinds), _kind(tree.expression, kinds)
    if left is None or right is None:
        return None
    if Family.DATE not in (left, right):
        return Family.DECIMAL if Family.DECIMAL in (left, right) else Family.INTEGER
    # A day moved by a number is not understood: 'infinity' + 7 is 'infinity', and no number is.
    return Family.INTEGER if isinstance(tree, exp.Sub) and left is right else None


def _positive(tree: exp.Expr) -> int | None:
    """A positive whole literal, else None."""
    if isinstance(tree, exp.Literal) and tree.is_int and int(tree.name) > 0:
        return int(tree.name)
    return None


@dataclass(frozen=True)
class Solved:
    """The statement fetches grouped rows; ``solve`` finds the best assignment for each group."""

    residual: Residual
    seconds: float = DEFAULT_SOLVER_SECONDS
    name: str = "solver"

    def statement(self) -> exp.Select:
        """The residual's rows per value of the boundary, of what is compared, and of the output."""
        names = Names.of(self.residual)
        rows = grouped_rows(self.residual, names)
        days = {name for v, name in names.compared if v.type.family is Family.DATE}
        for item in rows.selects:
            if item.alias in days:
                # As numbers: Python has no date that 'infinity' could be.
                epoch = exp.cast(exp.Literal.string(_EPOCH.isoformat()), "date")
                item.set("this", exp.Sub(this=item.this, expression=epoch))
        return rows

    def lines(self) -> list[str]:
        """The variables that the solver chooses."""
        names = ", ".join(map(str, sorted(self.residual.external)))
        return [f"MaxSMT for each boundary value: the values of {names} that allow most rows"]

    def solve(self, rows: Iterable[Sequence[object]]) -> int:
        """The largest count over all groups. Groups too small to win are not solved."""
        names = Names.of(self.residual)
        groups = _groups(names, rows)
        best = 0
        for group in sorted(groups, key=_weight, reverse=True):
            if _weight(group) <= best:
                break
            best = max(best, _Group(self.residual, self.seconds).largest(group))
        return best


# A group maps each counted thing (an output value, or a position) to its rows and its weight.
_Rows = dict[Hashable, tuple[int, list[dict[Variable, object]]]]


def _groups(names: Names, rows: Iterable[Sequence[object]]) -> list[_Rows]:
    """The fetched rows by boundary value."""
    columns = [v for v, _ in names.all()]
    groups: dict[Hashable, _Rows] = {}
    for position, row in enumerate(rows):
        # The statement yields the count first, then the columns in the order of the names.
        count, values = int(str(row[0])), dict(zip(columns, row[1:], strict=True))
        group = groups.setdefault(tuple(values[v] for v, _ in names.boundary), {})
        if names.output:
            output = tuple(values[v] for v, _ in names.output)
            group.setdefault(output, (1, []))[1].append(values)
        else:
            group[position] = (count, [values])
    return list(groups.values())


def _weight(group: _Rows) -> int:
    return sum(weight for weight, _ in group.values())


class _Group:
    """One MaxSMT problem."""

    def __init__(self, residual: Residual, seconds: float) -> None:
        self.z3 = load_solver()
        self.residual = residual
        self.seconds = seconds
        self.externals = {
            v: (self.z3.Real if v.type.family is Family.DECIMAL else self.z3.Int)(v.name)
            for v in residual.external
        }
        self.across = [p for p in residual.predicates if not p.variables <= residual.variables]

    def largest(self, group: _Rows) -> int:
        """The largest total weight of things that one assignment satisfies together."""
        z3 = self.z3
        optimiser = z3.Optimize()
        optimiser.set("timeout", max(1, int(self.seconds * 1000)))
        kept = []
        for weight, rows in group.values():
            soft = z3.Or([self._row(row) for row in rows])
            kept.append(z3.If(soft, weight, 0))
        goal = optimiser.maximize(z3.Sum(kept))
        if optimiser.check() != z3.sat:
            raise EngineFailed(
                "the solver reached its limit",
                code="solver_limit",
                hint="the data owner can raise the limit or switch the solver off for this query",
            )
        return int(optimiser.upper(goal).as_long())

    def _row(self, row: Mapping[Variable, object]) -> z3.BoolRef:
        return self.z3.And([self._holds(p, row)[0] for p in self.across])

    def _holds(self, predicate: object, row: Mapping[Variable, object]) -> tuple[Any, Any]:
        """Whether the predicate is true, and whether it is false, once the row is put in."""
        if isinstance(predicate, Comparison):
            left, right = (
                self._constant(side.value)
                if isinstance(side, Constant)
                else self._variable(side, row)
                for side in (predicate.left, predicate.right)
            )
            return self._compare(exp.LT if predicate.strict else exp.LTE, left, right)
        assert isinstance(predicate, General)
        values = {f"v{i}": self._variable(v, row) for i, v in enumerate(predicate.arguments)}
        return self._truth(cast(exp.Expression, predicate.condition), values)

    def _variable(self, variable: Variable, row: Mapping[Variable, object]) -> Any:
        if variable in self.externals:
            return self.externals[variable]
        return self._constant(row[variable])

    def _constant(self, value: object) -> Any:
        """A number of the solver; NULL is None."""
        if value is None:
            return None
        if isinstance(value, date):
            return self.z3.IntVal((value - _EPOCH).days)
        if isinstance(value, Decimal):
            return self.z3.RealVal(str(value))
        return self.z3.IntVal(int(str(value)))

    def _truth(self, tree: exp.Expr, values: Mapping[str, Any]) -> tuple[Any, Any]:
        """SQL's three truth values as a pair: (is true, is false); neither means unknown."""
        z3 = self.z3
        if isinstance(tree, exp.Paren):
            return self._truth(tree.this, values)
        if isinstance(tree, exp.Boolean):
            return z3.BoolVal(bool(tree.this)), z3.BoolVal(not tree.this)
        if isinstance(tree, exp.Not):
            true, false = self._truth(tree.this, values)
            return false, true
        if isinstance(tree, exp.And | exp.Or):
            left, right = self._truth(tree.this, values), self._truth(tree.expression, values)
            if isinstance(tree, exp.And):
                return z3.And(left[0], right[0]), z3.Or(left[1], right[1])
            return z3.Or(left[0], right[0]), z3.And(left[1], right[1])
        if isinstance(tree, exp.In):
            value = self._value(tree.this, values)
            parts = [
                self._compare(exp.EQ, value, self._value(item, values)) for item in tree.expressions
            ]
            return z3.Or([p[0] for p in parts]), z3.And([p[1] for p in parts])
        left, right = self._value(tree.this, values), self._value(tree.args["expression"], values)
        return self._compare(type(tree), left, right)

    def _compare(self, kind: type[exp.Expr], left: Any, right: Any) -> tuple[Any, Any]:
        z3 = self.z3
        if left is None or right is None:
            return z3.BoolVal(False), z3.BoolVal(False)
        outcomes: dict[type[exp.Expr], Any] = {
            exp.LT: left < right,
            exp.LTE: left <= right,
            exp.GT: left > right,
            exp.GTE: left >= right,
            exp.EQ: left == right,
            exp.NEQ: left != right,
        }
        return outcomes[kind], z3.Not(outcomes[kind])

    def _value(self, tree: exp.Expr, values: Mapping[str, Any]) -> Any:
        """A number of the solver, or None where SQL has NULL."""
        z3 = self.z3
        if isinstance(tree, exp.Paren):
            return self._value(tree.this, values)
        if isinstance(tree, exp.Placeholder):
            return values[tree.name]
        if isinstance(tree, exp.Literal):
            return z3.IntVal(tree.name) if tree.is_int else z3.RealVal(tree.name)
        left = self._value(tree.this, values)
        if left is None:
            return None
        if isinstance(tree, exp.Neg):
            return -left
        if isinstance(tree, exp.Abs):
            return z3.If(left < 0, -left, left)
        if isinstance(tree, exp.Mod):
            # SQL's remainder has the sign of the dividend, the solver's is never negative.
            by = z3.IntVal(_positive(tree.expression))
            return z3.If(left < 0, -(-left % by), left % by)
        right = self._value(tree.args["expression"], values)
        if right is None:
            return None
        if isinstance(tree, exp.Add):
            return left + right
        return left - right if isinstance(tree, exp.Sub) else left * right


def load_solver() -> Any:
    """The module z3, or a UsageError that says how to install it."""
    try:
        import z3
    except ImportError:
        raise UsageError(
            "the solver is not installed", hint="pip install 'sqlrs[smt]', or switch it off"
        ) from None
    return z3
