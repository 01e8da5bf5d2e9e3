"""General predicates across a boundary: the largest set of rows that one assignment satisfies.

For each value of the boundary, a solver (z3, the extra ``smt``) finds values of the external
variables that satisfy as many rows as possible: MaxSMT with one soft clause for each row. What the
solver understands is decided from the predicate and the columns' types alone; reaching its limit
raises, it never changes the formula. docs/proofs/general.md has the argument.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, cast

from sqlglot import exp

from sqlrs.catalog import Family
from sqlrs.engines.base import integers
from sqlrs.errors import EngineFailed, UsageError
from sqlrs.measuring.solvable import positive
from sqlrs.planning.external_plans import Solved
from sqlrs.query import Comparison, Constant, General, Variable
from sqlrs.residuals.residual import Residual
from sqlrs.sql.external_variables import Names
from sqlrs.sql.places import constant_number

if TYPE_CHECKING:
    import z3


def solve(plan: Solved, rows: Iterable[Sequence[object]]) -> int:
    """The largest count over all groups. Groups too small to win are not solved."""
    groups = _groups(plan.residual, rows)
    best = 0
    for group in sorted(groups, key=_weight, reverse=True):
        if _weight(group) <= best:
            break
        best = max(best, _Group(plan.residual, plan.seconds).largest(group))
    return best


# A group maps each counted thing (an output, or a row) to its weight and the rows that have it.
_Rows = dict[int, tuple[int, list[dict[Variable, object]]]]


def _groups(residual: Residual, rows: Iterable[Sequence[object]]) -> list[_Rows]:
    """The fetched rows by boundary value."""
    compared = [v for v, _ in Names.of(residual).compared]
    groups: dict[int, _Rows] = {}
    for position, (results, boundary, output, *numbers) in enumerate(rows):
        values = dict(zip(compared, numbers, strict=True))
        group = groups.setdefault(int(str(boundary)), {})
        if residual.output is None:
            [weight] = integers([(results,)])
            group[position] = (weight, [values])
        else:
            group.setdefault(int(str(output)), (1, []))[1].append(values)
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
        exact = constant_number(value)
        if isinstance(exact, Decimal):
            return self.z3.RealVal(str(Fraction(exact)))
        return self.z3.IntVal(exact)

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
        if isinstance(tree, exp.Paren | exp.Cast):
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
            by = z3.IntVal(positive(tree.expression))
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
