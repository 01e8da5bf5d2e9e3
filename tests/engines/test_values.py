"""The model of values, and the oracles' own lists, against the engines' own comparisons."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise, product

import duckdb
import psycopg
import pytest
from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.engines.duckdb_catalog import duckdb_type
from sqlrs.engines.postgres_catalog import postgres_type
from sqlrs.sql.places import Scale, day_number, ranked
from sqlrs.values import INFINITE_DAY, values_of
from tests.planning.adapters import Direct
from tests.support.special import APART, LINES, Line, Special

BOTH = [(engine, line) for engine, lines in LINES.items() for line in lines]
every_line = pytest.mark.parametrize(("engine", "line"), BOTH, ids=lambda v: str(v))
_INSENSITIVE = (
    "CREATE COLLATION IF NOT EXISTS nocase "
    "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
)


@pytest.fixture(scope="module")
def engines(postgres: str) -> Iterator[dict[str, Direct]]:
    with duckdb.connect() as one, psycopg.connect(postgres, autocommit=True) as other:
        # 'a' < 'A' or the reverse: what the session says must not matter to a rank.
        one.execute("SET default_order = 'DESC'")
        other.execute("CREATE SCHEMA IF NOT EXISTS probing")
        other.execute("SET search_path = probing")
        other.execute(_INSENSITIVE)
        yield {"duckdb": Direct(one), "postgres": Direct(other)}
        other.execute("DROP SCHEMA probing CASCADE")


def filled(on: Direct, line: Line) -> list[Special]:
    """A table ``probe(i, v)`` of the line's values; i is the position in the list."""
    columns = (Column("i", ColumnType(Family.INTEGER, "integer")), Column("v", line.type))
    on.fill(Table("probe", columns), list(enumerate(line.values)))
    return list(line.values)


@every_line
def test_order_and_equality_are_those_of_the_list(
    engines: dict[str, Direct], engine: str, line: Line
) -> None:
    on = engines[engine]
    values = filled(on, line)
    found = on.run(
        "SELECT a.i, b.i, a.v < b.v, a.v <= b.v, a.v = b.v, a.v <> b.v FROM probe a, probe b"
    )
    expected = {
        (i, j, one < other, one <= other, one == other, one != other)
        for (i, one), (j, other) in product(enumerate(values), repeat=2)
    }
    assert set(found) == expected


@every_line
def test_every_way_to_group_and_sort_agrees(
    engines: dict[str, Direct], engine: str, line: Line
) -> None:
    """Groups, DISTINCT, UNION, windows and joins see the same values as equal."""
    on = engines[engine]
    values = filled(on, line)
    sizes = sorted(values.count(v) for v in set(values))
    assert sorted(n for (n,) in on.run("SELECT count(*) FROM probe GROUP BY v")) == sizes
    assert on.run("SELECT count(DISTINCT v) FROM probe") == [(len(sizes),)]
    assert on.run("SELECT count(*) FROM (SELECT DISTINCT v FROM probe) AS d") == [(len(sizes),)]
    union = "SELECT v FROM probe UNION SELECT v FROM probe"
    assert on.run(f"SELECT count(*) FROM ({union}) AS d") == [(len(sizes),)]
    assert on.run("SELECT count(*) FROM probe a JOIN probe b ON a.v = b.v") == [
        (sum(n * n for n in sizes),)
    ]
    rank = "SELECT i, DENSE_RANK() OVER (ORDER BY v ASC) FROM probe"
    order = sorted(set(values))
    assert dict(on.run(rank)) == {i: order.index(v) + 1 for i, v in enumerate(values)}
    running = "SELECT i, count(*) OVER (PARTITION BY v) FROM probe"
    assert dict(on.run(running)) == {i: values.count(v) for i, v in enumerate(values)}


@every_line
def test_the_model_says_what_the_list_says(engine: str, line: Line) -> None:
    model, written = values_of(line.type), {str(v).lower() for v in line.values}
    assert model.discrete == line.values[0].discrete
    assert model.infinite == bool(written & {"infinity", "inf"})
    assert model.nan == ("nan" in written)
    if any(line.values.count(v) > 1 for v in line.values):
        zones = line.type.family is Family.TIMESTAMP_TZ
        assert not model.one_form or zones or line.type.name.startswith("DECIMAL")


