"""What is kept of rows that stay as they are changes no number, and is never kept of others."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

import sqlrs
from sqlrs.dialects import dialect_named
from sqlrs.measures import Signed
from sqlrs.measuring import sampling as reading
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.measuring.measure import measure
from sqlrs.measuring.measurements import Measurements
from sqlrs.measuring.work import Values
from sqlrs.planning import leading as leading_planning
from sqlrs.planning.choose import choose
from sqlrs.planning.leading import leaders_of_whole_tables
from sqlrs.planning.limits import of_whole_tables
from sqlrs.planning.plan import ByKeptGroups, KeptGroups, table_names
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.planning.total_lookups import Inclusion, inclusions, without_total_lookups
from sqlrs.query import Filter
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sensitivity.refined import reached
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.leading_groups import groups_statement
from sqlrs.sql.repetitions import unmatched
from sqlrs.sql.write import statement_of
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct, Lasting
from tests.planning.owned_cases import OwnedCase, random_measure, seen
from tests.planning.strategies import TABLES, Case, cases, queries, rows_of
from tests.support.builders import atom, query, table
from tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("all_is_kept")


def plain_value(residual: Residual, snapshot: Direct) -> int:
    return Evaluator(snapshot, residual.query, snapshot.dialect, "plain")(residual).value


def fill(case: Case, snapshot: Direct) -> None:
    for one in {a.table.name: a.table for a in case.residual.query.atoms}.values():
        snapshot.fill(one, case.rows[one.name])


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(60))
@given(case=cases())
def test_lookups_that_every_row_finds_change_no_value(
    on_duckdb: Direct, on_postgres: Direct, engine: str, case: Case
) -> None:
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    fill(case, snapshot)

    def holds(inclusion: Inclusion) -> bool:
        return snapshot.scalar(unmatched(inclusion)) == 0

    if not case.residual.external:
        smaller = without_total_lookups(case.residual, holds)
        assert plain_value(smaller, snapshot) == plain_value(case.residual, snapshot)


PERSON = table("person", "id", "city", keys=["id"], nullable="city")
TOWN = table("town", "id", keys=["id"])
VISIT = table("visit", "person", "at", nullable="person")
VISITS = Residuals(query(atom(VISIT, "p", "t"), atom(PERSON, "p", "c"), atom(TOWN, "c")))
BOTH = VISITS.of(frozenset({0, 1}))
"""Visits and persons by the town, which is the boundary and stays."""


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
def test_what_is_looked_at(on_duckdb: Direct, on_postgres: Direct, engine: str) -> None:
    """A NULL refers to nothing; a row whose town is NULL is none where towns are joined."""
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    whole = replace(BOTH, boundary=frozenset())
    (found,) = inclusions(whole, 1)
    assert found.columns == (("person", "id"),) and found.filled == {"city"}
    for persons, visits, missing in (
        ([(1, 5), (2, 5)], [(1, 0), (1, 1), (2, 0)], 0),
        ([(1, 5)], [(1, 0), (None, 1)], 0),
        ([(1, 5)], [(1, 0), (2, 1)], 1),
        ([(1, 5), (2, None)], [(1, 0), (2, 1), (2, 2)], 2),
        ([], [(1, 0)], 1),
        ([(1, 5)], [], 0),
    ):
        snapshot.fill(PERSON, persons)
        snapshot.fill(VISIT, visits)
        assert snapshot.scalar(unmatched(found)) == missing
        alone = without_total_lookups(whole, lambda inclusion: True)
        assert alone.members == {0}
        value = plain_value(whole, snapshot)
        assert plain_value(alone, snapshot) == value + missing


def test_what_a_lookup_is_needed_for() -> None:
    """A lookup that holds the boundary, is compared, filtered or weighed is never left out."""
    assert not [*inclusions(BOTH, 1)]
    assert not [*inclusions(BOTH, 0)]
    whole = VISITS.of(VISITS.query.everything)
    assert [one.other for one in inclusions(whole, 2)] == [TOWN]
    assert not [*inclusions(whole, 1)]
    bounded = replace(TOWN, max_rows=2, owners=())
    assert not bounded.bounded
    always = without_total_lookups(whole, lambda inclusion: True)
    assert always.members == {0}


BUY = table("buy", "person", "shop", nullable="shop")


def test_of_distinct_outputs_it_is_enough_that_there_is_a_row(on_duckdb: Direct) -> None:
    """Who bought something, twice too; of rows, or with the shop in the output, it is not."""
    both = query(atom(PERSON, "p", "c"), atom(BUY, "p", "s"))
    p, s = (next(v for v in both.variables(both.everything) if v.name == name) for name in "ps")
    bought = Residuals(replace(both, distinct=frozenset({p}))).of(both.everything)
    (found,) = inclusions(bought, 1)
    assert found.other == BUY and found.columns == (("id", "person"),)
    for wanted in (None, frozenset({p, s})):
        assert not [*inclusions(Residuals(replace(both, distinct=wanted)).of(both.everything), 1)]
    on_duckdb.fill(PERSON, [(1, 5), (2, None), (3, 5)])
    for buys, missing in (
        ([(1, 0), (1, 1), (2, None), (3, 0)], 0),
        ([(1, 0), (1, 1), (3, 0)], 1),
    ):
        on_duckdb.fill(BUY, buys)
        assert on_duckdb.scalar(unmatched(found)) == missing
        alone = replace(bought, members=frozenset({0}))
        assert plain_value(alone, on_duckdb) == plain_value(bought, on_duckdb) + missing


@settings(max_examples=examples(60))
@given(case=cases(), most=st.sampled_from([1, 2, 10**6]), data=st.data())
def test_groups_of_whole_tables_are_enough_or_say_so(
    on_duckdb: Direct, case: Case, most: int, data: st.DataObject
) -> None:
    residual = case.residual
    if residual.external or residual.generals:
        return
    found = leaders_of_whole_tables(
        Problem.of(residual), case.statistics or Statistics(), table_names(residual)
    )
    if found is None:
        return
    fill(case, on_duckdb)
    found = replace(found, most=most)
    dialect = dialect_named("duckdb")
    rows = on_duckdb.rows(groups_statement(found, StatementBuilder(dialect)))
    expected = plain_value(residual, on_duckdb)
    if not rows:
        assert expected == 0
        return
    keys, counts = tuple(row[:-1] for row in rows), tuple(row[-1] for row in rows)
    groups = KeptGroups(keys, counts, counts[-1] if len(rows) >= most else 0)
    assert expected <= groups.most
    telling = data.draw(st.sets(st.sampled_from(sorted(residual.boundary)), min_size=1))
    for how in ("plain", "factorised"):
        otherwise = choose(residual, case.statistics, how=how)
        plan = ByKeptGroups(residual, found, groups, frozenset(telling), otherwise)
        value = on_duckdb.scalar(statement_of(plan, "duckdb"))
        assert value <= expected
        assert value == expected or value < groups.least


def linear(values: Values) -> Fraction:
    """A fold that every value moves, so that all of them are needed."""
    ordered = sorted(values.items(), key=lambda one: sorted(one[0]))
    return Fraction(sum(n * i for i, (_, n) in enumerate(ordered, 1)))


@settings(max_examples=examples(40))
@given(data=st.data())
def test_every_answer_on_the_same_rows_measures_the_same(
    on_duckdb: Direct, data: st.DataObject
) -> None:
    """What the first answers read, later ones find; with few groups they are often not enough."""
    texts = [Residuals(data.draw(queries(3))) for _ in range(2)]
    for one in TABLES:
        on_duckdb.fill(one, data.draw(rows_of(one)))
    source = Lasting(on_duckdb, {})
    kept = [Kept(), Kept()]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leading_planning, "LEADING", data.draw(st.sampled_from([1, 3, 1000])))
        for turn in (0, 0, 1, 0, 1, 1):
            residuals = texts[turn]
            wanted = (*residuals.required, *reached(residuals))
            expected = measure(source, residuals, wanted, plan="plain")
            for fold in (None, linear):
                found = Measurements(source, kept=kept[turn]).enough(residuals, wanted, fold)
                assert found.count == expected.count
                assert linear(found.values) == linear(expected.values)


def below(name: str, most: int) -> Filter:
    """A column is less than a number."""
    test = exp.LT(this=exp.column(name), expression=exp.Literal.number(most))
    return Filter(test, frozenset({name}))


ORDERS = table("orders", "id", "customer", keys=["id"])
LINE = table("line", "orders", "part", "number")
CUSTOMER = table("customer", "id", keys=["id"])
LINES = Residuals(query(atom(LINE, "o", "p", "n"), atom(ORDERS, "o", "c"), atom(CUSTOMER, "c")))


def fill_orders(snapshot: Direct) -> None:
    snapshot.fill(CUSTOMER, [(c,) for c in range(4)])
    snapshot.fill(ORDERS, [(o, o % 4) for o in range(12)])
    snapshot.fill(LINE, [(o, p, o + p) for o in range(12) for p in range(o % 5)])


def test_groups_are_read_once_as_much_was_spent() -> None:
    """A release alone never pays; those before it must have spent what reading costs."""
    spent = reading._Spent("first")
    assert spent.add("first", 3.0) is None
    assert spent.add("first", 2.0) is None
    assert spent.add("second", 4.0) == 5.0
    assert spent.add("third", 1.0) == 9.0
    assert spent.add("third", 1.0) == 9.0


def measured(source: Lasting, kept: Kept | None) -> dict[Members, int]:
    """The count and all values, by the definition where nothing may be kept."""
    wanted = LINES.required
    if kept is None:
        found = measure(source, LINES, wanted, plan="plain")
    else:
        found = Measurements(source, kept=kept).enough(LINES, wanted, None)
    return {**found.values, LINES.query.everything: found.count}


def test_a_later_answer_reads_the_tables_that_matter_alone(on_duckdb: Direct) -> None:
    """Wished by the first, read by the second, used from then on; never of rows that may change."""
    fill_orders(on_duckdb)
    source, kept = Lasting(on_duckdb, {}), Kept()
    expected = measured(source, None)
    seen = []
    for _ in range(4):
        source.read.clear()
        assert measured(source, kept) == expected
        seen.append([statement.sql("duckdb") for statement in source.read])
    checks = [[sql for sql in sqls if "NOT EXISTS" in sql] for sqls in seen]
    assert [bool(one) for one in checks] == [False, True, False, False]
    assert len(seen[3]) < len(seen[0])
    # Of the count one table is left: every line has an order, every order a customer.
    assert not [sql for sql in seen[3] if "JOIN" in sql]
    changing = Lasting(on_duckdb, None)
    for _ in range(3):
        assert measured(changing, Kept()) == expected
    on_duckdb.run("DELETE FROM customer WHERE id = 2")
    fewer = measured(changing, None)
    assert fewer != expected
    assert measured(changing, Kept()) == fewer


@pytest.mark.parametrize("most", [1, 3])
def test_filters_of_groups_that_lead(
    on_duckdb: Direct, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the groups that lead without the filter are not enough, all of them are counted."""
    monkeypatch.setattr(leading_planning, "LEADING", most)
    rng = random.Random(most)
    line = atom(LINE, "o", "p", "n")
    part = table("part", "id", keys=["id"])
    tried: Counter[bool] = Counter()
    for drawn in range(12):
        filtered = replace(line, filters=(below("number", drawn % 6),))
        residuals = Residuals(query(filtered, atom(ORDERS, "o", "c"), atom(part, "p")))
        on_duckdb.fill(ORDERS, [(o, o % 7) for o in range(14)])
        on_duckdb.fill(part, [(p,) for p in range(9)])
        rows = [(rng.randrange(14), rng.randrange(9), rng.randrange(9)) for _ in range(120)]
        on_duckdb.fill(LINE, rows)
        on_duckdb.fill(CUSTOMER, [(c,) for c in range(7)])
        whole = replace(residuals.query, atoms=(*residuals.query.atoms, atom(CUSTOMER, "c")))
        by_two = Residuals(whole).of(frozenset({0, 1}))
        assert len(by_two.boundary) == 2
        source, kept = Lasting(on_duckdb, {}), Kept()
        for _ in range(4):
            with source.snapshot() as snapshot:
                evaluator = Evaluator(snapshot, whole, "duckdb", kept=kept)
                found = evaluator(by_two)
                assert found.value == plain_value(by_two, on_duckdb)
            tried[isinstance(found.plan, ByKeptGroups)] += 1
    assert tried[True] and tried[False]


