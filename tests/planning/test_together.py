"""Several plans in one statement: each value as if it were alone, common steps once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.measuring import evaluate
from sqlrs.planning.choose import choose
from sqlrs.planning.inclusion_exclusion import Planner
from sqlrs.planning.leading import LEADING, leaders
from sqlrs.planning.plan import Factorised, Leading, Pruned, ResidualPlan, table_names
from sqlrs.planning.problem import Problem
from sqlrs.planning.prune import Pruning
from sqlrs.planning.sharing import that_share, with_shared_steps
from sqlrs.planning.table_statistics import Repetition, Statistics
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql import plain as emit
from sqlrs.sql.leading_groups import NOT_ENOUGH
from sqlrs.sql.together import Stepped, batches, together
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES, queries, rows_of, statistics
from tests.support.builders import EDGE, PATTERNS, atom, pattern, query, table
from tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("one_seed")


def check(data: st.DataObject, snapshot: Direct) -> None:
    residuals = Residuals(data.draw(queries()))
    for one in TABLES:
        snapshot.fill(one, data.draw(rows_of(one)))
    known = data.draw(st.one_of(st.none(), statistics()))
    wanted = [residuals.of(residuals.query.everything), *residuals.undecided(residuals.required)]
    plans: list[Stepped] = []
    for residual in wanted:
        how = data.draw(st.sampled_from(["auto", "factorised", "pruned", "leading"]))
        plan = choose(residual, known, how="factorised" if how == "leading" else how)
        if isinstance(plan, Factorised | Pruned):
            plans.append(leading(residual) if how == "leading" else plan)
    if plans:
        (row,) = snapshot.rows(together(plans, snapshot.dialect))
        assert list(row) == [snapshot.scalar(emit.plain(plan.residual)) for plan in plans]


@settings(max_examples=examples(30))
@given(st.data())
def test_on_duckdb(on_duckdb: Direct, data: st.DataObject) -> None:
    check(data, on_duckdb)


@settings(max_examples=examples(12))
@given(st.data())
def test_on_postgres(on_postgres: Direct, data: st.DataObject) -> None:
    check(data, on_postgres)


def test_values_come_side_by_side_without_a_join(on_duckdb: Direct) -> None:
    on_duckdb.fill(EDGE, [(1, 2), (2, 3), (2, 4), (3, 4)])
    plans = stepped(plans_of("ab bc cd"))
    statement = together(plans, "duckdb")
    assert "CROSS JOIN" not in statement.sql()
    (row,) = on_duckdb.rows(statement)
    assert list(row) == [on_duckdb.scalar(emit.plain(plan.residual)) for plan in plans]


def plans_of(text: str, how: str = "factorised") -> list[ResidualPlan]:
    residuals = Residuals(query(*(atom(EDGE, *p) for p in text.split())))
    wanted = [residuals.of(residuals.query.everything), *residuals.undecided(residuals.required)]
    return [choose(residual, how=how) for residual in wanted]


def stepped(plans: Iterable[ResidualPlan]) -> list[Stepped]:
    return [plan for plan in plans if isinstance(plan, Factorised | Pruned)]


def outer_names(statement: exp.Select) -> list[str]:
    return [cte.alias for cte in statement.args["with_"].expressions]


def test_a_step_of_several_plans_stands_once_before_them() -> None:
    statement = together(stepped(plans_of("ab bc cd de")), "duckdb")
    shared = [name for name in outer_names(statement) if name.startswith("shared_")]
    assert shared
    uses = [t for t in statement.find_all(exp.Table) if t.name in shared]
    assert len(uses) > len(shared)


def test_a_last_grouping_that_others_begin_with_is_read_from_them(on_duckdb: Direct) -> None:
    """Two triangles with a common corner: paths of two edges by their ends, once in a statement."""
    plans = stepped(plans_of("ab bc ca ad de ea"))
    pairs = next(p for p in plans if len(p.residual.members) == 2 and len(p.residual.boundary) == 2)
    beside = [
        p for p in plans if any(len(s.keep) == 2 and len(s.join.inputs) == 2 for s in p.steps)
    ]
    assert beside
    for other in beside:
        statement = together([pairs, other], "duckdb")
        value = next(c for c in statement.args["with_"].expressions if c.alias == "value_1")
        if outer_names(statement)[0].startswith("shared_"):
            read = {one.name for one in value.find_all(exp.Table)}
            assert read <= {name for name in outer_names(statement) if name.startswith("shared_")}
            break
    else:
        raise AssertionError("no plan shares its pairs")
    on_duckdb.fill(EDGE, [(a, b) for a in range(5) for b in range(5) if (a * b) % 3 != 1])
    for other in beside:
        (row,) = on_duckdb.rows(together([pairs, other], "duckdb"))
        assert list(row) == [on_duckdb.scalar(emit.plain(p.residual)) for p in (pairs, other)]


def test_without_common_steps_there_is_nothing_before_the_values() -> None:
    plans = stepped(plans_of("ab bc"))[:1]
    assert outer_names(together(plans, "duckdb")) == ["value_1"]


def test_a_grouping_of_one_table_is_read_by_all(on_duckdb: Direct) -> None:
    """The edges of a node are counted once for the paths and for the largest of them."""
    plans = stepped(plans_of("ab bc"))
    statement = together(plans, "duckdb")
    shared = [name for name in outer_names(statement) if name.startswith("shared_")]
    assert shared
    on_duckdb.fill(EDGE, [(a, b) for a in range(5) for b in range(5) if (a * b) % 3 != 1])
    (row,) = on_duckdb.rows(statement)
    assert list(row) == [on_duckdb.scalar(emit.plain(plan.residual)) for plan in plans]


def test_names_inside_hide_none_outside() -> None:
    """A table called like a shared step, or like a value, is still the table."""
    for name in ("value_1", "shared_edge1_edge2_per_a_c"):
        edge = replace(EDGE, name=name)
        residuals = Residuals(pattern(PATTERNS["square"], of=edge))
        wanted = [residuals.of(residuals.query.everything)]
        wanted += residuals.undecided(residuals.required)
        with duckdb.connect() as connection:
            snapshot = Direct(connection)
            snapshot.fill(edge, [(a, b) for a in range(5) for b in range(5) if a != b])
            plans = [choose(r, how="factorised") for r in wanted]
            (row,) = snapshot.rows(together(stepped(plans), "duckdb"))
            assert list(row) == [snapshot.scalar(emit.plain(r)) for r in wanted]


def test_plans_without_steps_run_alone() -> None:
    cheap, plain = plans_of("ab bc cd de"), plans_of("ab bc cd de", "plain")
    assert list(batches(cheap)) == [cheap]
    assert list(batches(plain)) == plain
    assert list(batches([cheap[0], plain[0], *cheap[1:]])) == [cheap[0], plain[0], cheap[1:]]
    assert list(batches([])) == []


def test_expensive_plans_run_alone() -> None:
    cheap = stepped(plans_of("ab bc cd de"))
    dear = [
        replace(p, total=replace(p.total, cost=1.5e8)) for p in cheap if isinstance(p, Factorised)
    ]
    assert list(batches(dear)) == dear
    assert list(batches([*cheap, *dear])) == [[*cheap, dear[0]], *dear[1:]]


def lookups(snapshot: Direct) -> tuple[list[Residual], list[int]]:
    """Two residuals that differ in a lookup, which takes the largest group away; their values."""
    fact = table("fact_rows", "p", "s")
    pair = table("pair_rows", "p", "s", keys=["p s"])
    part, supplier = table("part_rows", "p", keys=["p"]), table("supplier_rows", "s", keys=["s"])
    snapshot.fill(fact, [(1, 1)] * 3 + [(1, 2)] * 2 + [(2, 2)])
    snapshot.fill(pair, [(1, 2), (2, 2)])
    atoms = (atom(fact, "p", "s"), atom(pair, "p", "s"), atom(part, "p"), atom(supplier, "s"))
    residuals = Residuals(query(*atoms))
    return [residuals.of(frozenset({0})), residuals.of(frozenset({0, 1}))], [3, 2]


def leading(residual: Residual, most: int = LEADING) -> Factorised | Leading:
    """The plan by groups that lead, where there is a lookup."""
    direct = choose(residual, how="factorised")
    assert isinstance(direct, Factorised)
    found = leaders(Problem.of(residual), Planner(Statistics()), table_names(residual))
    return direct if found is None else Leading(residual, replace(found, most=most), direct)


def test_groups_that_lead_serve_several_plans(on_duckdb: Direct) -> None:
    """Those of a residual without a lookup are all that it needs."""
    residuals, expected = lookups(on_duckdb)
    plans = [leading(one) for one in residuals]
    assert [plan.name for plan in plans] == ["factorised", "leading"]
    statement = together(plans, "duckdb")
    assert outer_names(statement) == ["leading_groups", "value_1", "value_2"]
    _, *values = statement.args["with_"].expressions
    assert "fact_rows" not in values[0].sql("duckdb")
    assert list(on_duckdb.rows(statement)[0]) == expected


@pytest.mark.parametrize("most", [1, 2])
def test_groups_that_lead_and_are_not_enough(
    on_duckdb: Direct, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """One group, which the lookup takes away, says nothing of the others: another plan is run."""
    residuals, expected = lookups(on_duckdb)
    alone = on_duckdb.scalar(statement_of(leading(residuals[1], most), "duckdb"))
    assert alone == (NOT_ENOUGH if most == 1 else expected[1])
    chosen = {one.members: leading(one, most) for one in residuals}
    monkeypatch.setattr(evaluate, "choose", lambda residual, *_, **__: chosen[residual.members])
    evaluator = evaluate.Evaluator(on_duckdb, residuals[0].query, "duckdb", how="plain")
    assert [evaluator(one).value for one in residuals] == expected
    (batch,) = evaluator.together(residuals)
    assert batch.run() == expected


@settings(max_examples=examples(15))
@given(st.data())
def test_plans_in_the_ways_that_others_hold(on_duckdb: Direct, data: st.DataObject) -> None:
    """Flowers without the edges that closed them have parts, of which several hold each other's."""
    petals = data.draw(
        st.lists(st.sampled_from(["xa ab bx", "xa bx", "ax xb"]), min_size=2, max_size=3)
    )
    edges = [
        f"{v}".replace("a", f"a{i}").replace("b", f"b{i}")
        for i, p in enumerate(petals)
        for v in p.split()
    ]
    atoms = [atom(data.draw(st.sampled_from(TABLES[:2])), *_ends(edge)) for edge in edges]
    residuals = Residuals(query(*atoms))
    for one in TABLES[:2]:
        on_duckdb.fill(one, data.draw(rows_of(one)))
    known = data.draw(statistics())
    wanted = data.draw(st.permutations(residuals.undecided(residuals.required)))[:8]
    plans = [choose(one, known, quick=data.draw(st.sampled_from([0.001, None]))) for one in wanted]
    found = with_shared_steps(plans)
    assert [plan.residual for plan in found] == wanted
    assert {*that_share(plans, plans)} <= {*plans}
    for plan in found:
        assert on_duckdb.scalar(statement_of(plan, "duckdb")) == on_duckdb.scalar(
            emit.plain(plan.residual)
        )
    if len(some := stepped(found)) > 1:
        (row,) = on_duckdb.rows(together(some, "duckdb"))
        assert list(row) == [on_duckdb.scalar(emit.plain(plan.residual)) for plan in some]


