"""Residuals of one join are read from its groups: the same numbers, with any keys and data."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sqlglot import exp

import sqlrs
from sqlrs.engines.base import integers
from sqlrs.engines.duckdb import DuckDBSnapshot
from sqlrs.measuring import sampling as reading
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.noise import PolyLaplace
from sqlrs.planning import leading as leading_planning
from sqlrs.planning.plan import Plain, SemiJoins
from sqlrs.planning.rolling_up import Joined, RolledUp, read_together
from sqlrs.planning.witnesses import witnessed
from sqlrs.query import Comparison, Constant, Filter, Inequality, Query, Variable
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.rolled_up import rolled_up_statement
from sqlrs.sql.write import statement_of
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct, Lasting
from tests.planning.strategies import NUMBERS, TABLES, Case, cases, queries, rows_of, tables
from tests.planning.test_witnesses import witnessed_cases
from tests.support.builders import INTEGER, atom, query, table
from tests.support.examples import examples
from tests.support.special import LINES, Line


def plan_of(residual: Residual) -> Joined:
    found = witnessed(residual)
    return Plain(residual) if found is None else SemiJoins(residual, found)


def together(plans: list[Joined]) -> list[RolledUp]:
    """As if every residual had few groups, and no better plan alone."""
    return read_together(plans, [False] * len(plans), lambda plan: True)


def compare(plans: list[Joined], snapshot: Direct) -> None:
    """Each value is the one by the definition, and none is read twice."""
    found = together(plans)
    event(f"read together: {max((len(one.plans) for one in found), default=0)}")
    seen = [plan for several in found for plan in several.plans]
    assert len(seen) == len({id(plan) for plan in seen})
    for several in found:
        statement = rolled_up_statement(several, snapshot.dialect)
        values = integers(snapshot.rows(statement))
        plain = [Plain(plan.residual) for plan in several.plans]
        assert values == [snapshot.scalar(statement_of(p, snapshot.dialect)) for p in plain]


def check(case: Case, snapshot: Direct, data: st.DataObject) -> None:
    """The residual by several boundaries, as if other tables were left out."""
    whole = case.residual
    if whole.external:
        return
    names = sorted(whole.variables)
    some: st.SearchStrategy[set[Variable]] = (
        st.sets(st.sampled_from(names)) if names else st.just(set())
    )
    boundaries = {whole.boundary, frozenset(), *map(frozenset, data.draw(st.lists(some)))}
    plans = [plan_of(replace(whole, boundary=one)) for one in boundaries]
    for one in {a.table.name: a.table for a in whole.atoms}.values():
        snapshot.fill(one, case.rows[one.name])
    compare(plans, snapshot)


def terms_of(of: Query) -> list[Query]:
    """The query without one of its tables, and without what is said of that table alone."""
    found = []
    for left_out in of.atoms if len(of.atoms) > 1 else ():
        atoms = tuple(one for one in of.atoms if one is not left_out)
        held = frozenset[Variable]().union(*(one.variables for one in atoms))
        found.append(
            Query(
                atoms,
                frozenset(p for p in of.inequalities if p.variables <= held),
                frozenset(p for p in of.comparisons if p.variables <= held),
                tuple(p for p in of.generals if p.variables <= held),
                None if of.distinct is None else of.distinct & held or None,
            )
        )
    return found


def check_query(
    of: Query, rows: dict[str, list[tuple[object, ...]]], snapshot: Direct, data: st.DataObject
) -> None:
    """All residuals of a query, which begin with each other, some by another boundary.

    Lookups that are left out can leave any boundary. Often those of another query too, which lacks
    a table of this one, as the terms of a signed sum do.
    """
    parts = []
    for term in (of, data.draw(st.sampled_from([None, *terms_of(of)]))):
        if term is not None:
            residuals = Residuals(term)
            parts += [*residuals.undecided(residuals.required), residuals.of(term.everything)]
    for one in {a.table.name: a.table for a in of.atoms}.values():
        snapshot.fill(one, rows[one.name])
    drawn: list[Joined] = []
    for part in parts:
        if not part.external:
            names = sorted(part.variables)
            if data.draw(st.booleans()) and names:
                other = frozenset(data.draw(st.sets(st.sampled_from(names))))
                part = replace(part, boundary=other)
            drawn.append(plan_of(part))
    compare(drawn, snapshot)


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(60))
@given(data=st.data())
def test_the_same_values(
    on_duckdb: Direct, on_postgres: Direct, engine: str, data: st.DataObject
) -> None:
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    check(data.draw(cases() | witnessed_cases()), snapshot, data)


@st.composite
def joined_by_keys(draw: st.DrawFn, line: Line = NUMBERS) -> Query:
    """Tables of which most lead to the next one by its key."""
    bag, wide, keyed = (one for one in tables(line) if one.name in ("bag", "wide", "keyed"))
    names = [draw(st.sampled_from("abcd")) for _ in range(8)]
    atoms = [atom(bag, names[0], names[1])]
    if not line.values:
        first = Variable(names[0], NUMBERS.type)
        atoms.append(replace(atom(wide, "a", names[2], names[3]), alias="wide1"))
        atoms.append(replace(atom(wide, "b", names[4], names[5]), alias="wide2"))
        assert first in atoms[0].variables
    atoms.append(replace(atom(keyed, names[6], names[7]), alias="keyed1"))
    inequalities, comparisons = frozenset[Inequality](), frozenset[Comparison]()
    held = sorted(frozenset[Variable]().union(*(one.variables for one in atoms)))
    if len(held) > 1 and draw(st.booleans()):
        x, y = draw(st.permutations(held))[:2]
        if draw(st.booleans()):
            inequalities = frozenset({Inequality.between(x, y)})
        else:
            comparisons = frozenset({Comparison(x, y, draw(st.booleans()))})
    return Query(tuple(atoms), inequalities, comparisons)


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(80))
@given(data=st.data())
def test_residuals_that_begin_with_each_other(
    on_duckdb: Direct, on_postgres: Direct, engine: str, data: st.DataObject
) -> None:
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    of = data.draw(joined_by_keys() | queries())
    check_query(of, {one.name: data.draw(rows_of(one)) for one in TABLES}, snapshot, data)


SPECIAL = [(engine, line) for engine, lines in LINES.items() for line in lines]


@pytest.mark.parametrize(("engine", "line"), SPECIAL, ids=lambda v: str(v))
@settings(max_examples=examples(6))
@given(data=st.data())
def test_special_values(
    on_duckdb: Direct, on_postgres: Direct, engine: str, line: Line, data: st.DataObject
) -> None:
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    some = cases(most_atoms=3, line=line) | witnessed_cases(most_atoms=3, line=line)
    check(data.draw(some), snapshot, data)
    of = data.draw(queries(3, line))
    check_query(
        of, {one.name: data.draw(rows_of(one, line)) for one in tables(line)}, snapshot, data
    )


PERSON = table("person", "id", "city", "age", keys=["id"], nullable="city age")
VISIT = table("visit", "person", "at")


def test_what_is_no_finer_is_read_apart(on_duckdb: Direct) -> None:
    """Of a by (x, y), by (x) and by (z) the first two go together; another join never does."""
    residuals = Residuals(query(atom(PERSON, "p", "c", "a"), atom(VISIT, "p", "t")))
    whole = residuals.of(residuals.query.everything)
    p, c, a = (next(v for v in whole.variables if v.name == name) for name in "pca")
    plans = [Plain(replace(whole, boundary=frozenset(b))) for b in ([p], [c, a], [c], [])]
    alone = Plain(residuals.of(frozenset({0})))
    (found,) = together([*plans, alone])
    assert found.plans[0].residual.boundary == {c, a}
    assert {plan.residual.boundary for plan in found.plans} == {
        frozenset(b) for b in ([c, a], [c], [])
    }
    assert together([plans[0], alone]) == []
    on_duckdb.fill(PERSON, [(1, 1, None), (2, 1, None), (3, 1, 5), (4, None, 5)])
    on_duckdb.fill(VISIT, [(1, 0), (1, 1), (2, 0), (3, 0), (4, 0), (4, 1)])
    values = integers(on_duckdb.rows(rolled_up_statement(found, "duckdb")))
    assert values == [3, 4, 6]
    finest_alone = RolledUp((found.plans[0],) * 3, (None,) * 3)
    assert integers(on_duckdb.rows(rolled_up_statement(finest_alone, "duckdb"))) == [3, 3, 3]


def two_terms(*, guarded: bool) -> tuple[Plain, Plain]:
    """Persons by their city, and those of a visit's person; ``guarded``: the city is no NULL."""
    persons = query(atom(PERSON, "p", "c", "a"))
    both = query(atom(PERSON, "p", "c", "a"), atom(VISIT, "p", "t"))
    c = next(v for v in both.variables(both.everything) if v.name == "c")
    if guarded:
        tests = frozenset({Comparison(c, Constant(9, INTEGER), False)})
        both = replace(both, comparisons=tests)
    keyed = replace(VISIT, keys=frozenset({frozenset({"person"})}))
    both = replace(both, atoms=(both.atoms[0], replace(both.atoms[1], table=keyed)))
    part = Residuals(persons).of(persons.everything)
    p = next(v for v in part.variables if v.name == "p")
    return (
        Plain(replace(part, boundary=frozenset({p, c}))),
        Plain(replace(Residuals(both).of(both.everything), boundary=frozenset({c}))),
    )