def test_what_is_kept_of_rows_that_changed_would_be_wrong(on_duckdb: Direct) -> None:
    """The test above has a say: with what is known of other rows the values are others."""
    fill_orders(on_duckdb)
    source, kept = Lasting(on_duckdb, {}), Kept()
    for _ in range(3):
        before = measured(source, kept)
    on_duckdb.run("DELETE FROM customer WHERE id = 2")
    assert measured(source, kept) == before
    assert measured(source, None) != before


def test_forms_without_end_are_not_all_kept(
    on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks for more has the same numbers, and what was kept first makes room or stays."""
    most = 3
    monkeypatch.setattr(reading, "_MOST_FORMS", most)
    fill_orders(on_duckdb)
    source, kept = Lasting(on_duckdb, {}), Kept()
    expected = measured(source, None)
    with source.snapshot() as snapshot:
        sampled = reading.SampledTables()
        sampled.of(snapshot, LINES.query)
        for number in range(2 * most):
            sampled.learn_value(snapshot, ("form", number), number)
            sampled.learn(snapshot, (LINE.identity, frozenset({f"c{number}"})), number)
            asked = sampled.worth(snapshot, ("form", number), exp.select("1"))
            # Wished for by this very release, or one wish too many.
            assert not asked
        assert sampled.values(snapshot) == {("form", n): n for n in range(most)}
        assert [*sampled.frequencies(snapshot).values()] == [*range(most, 2 * most)]
    with source.snapshot() as later:
        others = reading.SampledTables()
        others.of(later, LINES.query)
        wished = [others.worth(later, ("form", n), exp.select("1")) for n in range(2 * most)]
        assert wished == [True] * most + [False] * most
    for _ in range(4):
        assert measured(source, kept) == expected
    assert isinstance(source.learned, dict)
    held = source.learned["statistics"]
    assert max(len(getattr(held, name)) for name in ("values", "wished", "frequencies")) == most


def test_of_another_snapshot_nothing_is_believed_or_learned(on_duckdb: Direct) -> None:
    """Its rows may be others: what was read belongs to the snapshot that was asked last."""
    fill_orders(on_duckdb)
    read, other = Lasting(on_duckdb, None), Lasting(on_duckdb, {})
    sampled = reading.SampledTables()
    sampled.of(read, LINES.query)
    (inclusion, *_) = inclusions(LINES.of(LINES.query.everything), 2)
    columns = (LINE.identity, frozenset({"part"}))
    sampled.learn(read, columns, 7)
    sampled.learn_value(read, "form", 7)
    assert sampled.frequencies(read)[columns] == sampled.values(read)["form"] == 7
    assert not sampled.frequencies(other) and not sampled.values(other)
    sampled.learn(other, columns, 1)
    sampled.learn_value(other, "form", 1)
    assert sampled.frequencies(read)[columns] == sampled.values(read)["form"] == 7
    # Wished for twice, by two releases, it would be read; of another snapshot it is not.
    sampled.worth(other, inclusion.key, unmatched(inclusion))
    sampled._release = object()
    assert sampled.holds(other, inclusion) is None
    # Of rows that may change nothing is ever worth a look for later.
    for _ in range(2):
        assert not sampled.worth(read, "what", exp.select("1"))
        sampled._release = object()


def test_values_of_whole_tables_are_told_apart() -> None:
    """By tables, columns, boundary and conditions; a query's own constants are never kept."""
    by_customer = LINES.of(frozenset({0, 1}))
    assert of_whole_tables(by_customer) is not None
    other = Residuals(query(atom(LINE, "o", "p", "n"), atom(ORDERS, "o", "c"), atom(CUSTOMER, "o")))
    assert of_whole_tables(other.of(frozenset({0, 1}))) != of_whole_tables(by_customer)
    assert of_whole_tables(LINES.of(LINES.query.everything)) is None
    narrower = replace(by_customer, boundary=frozenset())
    wider = replace(by_customer, boundary=by_customer.variables)
    found = {of_whole_tables(one) for one in (by_customer, narrower, wider)}
    assert len(found) == 3 and None in found
    distinct = replace(LINES.query, distinct=by_customer.boundary)
    assert of_whole_tables(replace(by_customer, query=distinct)) not in found
    filtered = replace(LINES.query.atoms[0], filters=(below("number", 5),))
    thinned = replace(LINES.query, atoms=(filtered, *LINES.query.atoms[1:]))
    assert of_whole_tables(replace(by_customer, query=thinned)) is None


@settings(max_examples=examples(60))
@given(st.integers(0, 2**32), st.booleans())
def test_what_units_contribute_is_the_same_without_lookups(
    on_duckdb: Direct, seed: int, whole: bool
) -> None:
    """``whole``: every reference finds its row, so that lookups are left out."""
    case = random_measure(random.Random(seed))
    case.fill(on_duckdb)
    grid = (1, 2, 4, 7)
    lasting = Lasting(on_duckdb, {})
    if whole:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reading.SampledTables, "worth", lambda *_: True)
            _contributes_as_defined(case, lasting, grid)
    else:
        # The first release wishes, the second looks, the third knows.
        for _ in range(3):
            _contributes_as_defined(case, lasting, grid)


