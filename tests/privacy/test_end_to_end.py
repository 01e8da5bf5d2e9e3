"""The promise end to end: random SQL, random data, random neighbours, the real statements.

Everything between the analyst's text and the noise runs as in a release; `tests.privacy.pairs` says
what is compared. The negative controls show that a wrong rule anywhere is seen here.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.errors import QueryRefused
from sqlrs.planning.choose import choose
from sqlrs.query import Comparison, Variable
from sqlrs.residuals.residual import Members, Reading, Residual, Residuals
from sqlrs.sensitivity import steps
from sqlrs.sensitivity.feasible import RoleFamily, role_families
from sqlrs.settings import Settings
from sqlrs.sql.write import statement_of
from tests.privacy.pairs import Contents, Pipeline, World, neighbours
from tests.support.examples import examples
from tests.support.special import DAYS, DUCKDB, Line
from tests.support.strategies import ALL, databases, queries

INTEGER = ColumnType(Family.INTEGER, "INTEGER")
DECIMAL = ColumnType(Family.DECIMAL, "DECIMAL(18,3)")
VALUES = {
    "INTEGER": (-1, 0, 1, 2, 3),
    "VARCHAR": ("o", "p", "q", "qq"),
    "DATE": DAYS.values,
}
MOST_NEIGHBOURS = 6


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def table(name: str, columns: str, *keys: str, kind: ColumnType = INTEGER, **facts: Any) -> Table:
    """A table of columns with one letter each, all of one type; a key is a string of letters."""
    return Table(
        name,
        tuple(Column(c, kind, nullable=not any(c in key for key in keys)) for c in columns),
        frozenset(map(frozenset, keys)),
        **facts,
    )


def failures(
    world: World,
    pipeline: Pipeline,
    catalog: Catalog,
    contents: Contents,
    values: dict[str, tuple[Any, ...]],
    seed: int = 0,
    most: int = MOST_NEIGHBOURS,
    only: str | None = None,
) -> set[str]:
    """What fails between the database and some of its neighbours (in one table), both ways."""
    world.create(catalog)
    world.fill(contents)
    solving = pipeline.settings.solver
    here = pipeline.at(world, fresh=True)
    if pipeline.never:
        return set() if here.direct == 0 else {"count"}
    failed = set()
    query = pipeline.residuals.query
    used = {query.atoms[min(atoms)].table.identity for atoms in query.private_tables}
    tables = [t for t in catalog.tables if t.identity in used and only in (None, t.name)]
    for changed, other in neighbours(contents, tables, values, Random(seed), most):
        world.fill(other)
        there = pipeline.at(world, fresh=solving)
        failed.update(pipeline.compare(changed, here, there))
        failed.update(pipeline.compare(changed, there, here))
    return failed


def check_random(world: World, data: st.DataObject, plan: str, max_rows: int = 4) -> None:
    database = data.draw(databases(max_rows=max_rows))
    sql = data.draw(queries(database.catalog, ALL))
    most_external = data.draw(st.sampled_from([2, 0, 1]))
    pipeline = Pipeline(sql, database.catalog, Settings(plan=plan, max_external=most_external))
    contents = {identity: tuple(rows) for identity, rows in database.rows.items()}
    seed = data.draw(st.integers(0, 2**16))
    assert not failures(world, pipeline, database.catalog, contents, VALUES, seed)


@settings(max_examples=examples(40))
@given(data=st.data())
def test_random_queries_with_the_plain_plan(world: World, data: st.DataObject) -> None:
    check_random(world, data, "plain")


@settings(max_examples=examples(12))
@given(data=st.data())
def test_random_queries_with_the_plans_of_a_release(world: World, data: st.DataObject) -> None:
    check_random(world, data, "auto")


@pytest.mark.slow
@pytest.mark.parametrize("plan", ["plain", "auto"])
@settings(
    max_examples=3000, derandomize=False, suppress_health_check=list(HealthCheck), deadline=None
)
@given(data=st.data())
def test_many_random_queries(world: World, plan: str, data: st.DataObject) -> None:
    check_random(world, data, plan, max_rows=5)


# Types: each query compares and joins columns of one type only.

OF_EVERY_TYPE = (
    "SELECT count(*) FROM r x JOIN r y ON x.b = y.a WHERE x.a <> y.b",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a JOIN r z ON y.b = z.a AND z.b <> x.b",
    "SELECT count(*) FROM r x, s y WHERE x.a < y.a AND y.a < x.b",
    "SELECT count(*) FROM r x, r y, s z WHERE x.a = y.a AND x.b <= z.a AND z.a < y.b",
    "SELECT count(*) FROM r x, s y, s z WHERE x.a < y.a AND y.a <= z.b AND z.b < x.b",
    "SELECT count(*) FROM r x, s y WHERE x.a < y.a AND y.a < y.b AND y.b <= x.b",
    "SELECT count(*) FROM r x, s y, s z WHERE x.a < y.a AND x.b < y.a AND y.a <= z.a",
    "SELECT count(*) FROM r x, s y, s z WHERE y.a BETWEEN z.b AND z.b AND z.b <= x.a",
    "SELECT count(DISTINCT x.a) FROM r x, s y WHERE x.a < y.a AND y.a < x.b",
    "SELECT count(*) FROM (SELECT DISTINCT x.b, y.b AS c FROM r x JOIN s y ON x.a = y.a) AS d",
    "SELECT count(*) FROM r x, s y WHERE x.a <> y.a",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE (x.b < y.b OR x.b IS NULL)",
)


def check_type(world: World, line: Line, data: st.DataObject) -> None:
    kind, values = line.type, line.values
    keys = data.draw(st.sampled_from([(), ("ab",), ("a",)]))
    catalog = Catalog("duckdb", (table("r", "ab", *keys, kind=kind), table("s", "ab", kind=kind)))
    sql = data.draw(st.sampled_from(OF_EVERY_TYPE))
    contents = {t.identity: data.draw(rows_of(t, values)) for t in catalog.tables}
    plan = data.draw(st.sampled_from(["plain", "auto"]))
    pipeline = Pipeline(sql, catalog, Settings(plan=plan))
    assert not failures(world, pipeline, catalog, contents, {kind.name: values})


@pytest.mark.parametrize("line", DUCKDB, ids=str)
@settings(max_examples=examples(4))
@given(data=st.data())
def test_columns_of_every_type(world: World, line: Line, data: st.DataObject) -> None:
    check_type(world, line, data)


@pytest.mark.slow
@pytest.mark.parametrize("line", DUCKDB, ids=str)
@settings(max_examples=200, derandomize=False)
@given(data=st.data())
def test_many_columns_of_every_type(world: World, line: Line, data: st.DataObject) -> None:
    check_type(world, line, data)


# Two types of one family, joined and set against constants: the meaning must not depend on which
# of the two columns stands for the variable.

Values = tuple[Any, ...]
FAMILIES: dict[tuple[str, str], tuple[Family, Values, Values, Values]] = {
    ("TINYINT", "UBIGINT"): (Family.INTEGER, (-1, 0, 5), (0, 5, 2**63), ("0", "300", "-1")),
    ("BIGINT", "HUGEINT"): (
        Family.INTEGER,
        (2**53, 2**53 + 1),
        (2**53, 2**53 + 1, 10**30),
        ("9007199254740993",),
    ),
    ("DECIMAL(6,1)", "DECIMAL(20,3)"): (
        Family.DECIMAL,
        ("1.5", "2.0"),
        ("1.500", "1.505", "2.000"),
        ("1.505", "1.5", "1.55"),
    ),
}
OF_ONE_FAMILY = (
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE y.a <= {c}",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE x.a = {c}",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE y.a = {c}",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a JOIN r z ON z.b = y.b WHERE z.a > {c}",
    "SELECT count(*) FROM r x, s y WHERE x.a < y.a AND y.a <= x.b AND y.a > {c}",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE x.b + y.a > {c}",
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE y.a NOT IN ({c})",
)


@pytest.mark.parametrize("names", FAMILIES)
@settings(max_examples=examples(5))
@given(data=st.data())
def test_columns_of_one_family(world: World, names: tuple[str, str], data: st.DataObject) -> None:
    family, *values, constants = FAMILIES[names]
    tables = [
        table(name, "ab", kind=ColumnType(family, kind))
        for name, kind in zip("rs", names, strict=True)
    ]
    catalog = Catalog("duckdb", tuple(tables))
    sql = data.draw(st.sampled_from(OF_ONE_FAMILY)).format(c=data.draw(st.sampled_from(constants)))
    contents = {
        t.identity: data.draw(rows_of(t, own)) for t, own in zip(tables, values, strict=True)
    }
    domains = dict(zip(names, values, strict=True))
    try:
        pipeline = Pipeline(sql, catalog)
    except QueryRefused as error:
        # Arithmetic on a column that is not the widest of those it equals.
        assert error.code == "type_mismatch" and " + " in sql
        return
    assert not failures(world, pipeline, catalog, contents, domains)


def test_single_and_double_precision_are_no_family(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """x <= 0.1 is true of a single 0.1 and false of the double that equals it."""
    single, double = (ColumnType(Family.FLOAT, name) for name in ("FLOAT", "DOUBLE"))
    tables = (table("r", "a", kind=single), table("s", "a", kind=double))
    catalog = Catalog("duckdb", tables)
    sql = "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE y.a <= 0.1"
    with pytest.raises(QueryRefused):
        Pipeline(sql, catalog)
    monkeypatch.setattr("sqlrs.catalog._APART", frozenset({Family.OTHER}))
    contents: Contents = {(None, "r"): (), (None, "s"): ((0.10000000149011612,),)}
    values = {"FLOAT": (0.1,), "DOUBLE": (0.1,)}
    assert "local" in failures(world, Pipeline(sql, catalog), catalog, contents, values, most=99)


@st.composite
def rows_of(draw: Any, of: Table, values: Iterable[Any]) -> tuple[tuple[Any, ...], ...]:
    cells = [
        st.sampled_from([*values, None] if column.nullable else [*values]) for column in of.columns
    ]
    rows = draw(st.lists(st.tuples(*cells), max_size=4))
    kept: dict[Any, tuple[Any, ...]] = {}
    names = [c.name for c in of.columns]
    for i, row in enumerate(rows):
        keys = tuple(tuple(row[names.index(c)] for c in sorted(k)) for k in of.keys)
        kept.setdefault(keys or i, row)
    return tuple(kept.values())


# The solver.

SOLVED = (
    "SELECT count(*) FROM r x JOIN s y ON x.a = y.a WHERE x.b + y.b < 3",
    "SELECT count(*) FROM r x, s y WHERE x.a + y.a < x.b AND y.a > x.a",
    "SELECT count(*) FROM r x, r y WHERE x.a + 2 * y.a IN (1, 3) AND x.b <> y.b",
    "SELECT count(DISTINCT x.a) FROM r x, s y WHERE abs(x.b - y.a) <= 1 AND y.b % 2 = x.a % 2",
)


@settings(max_examples=examples(6))
@given(data=st.data())
def test_predicates_that_the_solver_reads(world: World, data: st.DataObject) -> None:
    pytest.importorskip("z3")
    catalog = Catalog("duckdb", (table("r", "ab"), table("s", "ab")))
    values = VALUES["INTEGER"]
    contents = {t.identity: data.draw(rows_of(t, values)) for t in catalog.tables}
    sql = data.draw(st.sampled_from(SOLVED))
    pipeline = Pipeline(sql, catalog, Settings(plan="plain", solver=True))
    assert pipeline.residuals.reading.solved
    seed = data.draw(st.integers(0, 99))
    assert not failures(world, pipeline, catalog, contents, VALUES, seed, most=3)


@pytest.mark.parametrize("line", DUCKDB, ids=str)
@settings(max_examples=examples(3))
@given(data=st.data())
def test_keys_of_every_type_beside_solved_predicates(
    world: World, line: Line, data: st.DataObject
) -> None:
    pytest.importorskip("z3")
    columns = (Column("k", line.type), Column("n", INTEGER))
    catalog = Catalog("duckdb", (Table("r", columns), Table("s", columns)))
    head = data.draw(st.sampled_from(["count(*)", "count(DISTINCT x.k)"]))
    sql = f"SELECT {head} FROM r x JOIN s y ON x.k = y.k WHERE x.n + y.n < 1000"
    pipeline = Pipeline(sql, catalog, Settings(plan="plain", solver=True))
    assert pipeline.residuals.reading.solved
    cells = st.tuples(st.sampled_from(line.values), st.sampled_from([0, 1, 2, None]))
    contents = {
        t.identity: tuple(data.draw(st.lists(cells, min_size=2, max_size=6)))
        for t in catalog.tables
    }
    values: dict[str, tuple[Any, ...]] = {line.type.name: line.values, "INTEGER": (0, 1, 999)}
    seed = data.draw(st.integers(0, 99))
    assert not failures(world, pipeline, catalog, contents, values, seed, most=3)


# What was once wrong.


DAY = DAYS.type
OUTSIDE = {
    "exists": "SELECT count(*) FROM a WHERE EXISTS (SELECT 1 FROM m WHERE a.x < m.z AND m.z < a.v)",
    "distinct": "SELECT count(DISTINCT a.i) FROM a, m WHERE a.x < m.z AND m.z < a.v",
    "chain": "SELECT count(*) FROM a, m WHERE a.x < m.z AND m.z < m.y AND m.y <= a.v",
}


@pytest.mark.parametrize("shape", OUTSIDE)
@pytest.mark.parametrize(
    ("low", "high"),
    [("-infinity", "2020-01-01"), ("2020-01-01", "infinity"), ("infinity", "infinity")],
)
def test_one_row_between_infinite_dates(world: World, shape: str, low: str, high: str) -> None:
    """-infinity + 1 = -infinity: the count went from 0 to 1000 by one row, with S = 1.839."""
    a = Table(
        "a",
        (Column("i", INTEGER, False), Column("x", DAY), Column("v", DAY)),
        frozenset({frozenset("i")}),
    )
    m = Table("m", (Column("z", DAY, False), Column("y", DAY, False)))
    catalog = Catalog("duckdb", (a, m))
    pipeline = Pipeline(OUTSIDE[shape], catalog)
    contents: Contents = {a.identity: tuple((i, low, high) for i in range(50)), m.identity: ()}
    days = ("2019-12-30", "2019-12-31", "2020-01-02", "2020-01-03", "infinity")
    values = {"DATE": days, "INTEGER": (0,)}
    assert not failures(world, pipeline, catalog, contents, values, most=60, only="m")


@pytest.mark.parametrize(
    ("kind", "general"),
    [
        (DECIMAL, "abs(s.a - w.a) < 1"),
        (DECIMAL, "concat(s.a, w.a) <> 'x'"),
        (ColumnType(Family.FLOAT, "DOUBLE"), "abs(s.a - w.a) < 1"),
    ],
)
def test_a_cycle_of_comparisons_is_no_error(world: World, kind: ColumnType, general: str) -> None:
    """The domain had no lower bound to start from where the cycle could not be merged."""
    catalog = Catalog("duckdb", (table("t", "a", kind=kind),))
    where = f"w.a BETWEEN y.a AND y.a AND y.a <= r.a AND {general}"
    sql = f"SELECT count(*) FROM t w, t y, t r, t s WHERE {where}"
    values = {kind.name: (0.0, 1.0)}
    contents: Contents = {(None, "t"): ((0.0,),)}
    assert not failures(world, Pipeline(sql, catalog), catalog, contents, values, most=3)


@pytest.mark.parametrize(
    ("condition", "max_external"),
    [("x.a <> y.a", 2), ("x.a + y.a <> 1", 2), ("x.a < y.a", 0)],
    ids=["inequality", "general", "relaxed comparison"],
)
def test_a_predicate_between_unjoined_tables_counts(
    world: World, condition: str, max_external: int
) -> None:
    catalog = Catalog("duckdb", (table("r", "a"),))
    sql = f"SELECT count(*) FROM r x, r y WHERE {condition}"
    pipeline = Pipeline(sql, catalog, Settings(plan="plain", max_external=max_external))
    contents: Contents = {(None, "r"): ((0,), (0,), (1,), (3,))}
    assert not failures(world, pipeline, catalog, contents, VALUES, most=50)


@pytest.mark.parametrize("plan", ["auto", "factorised", "pruned"])
def test_no_plan_groups_values_that_a_condition_tells_apart(world: World, plan: str) -> None:
    """0.0 and -0.0 are equal and 1 / x differs: of a group only one of them would be seen."""
    real = ColumnType(Family.FLOAT, "DOUBLE")
    r = Table("r", (Column("k", INTEGER), Column("f", real)))
    t = Table("t", (Column("n", INTEGER), Column("g", real)))
    catalog = Catalog("duckdb", (r, table("s", "km"), table("u", "mn"), t))
    sql = (
        "SELECT count(*) FROM r JOIN s ON r.k = s.k JOIN u ON s.m = u.m JOIN t ON u.n = t.n "
        "WHERE 1 / r.f > t.g"
    )
    world.create(catalog)
    pairs = ((0, 0),) * 2
    world.fill({s.identity: pairs for s in catalog.tables[1:3]} | {t.identity: ((0, 1.0),)})
    world.fill({r.identity: ((0, 0.0), (0, -0.0), (0, 0.0))})
    query = Pipeline(sql, catalog).residuals
    # Without statistics tables are taken for large ones, where grouping pays.
    chosen = choose(query.of(query.query.everything), None, how=plan)
    direct, counted = world.numbers([sql, statement_of(chosen, "duckdb").sql(dialect="duckdb")])
    assert counted == direct == 2 * 2 * 2


# Negative controls: each wrong rule is seen.


def test_a_count_without_a_predicate_is_seen(world: World) -> None:
    catalog = Catalog("duckdb", (table("r", "a"),))
    pipeline = Pipeline("SELECT count(*) FROM r x, r y WHERE x.a <> y.a", catalog)

    class Forgetful(Residuals):
        def of(self, members: Members) -> Residual:
            return replace(super().of(members), inequalities=frozenset())

    pipeline.residuals = Forgetful(pipeline.residuals.query)
    contents: Contents = {(None, "r"): ((0,), (1,))}
    assert "count" in failures(world, pipeline, catalog, contents, VALUES, most=50)


def test_a_bag_that_is_taken_for_a_set_is_seen(world: World) -> None:
    bag, keyed = (Catalog("duckdb", (t,)) for t in (table("r", "a"), table("r", "a", "a")))
    pipeline = Pipeline("SELECT count(*) FROM r x JOIN r y ON x.a = y.a", keyed)
    contents: Contents = {(None, "r"): ((0,), (0,), (0,))}
    assert "local" in failures(world, pipeline, bag, contents, VALUES, most=50)


def test_a_missing_role_set_is_seen(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = Catalog("duckdb", (table("r", "ab"),))

    def without_pairs(
        residual: Residual, candidates: Members, *more: object
    ) -> tuple[RoleFamily, ...]:
        families = role_families(residual, candidates)
        return tuple(frozenset(f for f in family if len(f) == 1) for family in families)

    sql = "SELECT count(*) FROM r x JOIN r y ON x.b = y.a"
    contents: Contents = {(None, "r"): ()}
    pipeline = Pipeline(sql, catalog)
    assert not failures(world, pipeline, catalog, contents, VALUES, most=50)
    monkeypatch.setattr(steps, "role_families", without_pairs)
    pipeline = Pipeline(sql, catalog)
    assert "local" in failures(world, pipeline, catalog, contents, VALUES, most=50)


BETWEEN = "SELECT count(*) FROM r JOIN s ON r.c = s.c, w WHERE s.a < w.z AND w.z < s.b"
"""The value of w.z is external to {s} and to {r, s}; a row of r shows one from the other."""
BETWEEN_TABLES = Catalog("duckdb", (table("r", "c"), table("s", "abc"), table("w", "z")))


class ExactOnlyAlone(Residuals):
    """Comparisons across the boundary count in single atoms and nowhere else."""

    def of(self, members: Members) -> Residual:
        reading = Reading(exact_comparisons=len(members) == 1)
        return Residuals(self.query, reading).of(members)


class DenseTogether(Residuals):
    """Integers are dense where several atoms are together: something lies between 0 and 1."""

    def of(self, members: Members) -> Residual:
        residual = super().of(members)
        if len(members) == 1:
            return residual
        return replace(residual, comparisons=frozenset(map(dense, residual.comparisons)))


def dense(comparison: Comparison) -> Comparison:
    """The comparison between numbers of a type without gaps."""
    sides = [
        Variable(side.name, DECIMAL) if isinstance(side, Variable) else replace(side, type=DECIMAL)
        for side in (comparison.left, comparison.right)
    ]
    return Comparison(sides[0], sides[1], comparison.strict)


@pytest.mark.parametrize(
    ("wrong", "intervals"),
    [(ExactOnlyAlone, ((0, 2, 0), (2, 4, 0))), (DenseTogether, ((0, 1, 0), (0, 2, 0)))],
)
def test_two_readings_in_one_query_are_seen(
    world: World, wrong: type[Residuals], intervals: tuple[tuple[int, ...], ...]
) -> None:
    contents: Contents = {(None, "r"): (), (None, "s"): intervals, (None, "w"): ()}
    values = {"INTEGER": (0,)}
    pipeline = Pipeline(BETWEEN, BETWEEN_TABLES)
    assert not failures(world, pipeline, BETWEEN_TABLES, contents, values, only="r")
    pipeline = Pipeline(BETWEEN, BETWEEN_TABLES)
    pipeline.residuals = wrong(pipeline.residuals.query)
    assert "step" in failures(world, pipeline, BETWEEN_TABLES, contents, values, only="r")


def test_values_of_two_databases_in_one_bound_are_seen(world: World) -> None:
    """A sensitivity of another database than the counted one is not smooth."""
    catalog = Catalog("duckdb", (table("r", "a"),))
    pipeline = Pipeline("SELECT count(*) FROM r x JOIN r y ON x.a = y.a", catalog)
    world.create(catalog)
    points = []
    for size in (0, 6):
        world.fill({(None, "r"): ((0,),) * size})
        points.append(pipeline.at(world))
    failed = pipeline.compare(catalog.tables[0], points[0], points[1])
    assert {"local", "smooth"} & set(failed + pipeline.compare(catalog.tables[0], *points[::-1]))