def test_terms_of_two_queries_begin_with_each_other(on_duckdb: Direct) -> None:
    """Where the larger one reads a column without NULL of which the smaller keeps the NULLs, not.

    The statement would have another number: the largest city is that of nobody.
    """
    rows = [(p, None if p < 5 else 7, None) for p in range(8)]
    on_duckdb.fill(PERSON, rows)
    on_duckdb.fill(VISIT, [(p, 0) for p in range(8)])
    smaller, larger = two_terms(guarded=False)
    (found,) = together([larger, smaller])
    assert found.plans == (smaller, larger) and found.parents == (None, 0)
    assert integers(on_duckdb.rows(rolled_up_statement(found, "duckdb"))) == [1, 5]
    smaller, larger = two_terms(guarded=True)
    assert together([larger, smaller]) == []
    never = replace(larger.residual, comparisons=frozenset())
    forced = RolledUp((smaller, Plain(never)), (None, 0))
    wrong, right = (
        rolled_up_statement(forced, "duckdb"),
        statement_of(Plain(never), "duckdb"),
    )
    assert integers(on_duckdb.rows(wrong)) == [1, 5]
    assert on_duckdb.scalar(right) == 3


def test_what_is_evaluated_anyway_is_read_from() -> None:
    """What has a better plan alone is counted for others only if its groups are few."""
    residuals = Residuals(query(atom(PERSON, "p", "c", "a"), atom(VISIT, "p", "t")))
    whole = residuals.of(residuals.query.everything)
    p, c, a = (next(v for v in whole.variables if v.name == name) for name in "pca")
    fine, middle, coarse = (
        Plain(replace(whole, boundary=frozenset(b))) for b in ([p, c, a], [c, a], [c])
    )
    plans: list[Joined] = [fine, middle, coarse]

    def parents(alone: list[bool], few: list[Plain], many: bool = True) -> dict[int, int]:
        found = read_together(plans, alone, lambda plan: plan in few, many=many)
        return {
            plans.index(plan): plans.index(several.plans[parent])
            for several in found
            for plan, parent in zip(several.plans, several.parents, strict=True)
            if parent is not None
        }

    assert parents([False, False, False], []) == {1: 0, 2: 1}
    assert parents([True, False, False], []) == {2: 1}
    assert parents([True, False, False], [fine]) == {1: 0, 2: 1}
    assert parents([True, True, False], []) == {}
    assert parents([True, True, False], [middle]) == {2: 1}
    assert parents([True, True, False], [fine, middle]) == {1: 0, 2: 1}
    assert parents([True, True, True], [fine, middle, coarse]) == {}
    assert parents([False, True, True], [fine]) == {1: 0, 2: 0}
    assert parents([False, True, True], []) == {}
    assert parents([False, False, False], [], many=False) == {}
    assert parents([False, False, False], [middle], many=False) == {2: 1}