def _ends(edge: str) -> list[str]:
    return re.findall(r"[a-z]\d*", edge)


def _pruning(residual: Residual, known: Statistics) -> Pruning:
    plan = choose(residual, known, how="pruned")
    assert isinstance(plan, Pruned)
    return plan.pruning


def test_what_a_bow_tie_reads_in_one_round() -> None:
    """The counts of two edges by their ends, and of triangles, hold what all others need."""
    residuals = Residuals(query(*(atom(EDGE, *p) for p in ("xa", "ab", "bx", "xc", "cd", "dx"))))
    even = Statistics(
        {EDGE.identity: 1e5},
        {(EDGE.identity, c): Repetition(1e4, 1.1e6, 30) for c in ("src", "dst")},
    )
    plans = {
        m: choose(residuals.of(frozenset(m)), even)
        for m in ((0, 1, 2, 3, 4), (0, 1), (0, 1, 2), (0, 1, 3, 4), (0, 1, 4, 5))
    }
    first, *others = plans.values()
    assert that_share([first], others) == others
    # Pairs of paths would be many more than the paths, though each of them is there once.
    apart = residuals.of(frozenset((0, 1, 3, 4)))
    pairs = Planner(even).exact(Problem.of(apart))
    assert that_share([others[0]], [Pruned(apart, _pruning(apart, even), ways=(pairs,))]) == []
    # Triangles alone hold no paths.
    assert that_share([others[1]], [first]) == []


