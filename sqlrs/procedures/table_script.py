"""A definition of a table -> the texts of its function. Names are quoted by psycopg alone."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from psycopg.sql import SQL, Composable, Identifier, Literal
from sqlglot import exp

from sqlrs.procedures.above_rows import AboveRows, types_of
from sqlrs.procedures.shown_columns import Shown
from sqlrs.procedures.smooth_terms import MOST_WORK, SmoothTerm
from sqlrs.procedures.table_definition import FactoredBound, TableDefinition
from sqlrs.templates import template
from sqlrs.units import ROW

_DIALECT = "postgres"
_LARGEST = 2**63 - 1


def table_parts(definition: TableDefinition) -> dict[str, Composable]:
    """What the template of a table needs beside what every function has."""
    first = 2 + len(definition.call.parameters)
    shown, above = definition.shown, definition.above
    shared = len(definition.bounds) * definition.moves
    return {
        "returns": SQL(", ").join(
            map(returned_column, shown) if above is None else map(_of_its_type, above.names)
        ),
        "columns": lines(f"  returned_{i} ALIAS FOR ${first + i};" for i, _ in enumerate(shown)),
        "groups": SQL(definition.groups.sql(dialect=_DIALECT, pretty=True)),
        "max_groups": Literal(definition.max_groups),
        "bound_values": SQL(", ").join(
            SQL("({})").format(SQL(one.sql(dialect=_DIALECT, pretty=True)))
            for one in definition.bound_values
        ),
        "check_work": SQL("").join(_check_work(definition)),
        "unit": Literal(ROW),
        "rows": SQL("measured"),
        "noisy": _vector_noise(definition)
        if any(map(definition.is_smooth, definition.bounds))
        else SQL(template("procedures/table_noise.sql")).format(
            bounds=SQL(", ").join(
                _bound(cast(tuple[FactoredBound, ...], one), shared) for one in definition.bounds
            ),
            noisy=SQL(", ").join(map(_noisy, range(len(definition.bounds)))),
        ),
        "journaled": SQL("jsonb_array_length(told_rows)"),
        "tell": SQL(""),
        "deliver": SQL(template("procedures/table_rows.sql")).format(
            outputs=lines(f"    returned_{i} := {shown_value(one)};" for i, one in enumerate(shown))
        )
        if above is None
        else _deliver(above, definition.keys),
    }


def _check_work(definition: TableDefinition) -> Iterable[Composable]:
    """Before the charge: whether the folds are quick enough."""
    for terms in definition.bounds:
        for term in terms:
            if isinstance(term, SmoothTerm):
                yield SQL(template("procedures/vector_check.sql")).format(
                    shared=Literal(len(definition.bounds)),
                    degrees=integers(term.programs.degrees),
                    once=Literal(term.once),
                    most=Literal(MOST_WORK),
                )


def _vector_noise(definition: TableDefinition) -> Composable:
    """The lines that draw the noise of each aggregate, for all groups together where it is one."""
    noises = []
    for terms in definition.bounds:
        if definition.is_smooth(terms):
            size = SQL("group_count::integer" if definition.grouped else "1")
            law = SQL(
                "sqlrs.lomax({} * total, total_places, ratio, own_epsilon, group_count::integer)"
                if definition.grouped
                else "sqlrs.noise({} * total, total_places, ratio, 5)"
            ).format(Literal(definition.moves))
            lines_ = [_term_lines(term) for term in terms if isinstance(term, SmoothTerm)]
            text = SQL(template("procedures/vector_smooth.sql")).format(
                size=size, terms=SQL("").join(lines_), noise=law
            )
        else:
            # The price of one aggregate is a part of epsilon: the bound is as many times larger.
            shared = len(definition.bounds) * definition.moves
            bound = _bound(cast(tuple[FactoredBound, ...], terms), shared)
            text = SQL(
                "      noises := noises || ARRAY(SELECT sqlrs.laplace(asked, {}) "
                "FROM generate_series(1, group_count::integer));\n"
            ).format(bound)
        noises.append(text)
    noisy = (
        f"(told.value -> 1 ->> {place})::numeric "
        f"+ noises[({place} * group_count + told.place)::integer]"
        for place, _ in enumerate(definition.bounds)
    )
    return SQL(template("procedures/vector_noise.sql")).format(
        shared=Literal(len(definition.bounds)),
        noises=SQL("").join(noises),
        noisy=SQL(", ".join(noisy)),
    )


def _term_lines(term: SmoothTerm) -> Composable:
    programs = term.programs
    return SQL(template("procedures/vector_term.sql")).format(
        factor=Literal(term.factor),
        steps=integers(programs.steps),
        starts=integers(programs.starts),
        answers=integers(programs.answers),
        monomials=integers(programs.monomials),
        ceilings=integers(programs.ceilings),
        degrees=integers(programs.degrees),
        values=SQL(", ").join(
            SQL(" * ".join(f"bound_values[{place}]" for place in places) or "1")
            for places in term.values
        ),
    )


def integers(numbers: Iterable[int]) -> Composable:
    """An array of whole numbers."""
    return SQL("ARRAY[{}]::integer[]").format(SQL(", ").join(map(Literal, numbers)))


def _deliver(above: AboveRows, keys: exp.Select | None) -> Composable:
    """The released rows as a relation in their own types, and what stands above it."""
    columns = []
    for name, one in above.columns:
        if one.is_key:
            columns.append(f"'(told.value -> 0 ->> {one.place})::' || key_types[{one.place + 1}]")
        else:
            value = f"(told.value -> 1 ->> {one.place})::numeric"
            if one.counts:
                # Noise has no end, and a number beyond it is none that anybody counted.
                value = f"greatest(least({value}, {_LARGEST}), -{_LARGEST})::bigint"
            else:
                value = f"{value} * {one.unit:f}"
            columns.append(f"'{value}'")
        columns[-1] += f" || ' AS {name}'"
    return SQL(template("procedures/table_above.sql")).format(
        types=SQL(types_of(keys).sql(dialect=_DIALECT, pretty=True)),
        columns=SQL("\n    || ', ' || ".join(columns)),
        above=SQL(above.query.sql(dialect=_DIALECT, pretty=True)),
    )


def _of_its_type(name: str) -> Composable:
    return SQL("{} sqlrs.key_types.{}%TYPE").format(Identifier(name), Identifier(name))


def returned_column(one: Shown) -> Composable:
    """A column with its type."""
    kind = SQL("sqlrs.key_types.{}%TYPE").format(Identifier(f"k{one.place}"))
    return SQL("{} {}").format(Identifier(one.name), kind if one.is_key else SQL("numeric"))


def shown_value(one: Shown) -> str:
    """The text of a key, which takes on the column's type, or a number times its unit."""
    if one.unit is None:
        return f"one -> 0 ->> {one.place}"
    return f"(one -> 1 ->> {one.place})::numeric * {one.unit:f}"


def _noisy(place: int) -> Composable:
    return SQL(
        f"(told.value -> 1 ->> {place})::numeric + sqlrs.laplace(asked, bounds[{place + 1}])"
    )


def _bound(terms: Iterable[FactoredBound], shared: int) -> Composable:
    return SQL("{} * ({})").format(Literal(shared), SQL(" + ").join(map(_term, terms)))


def _term(term: FactoredBound) -> Composable:
    if not term.values:
        return Literal(term.constant)
    products = SQL(", ").join(
        SQL(" * ".join(f"bound_values[{place}]" for place in places) or "1")
        for places in term.values
    )
    program = SQL("ARRAY[{}]::integer[]").format(SQL(", ").join(map(Literal, term.program)))
    return SQL("{} + {} * (sqlrs.grow({}, 1, {}, ARRAY[{}]::numeric[] || 0::numeric))[{}]").format(
        Literal(term.constant),
        Literal(term.factor),
        program,
        Literal(len(term.program)),
        products,
        Literal(len(term.values) + 1),
    )


def lines(texts: Iterable[str]) -> Composable:
    """Some lines of a function, made of names of our own."""
    return SQL("\n".join(texts))