PART = table("part", "id", "number", keys=["id"])
LINE = table("line", "id", "part", "orders", keys=["id"])
ORDERS = table("orders", "id", "customer", keys=["id"])
CUSTOMER = table("customer", "id", "age", keys=["id"])


def lines(most: int) -> list[Residual]:
    """Lines of some parts by their order, and with their orders by the customer."""
    test = exp.LT(this=exp.column("number"), expression=exp.Literal.number(most))
    some = replace(atom(PART, "p"), filters=(Filter(test, frozenset({"number"})),))
    others = (atom(LINE, "l", "p", "o"), atom(ORDERS, "o", "c"), atom(CUSTOMER, "c"))
    residuals = Residuals(query(some, *others))
    return [residuals.of(frozenset(members)) for members in ({0, 1}, {0, 1, 2})]


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@pytest.mark.parametrize(("most", "begins"), [(1, True), (19, False)])
def test_groups_that_turned_out_to_be_few_are_begun_with(
    on_duckdb: Direct,
    on_postgres: Direct,
    engine: str,
    most: int,
    begins: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How many groups a condition leaves shows in the first answer; later ones begin with few."""
    # Columns are read, and say that most lines have an order of their own.
    monkeypatch.setattr(reading, "_SMALL", 0)
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    rng = random.Random(most)
    snapshot.fill(PART, [(p, p % 20) for p in range(40)])
    snapshot.fill(CUSTOMER, [(c, c) for c in range(30)])
    snapshot.fill(ORDERS, [(o, rng.randrange(30)) for o in range(200)])
    rows = [(i, rng.randrange(40), rng.randrange(200)) for i in range(400)]
    snapshot.fill(LINE, rows)
    parts = lines(most)
    expected = [snapshot.scalar(statement_of(Plain(one), snapshot.dialect)) for one in parts]
    source, kept = Lasting(snapshot, {}), Kept()
    batches = []
    for _ in range(3):
        with source.snapshot() as now:
            evaluator = Evaluator(now, parts[0].query, snapshot.dialect, kept=kept)
            found = [(batch.residuals, batch.run()) for batch in evaluator.together(parts)]
        values = {
            one.members: value
            for several, own in found
            for one, value in zip(several, own, strict=True)
        }
        assert [values[one.members] for one in parts] == expected
        batches.append(len(found))
    assert batches == ([2, 1, 1] if begins else [2, 2, 2])


@pytest.fixture
def small_tables_matter(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What is kept is kept, and an answer is the count and what its noise is drawn for."""
    monkeypatch.setattr(reading, "_SMALL", 0)
    monkeypatch.setattr(reading, "_PATIENCE", 0.0)
    monkeypatch.setattr(leading_planning, "_WORTH_KEEPING", 0)
    told = 10**9

    def told_noise(self: PolyLaplace, sensitivity: Fraction, bits: object) -> int:
        return told * int(sensitivity * 1000)

    monkeypatch.setattr(PolyLaplace, "sample", told_noise)
    yield


TEXTS = [
    "SELECT count(*) FROM person, town WHERE person.town = town.id"
    " AND EXISTS (SELECT 1 FROM visit WHERE visit.person = person.id)"
    " AND NOT EXISTS (SELECT 1 FROM buy WHERE buy.person = person.id) AND age < {}",
    "SELECT count(*) FROM visit, person WHERE visit.person = person.id AND age < {} AND NOT EXISTS"
    " (SELECT 1 FROM town WHERE town.id = person.town AND size > 2)",
    "SELECT count(*) FROM visit, person, town WHERE visit.person = person.id"
    " AND person.town = town.id AND visit.shop < {}",
    "SELECT count(*) FROM person LEFT JOIN town ON person.town = town.id WHERE age < {}",
    "SELECT count(DISTINCT person.id) FROM person, visit, town WHERE person.town = town.id"
    " AND visit.person = person.id AND age < {}",
]


@pytest.mark.usefixtures("small_tables_matter")
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("text", TEXTS)
def test_every_answer_is_the_one_by_the_definition(tmp_path: Path, text: str, seed: int) -> None:
    rng = random.Random(seed)
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        for name, columns, rows in (
            ("town", "id INT NOT NULL, size INT", [(t, rng.randrange(5)) for t in range(4)]),
            (
                "person",
                "id INT NOT NULL, town INT NOT NULL, age INT",
                [(p, rng.randrange(4), rng.choice([1, 2, 3, None])) for p in range(30)],
            ),
            (
                "visit",
                "id INT NOT NULL, person INT NOT NULL, shop INT",
                [(v, v if v < 30 * (seed % 2) else rng.randrange(30), v % 7) for v in range(90)],
            ),
            ("buy", "person INT NOT NULL", [(rng.randrange(30),) for _ in range(40)]),
        ):
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    sql = text.format(rng.randrange(2, 5))
    keys = {"person": ["id"], "town": ["id"], "visit": ["id"]}
    found = []
    for plan in ("plain", "auto"):
        with sqlrs.connect(f"duckdb:///{path}", keys=keys) as database:
            database.settings = replace(database.settings, plan=plan)
            found.append([database.count(sql, f"1.0{turn}").value for turn in range(6)])
    assert found[0] == found[1]


@pytest.mark.usefixtures("small_tables_matter")
def test_one_statement_has_all_that_is_read_of_one_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Persons who came and never bought: one statement counts both terms, in all and by town."""
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE town AS SELECT range AS id FROM range(4)")
        connection.execute(
            "CREATE TABLE person AS SELECT range AS id, range % 4 AS town FROM range(40)"
        )
        connection.execute("CREATE TABLE visit AS SELECT range % 30 AS person FROM range(90)")
        connection.execute("CREATE TABLE buy AS SELECT range % 40 AS person FROM range(80)")
        for name, column in (("town", "id"), ("person", "id"), ("person", "town")):
            connection.execute(f"ALTER TABLE {name} ALTER {column} SET NOT NULL")
        for name in ("visit", "buy"):
            connection.execute(f"ALTER TABLE {name} ALTER person SET NOT NULL")
    run, read = DuckDBSnapshot.run, list[str]()

    def heard(self: DuckDBSnapshot, sql: str, *more: object) -> object:
        read.append(sql)
        return run(self, sql, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(DuckDBSnapshot, "run", heard)
    sql = (
        "SELECT count(*) FROM person, town WHERE person.town = town.id"
        " AND EXISTS (SELECT 1 FROM visit WHERE visit.person = person.id)"
        " AND NOT EXISTS (SELECT 1 FROM buy WHERE buy.person = person.id)"
    )
    keys = {"person": ["id"], "town": ["id"]}
    with sqlrs.connect(f"duckdb:///{path}", keys=keys) as database:
        for turn in range(5):
            read.clear()
            database.count(sql, f"1.0{turn}")
    (only,) = [one for one in read if "SELECT" in one]
    # Every person bought something, and not every one came.
    assert "buy" not in only and "visit" in only