def _contributes_as_defined(case: OwnedCase, lasting: Lasting, grid: tuple[int, ...]) -> None:
    parts = [(one, Residuals(one.query)) for one in case.terms]
    found = Measurements(lasting).contributions(parts, case.domains, grid)
    assert seen(found) == seen(case.contributions(grid))


def owned_visits(owner: str) -> tuple[Signed, Residuals]:
    found = query(atom(VISIT, "p", "t"), atom(PERSON, "p", "c"))
    known = {v.name: v for v in found.variables(found.everything)}
    return Signed(1, found, (), (known[owner],)), Residuals(found)


def test_visits_of_persons_are_counted_without_persons(on_duckdb: Direct) -> None:
    """An owner in the table that is looked up keeps it, and so does a visit without a person."""
    on_duckdb.fill(PERSON, [(1, 5), (2, 5), (3, None)])
    for visits, owner, left_out in (
        ([(1, 0), (1, 1), (2, 0), (None, 3)], "p", True),
        ([(1, 0), (1, 1), (2, 0), (9, 3)], "p", False),
        ([(1, 0), (1, 1), (2, 0), (None, 3)], "c", False),
    ):
        on_duckdb.fill(VISIT, visits)
        lasting, kept = Lasting(on_duckdb, {}), Kept()
        part = owned_visits(owner)
        for _ in range(3):
            lasting.read.clear()
            found = Measurements(lasting, kept=kept).contributions([part], (), (1, 2, 4))
            assert found.totals == {(): ((1, 2, 0, 0) if owner == "p" else (0, 0, 3, 0))}
        tables = {t.name for one in lasting.read for t in one.find_all(exp.Table)}
        assert ("person" not in tables) == left_out