HUBS = Statistics(
    {EDGE.identity: 3e4},
    {(EDGE.identity, c): Repetition(3e3, 5e5, 40) for c in ("src", "dst")},
)


def test_one_plan_counts_every_group_where_that_spares_others(on_duckdb: Direct) -> None:
    """Each residual of a bow tie is cheaper by bounds; paths by their ends serve all of them."""
    residuals = Residuals(query(*(atom(EDGE, *p) for p in ("xa", "ab", "bx", "xc", "cd", "dx"))))
    paths = [residuals.of(frozenset(m)) for m in ((0, 1), (0, 1, 5), (0, 1, 3, 4), (0, 1, 4, 5))]
    plans = [choose(one, HUBS) for one in paths]
    assert all(isinstance(plan, Pruned) for plan in plans)
    found = with_shared_steps(plans)
    assert all(isinstance(plan, Factorised) for plan in found)
    on_duckdb.fill(EDGE, [(a, b) for a in range(6) for b in range(6) if (a * b) % 3 != 1])
    (row,) = on_duckdb.rows(together(stepped(found), "duckdb"))
    assert list(row) == [on_duckdb.scalar(emit.plain(one)) for one in paths]


def test_bounds_stay_where_counting_every_group_spares_nothing() -> None:
    residuals = Residuals(query(*(atom(EDGE, *p) for p in ("xa", "ab", "bx", "xc", "cd", "dx"))))
    path, with_edge = (choose(residuals.of(frozenset(m)), HUBS) for m in ((0, 1), (0, 1, 5)))
    # One alone, and two whose bounds cost less together than all groups do.
    assert with_shared_steps([path]) == [path]
    assert with_shared_steps([path, with_edge]) == [path, with_edge]