@every_line
def test_the_bounds_hold_and_nothing_lies_beyond(
    engines: dict[str, Direct], engine: str, line: Line
) -> None:
    model, on = values_of(line.type), engines[engine]
    if model.first is None or line.type.family is Family.DATE:
        return
    for bound, beyond in ((model.first, -1), (model.last, 1)):
        assert bound is not None
        filled(on, Line(line.type, (Special(str(bound), 0, True),)))
        with pytest.raises((duckdb.Error, psycopg.Error)):
            filled(on, Line(line.type, (Special(str(int(bound) + beyond), 0, True),)))


@pytest.mark.parametrize("engine", LINES)
def test_days_are_numbers_in_order_and_a_step_leads_to_another_day(
    engines: dict[str, Direct], engine: str
) -> None:
    on = engines[engine]
    (line,) = (each for each in LINES[engine] if each.type.family is Family.DATE)
    values = filled(on, line)
    statement = exp.select("i", day_number(exp.column("v"))).from_("probe")
    numbers = dict(on.rows(statement))
    days = [int(str(numbers[i])) for i in range(len(values))]
    for (one, day), (other, later) in product(zip(values, days, strict=True), repeat=2):
        assert (one < other) == (day < later)
        assert (other.place - one.place == 1) == (later - day == 1)
    assert (days[0], days[-1]) == (-INFINITE_DAY, INFINITE_DAY)
    model = values_of(line.type)
    assert model.first is not None and model.last is not None
    assert model.first <= days[1] < days[-2] <= model.last


def test_differences_of_infinite_dates_are_those_of_the_day_numbers(
    engines: dict[str, Direct],
) -> None:
    """The solver computes with these numbers; in PostgreSQL the engine has no such difference."""
    on, other = engines["duckdb"], engines["postgres"]
    for infinite, day in (("infinity", INFINITE_DAY), ("-infinity", -INFINITE_DAY)):
        difference = f"SELECT DATE '{infinite}' - DATE '2024-02-29'"
        assert on.run(difference) == [(day - 19_782,)]
        with pytest.raises(psycopg.Error):
            other.run(difference)


@pytest.mark.parametrize("line", APART, ids=str)
def test_texts_that_differ_can_be_equal_in_postgres(engines: dict[str, Direct], line: Line) -> None:
    on = engines["postgres"]
    values = filled(on, line)
    same = on.run("SELECT count(*) FROM probe a JOIN probe b ON a.v = b.v")
    assert same == [(sum(values.count(v) for v in values),)]
    ranks = dict(on.run("SELECT i, DENSE_RANK() OVER (ORDER BY v) FROM probe"))
    assert len(set(ranks.values())) == len(set(values))
    assert not values_of(line.type).one_form


def test_catalog_types_of_equal_texts_are_apart() -> None:
    assert values_of(duckdb_type("VARCHAR", "NOCASE")).collated
    assert not values_of(duckdb_type("VARCHAR")).collated
    for kind in (postgres_type("character"), postgres_type("text", deterministic=False)):
        assert not kind.ordered
        assert not values_of(kind).one_form
    assert values_of(postgres_type("character")).padded


def test_wide_numbers_are_ranked_with_their_gaps(engines: dict[str, Direct]) -> None:
    """Distances beyond the room count as the room; no difference overflows."""
    on = engines["duckdb"]
    (line,) = (each for each in LINES["duckdb"] if each.type.name == "HUGEINT")
    values = filled(on, line)
    rows = on.rows(ranked(exp.select(exp.alias_("v", "value")).from_("probe"), Scale.WIDE, 2))
    places = {str(value): int(str(place)) for value, place in rows}
    found = [places[str(v)] for v in values]
    expected: list[int | Fraction] = [3]
    for one, other in pairwise(values):
        expected.append(expected[-1] + min(other.place - one.place, 3))
    assert found == expected


def test_a_step_on_the_type_itself_leads_nowhere(engines: dict[str, Direct]) -> None:
    """A negative control: this is what the places are for."""
    for on in engines.values():
        assert on.run("SELECT DATE '-infinity' + 1 = DATE '-infinity'") == [(True,)]
