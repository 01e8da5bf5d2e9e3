"""A statement with groups or sums -> all that one installed function is made of, or a refusal.

The function returns a table of keys and noisy numbers. It is made where the query fixes its own
sensitivity, so that one law, the discrete Laplace, serves all groups: docs/proofs/vector.md.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiled import CompiledStatement
from sqlrs.compiler.function_parameters import has_parameter, parameter_types
from sqlrs.compiler.functions import is_declared
from sqlrs.dialects import dialect_named
from sqlrs.effort import bounded_analysis
from sqlrs.errors import UsageError
from sqlrs.ledger.base import Kind, check_name
from sqlrs.measures import Aggregation, Measure
from sqlrs.mechanisms.vector_base import Summand
from sqlrs.mechanisms.vector_constant import FixedBound
from sqlrs.procedures.calls import Call
from sqlrs.procedures.definition import SMALLEST, check_function_name, plain_statement
from sqlrs.procedures.facts import Keys, facts_of
from sqlrs.procedures.programs import Program, last_program
from sqlrs.procedures.table_measure import key_columns, measured_rows, number_of_groups
from sqlrs.query import Query
from sqlrs.refusals import refusal
from sqlrs.sensitivity.constant import constant_sensitivity
from sqlrs.sensitivity.signed import all_constant
from sqlrs.sensitivity.steps import compile_recursion
from sqlrs.sensitivity.weighted import counted, largest_weight, needs_sums
from sqlrs.settings import STRICT, Settings

_ELSEWHERE = "sqlrs query, the Python library and the proxy answer it"
_COLUMN = re.compile(r"([ka])(\d+)", re.ASCII)
_OWN_NAME = re.compile(r"epsilon|p\d+", re.ASCII)
_CLAUSES = ("where", "group", "having", "order", "limit", "offset", "distinct", "joins", "with_")
# Numbers of this many decimals are exact in PostgreSQL.
_MOST_DECIMALS = 12


@dataclass(frozen=True)
class Shown:
    """One returned column: a key by its number, or a measure by its number and unit."""

    name: str
    place: int
    unit: Decimal | None = None

    @property
    def is_key(self) -> bool:
        """Whether it is a key."""
        return self.unit is None


@dataclass(frozen=True)
class FactoredBound:
    """``factor`` times the last value of a program over the named public values, plus a constant.

    Each of ``values`` is the product of the public values at its places, from 1 on.
    """

    constant: int
    factor: int = 0
    program: Program = ()
    values: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class TableDefinition:
    """One statement as a function: its public parts, and what the function runs."""

    name: str
    sql: str
    dataset: str
    repeats: bool
    canonical: str
    tables: tuple[Table, ...]
    facts: str
    call: Call
    shown: tuple[Shown, ...]
    keys: exp.Select | None
    groups: exp.Select
    max_groups: int
    measure: exp.Select
    public: tuple[exp.Expr, ...]
    bounds: tuple[tuple[FactoredBound, ...], ...]
    moves: int
    shape = 0
    least_epsilon = SMALLEST

    @property
    def mechanism(self) -> str:
        """The noise, in words that do not depend on the epsilon of a call."""
        shared = f", epsilon shared by {len(self.bounds)}" if len(self.bounds) > 1 else ""
        twice = ", twice the sensitivity" if self.moves > 1 else ""
        return f"laplace noise{twice}{shared}"

    @classmethod
    def of(
        cls,
        sql: str,
        catalog: Catalog,
        *,
        name: str,
        dataset: str = "data",
        repeats: bool = True,
        settings: Settings | None = None,
        declared_keys: Keys | None = None,
        parameters: Sequence[str] = (),
    ) -> TableDefinition:
        """Compile a statement for installation, or refuse it; as ``Definition.of``."""
        check_function_name(name)
        check_name(Kind.DATASET, dataset)
        if not dialect_named(catalog.dialect).holds_functions:
            raise UsageError("functions are installed into PostgreSQL", hint="--db postgresql://…")
        settings = settings or Settings()
        types = parameter_types(parameters)
        compiled = CompiledStatement.of(sql, catalog, settings, types)
        aggregation = _only_one(compiled)
        shown = _shown(compiled.statement.above, aggregation)
        summands = [compiled.asked[asked] for asked in aggregation.asked]
        _check(compiled.queries, summands)
        if has_parameter(_beside_conditions(aggregation, compiled.queries)):
            raise refusal(
                "parameter",
                "a parameter of a function stands in conditions, not in keys or sums",
            )
        tables = _tables(compiled, catalog)
        public: list[exp.Expr] = []
        with bounded_analysis():
            bounds = tuple(
                tuple(_bound(one, public, settings.plan) for one in terms if one.private)
                for terms in summands
            )
            measure = measured_rows(aggregation, compiled.asked, settings.plan)
        return cls(
            name=name,
            sql=sql,
            dataset=dataset,
            repeats=repeats,
            canonical=compiled.canonical,
            tables=tables,
            facts=facts_of(sql, catalog, tables, declared_keys or {}),
            # Of which types the keys are only PostgreSQL knows.
            call=Call(types, tuple((s.name, "unknown" if s.is_key else "numeric") for s in shown)),
            shown=shown,
            keys=key_columns(aggregation),
            groups=number_of_groups(aggregation),
            max_groups=settings.max_groups,
            measure=measure,
            public=tuple(public),
            bounds=bounds,
            moves=2 if aggregation.domains and settings.neighbours == STRICT else 1,
        )


def _only_one(compiled: CompiledStatement) -> Aggregation:
    statement = compiled.statement
    if not statement.aggregations:
        raise _public()
    if len(statement.aggregations) != 1 or statement.public:
        raise _more_than_columns()
    return statement.aggregations[0]


def _shown(above: exp.Query, aggregation: Aggregation) -> tuple[Shown, ...]:
    """The columns that the statement selects; what it does with them is refused."""
    if not isinstance(above, exp.Select) or any(above.args.get(c) for c in _CLAUSES):
        raise _more_than_columns()
    shown = []
    for output in above.expressions:
        column = output.unalias()
        found = _COLUMN.fullmatch(column.name) if isinstance(column, exp.Column) else None
        if found is None:
            raise _more_than_columns()
        place = int(found[2])
        if found[1] == "k":
            shown.append(Shown(output.output_name, place))
        else:
            measure = aggregation.columns[place]
            unit = _unit(aggregation.measures[measure])
            shown.append(Shown(output.output_name, measure, unit))
    names = [one.name for one in shown]
    if len(set(names)) != len(names) or any(map(_OWN_NAME.fullmatch, names)) or not all(names):
        raise UsageError(
            "the columns of a function have names of their own",
            hint="give each another alias, not epsilon and not p1, p2, …",
        )
    return tuple(shown)


def _public() -> UsageError:
    return UsageError(
        "an aggregate reads public tables alone: it is exact and needs no function",
        hint="grant SELECT on these tables, or declare the private ones",
    )


def _more_than_columns() -> Exception:
    return refusal(
        "unsupported",
        "a function returns the keys and the aggregates of one GROUP BY as they are",
        hint="HAVING, ORDER BY, LIMIT, averages and arithmetic are done outside, on what it "
        f"returns; or {_ELSEWHERE}",
    )


def _unit(measure: Measure) -> Decimal:
    scaled = measure.unit * 10**_MOST_DECIMALS
    if scaled.denominator != 1:
        raise refusal("unsupported", "the sum has no unit of 12 decimals", hint=_ELSEWHERE)
    return Decimal(scaled.numerator).scaleb(-_MOST_DECIMALS).normalize()


def _check(queries: Sequence[Query], measures: Sequence[tuple[Summand, ...]]) -> None:
    """Refuse what a function cannot protect, or has no noise for."""
    if units := sorted({unit for query in queries for unit in query.large_units}):
        raise UsageError(
            f"a function inside the database protects single rows, not {', '.join(units)}",
            hint=_ELSEWHERE,
        )
    calls = {n for query in queries for t in _trees(query) for n in t.walk() if is_declared(n)}
    if calls:
        used = ", ".join(sorted({str(call.this).lower() for call in calls}))
        raise UsageError(f"a function inside the database does not call {used}", hint=_ELSEWHERE)
    for query in queries:
        _check_types(query)
    for terms in measures:
        private = [one for one in terms if one.private]
        if not private:
            raise _public()
        with bounded_analysis():
            constant = all_constant(one.residuals for one in private)
        if not constant:
            raise refusal(
                "unsupported",
                "how much one row can change depends on the data, and a function has noise for "
                "groups and sums only where the query alone fixes it",
                hint=f"{_ELSEWHERE}; or join only along keys of the other tables",
            )


def _trees(query: Query) -> Iterator[exp.Expr]:
    """Every condition and computed column."""
    for atom in query.atoms:
        yield from (cast(exp.Expr, one.condition) for one in atom.filters)
        yield from (cast(exp.Expr, c.computed) for c in atom.table.columns if c.computed)
    yield from (cast(exp.Expr, one.condition) for one in query.generals)


def _beside_conditions(aggregation: Aggregation, queries: Sequence[Query]) -> Iterator[object]:
    yield from (domain.select for domain in aggregation.domains)
    for query in queries:
        for atom in query.atoms:
            yield from (c.computed for c in atom.table.columns if c.computed)


def _check_types(query: Query) -> None:
    """As for a count: no operator from elsewhere is trusted."""
    for atom in query.atoms:
        table = atom.table
        used = {name for name, _ in atom.terms} | {c for f in atom.filters for c in f.columns}
        for name in list(used):
            computed = table.column(name).computed
            if isinstance(computed, exp.Expr):
                used |= {column.name for column in computed.find_all(exp.Column)}
        for name in used:
            if "." in table.column(name).type.name:
                raise refusal(
                    "unsupported",
                    f"column {table.label}.{name} is not of a type of PostgreSQL's own",
                    hint=f"a function trusts no operator from elsewhere; {_ELSEWHERE}",
                )


def _tables(compiled: CompiledStatement, catalog: Catalog) -> tuple[Table, ...]:
    """The tables as the catalog has them, without columns that were computed."""
    read = {table.identity for table in compiled.tables(catalog)}
    return tuple(table for table in catalog.tables if table.identity in read)


def _bound(summand: Summand, public: list[exp.Expr], plan: str) -> FactoredBound:
    """|c| L of one term, from public values that are measured with the numbers."""
    fixed = FixedBound.of(summand)
    worth = abs(summand.signed.coefficient)
    if not fixed.wanted:
        return FactoredBound(worth * constant_sensitivity(summand.residuals, {}))
    query = summand.residuals.query
    if needs_sums(query):
        raise refusal("unsupported", "the sum is weighed over public tables", hint=_ELSEWHERE)
    residuals = counted(summand.residuals)
    values = []
    for members in fixed.wanted:
        places = []
        for part in residuals.parts(members):
            if not part.decided:
                public.append(plain_statement(part, plan))
                places.append(len(public))
        values.append(tuple(places))
    program = last_program(compile_recursion(residuals))
    return FactoredBound(0, worth * largest_weight(query), program, tuple(values))