@pytest.mark.parametrize("patience", [0.0, 1e12])
def test_groups_that_cost_too_much_are_not_read(on_duckdb: Direct, patience: float) -> None:
    """With endless patience no groups are read, and the value is the same."""
    fill_orders(on_duckdb)
    filtered = replace(atom(LINE, "o", "p", "n"), filters=(below("number", 9),))
    part = table("part", "id", keys=["id"])
    on_duckdb.fill(part, [(p,) for p in range(5)])
    whole = query(filtered, atom(ORDERS, "o", "c"), atom(part, "p"), atom(CUSTOMER, "c"))
    by_two = Residuals(whole).of(frozenset({0, 1}))
    learned: dict[str, object] = {}
    source, kept = Lasting(on_duckdb, learned), Kept()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_PATIENCE", patience)
        for _ in range(3):
            with source.snapshot() as snapshot:
                found = Evaluator(snapshot, whole, "duckdb", kept=kept)(by_two)
                assert found.value == plain_value(by_two, on_duckdb)
    (statistics,) = [one for one in learned.values() if isinstance(one, reading._Sampled)]
    assert bool(statistics.groups) is (patience == 0.0)


def test_a_lookup_that_holds_a_group_key_stays(tmp_path: Path) -> None:
    """Every visit finds its person, but the person alone knows the town to count by."""
    path = tmp_path / "visits.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE person (id INT PRIMARY KEY, town INT NOT NULL)")
        connection.execute("INSERT INTO person VALUES (1, 0), (2, 1), (3, 1)")
        connection.execute("CREATE TABLE visit (person INT NOT NULL)")
        connection.execute("INSERT INTO visit SELECT 1 + i % 3 FROM range(30) AS t(i)")
    sql = "SELECT town, count(*) FROM visit JOIN person ON person = id GROUP BY town"
    with sqlrs.connect(path, public=["person"], domains={"person.town": [0, 1]}) as database:
        for epsilon in (900, 899, 898):
            # With so little noise the numbers are the true ones.
            assert database.query(sql, epsilon=epsilon).rows == ((0, 10), (1, 20))
