"""Groups that lead, of several residuals of one join: one statement has the same numbers."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.dialects import dialect_named
from sqlrs.engines.base import integers
from sqlrs.measuring.evaluate import Evaluator
from sqlrs.planning import kept_together as planning
from sqlrs.planning import leading as leading_planning
from sqlrs.planning.kept_together import KeptTogether, kept_together
from sqlrs.planning.leading import leaders_of_whole_tables
from sqlrs.planning.plan import ByKeptGroups, KeptGroups, Plain, table_names
from sqlrs.planning.problem import Problem
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Filter, Variable
from sqlrs.residuals.residual import Residual, Residuals
from sqlrs.sql.factorised import StatementBuilder
from sqlrs.sql.leading_groups import groups_statement
from sqlrs.sql.rolled_up import rolled_up_statement
from sqlrs.sql.write import statement_of
from sqlrs.trees.kept import Kept
from tests.planning.adapters import Direct, Lasting
from tests.planning.strategies import Case, cases
from tests.support.builders import atom, query, table
from tests.support.examples import examples

pytestmark = pytest.mark.usefixtures("all_is_kept")

LINE = table("line", "id", "orders", "part", "shop", "number", keys=["id"])
ORDERS = table("orders", "id", "customer", keys=["id"])
FEW = Filter(
    exp.LT(this=exp.column("number"), expression=exp.Literal.number(8)), frozenset({"number"})
)
SOME = replace(atom(LINE, "l", "o", "p", "s"), filters=(FEW,))
LINES = Residuals(query(SOME, atom(ORDERS, "o", "c")))
WHOLE = LINES.of(LINES.query.everything)


def variables(names: str) -> frozenset[Variable]:
    return frozenset(v for v in WHOLE.variables if v.name in names.split())


def plan_of(
    residual: Residual,
    snapshot: Direct,
    most: int,
    statistics: Statistics,
    telling: frozenset[Variable] | None = None,
) -> ByKeptGroups | None:
    """By so many groups of the whole tables, read from them."""
    found = leaders_of_whole_tables(Problem.of(residual), statistics, table_names(residual))
    if found is None:
        return None
    found = replace(found, most=most)
    rows = snapshot.rows(groups_statement(found, StatementBuilder(dialect_named("duckdb"))))
    if not rows:
        return None
    keys, counts = tuple(row[:-1] for row in rows), tuple(row[-1] for row in rows)
    groups = KeptGroups(keys, counts, counts[-1] if len(rows) >= most else 0)
    some = residual.boundary if telling is None else telling
    return ByKeptGroups(residual, found, groups, some, Plain(residual))


def with_a_filter(residual: Residual) -> Residual:
    """Where no condition thins a table out, there are no groups of whole tables to begin with."""
    atoms = list(residual.query.atoms)
    first = min(residual.members)
    test = exp.LT(this=exp.column("p"), expression=exp.Literal.number(3))
    atoms[first] = replace(atoms[first], filters=(Filter(test, frozenset({"p"})),))
    return replace(residual, query=replace(residual.query, atoms=tuple(atoms)))


def values_of(several: KeptTogether, snapshot: Direct) -> list[int]:
    statement = rolled_up_statement(several.joined, "duckdb", among=several.among)
    return integers(snapshot.rows(statement))


def plain(residual: Residual, snapshot: Direct) -> int:
    return snapshot.scalar(statement_of(Plain(residual), "duckdb"))


@settings(max_examples=examples(60))
@given(case=cases(), most=st.sampled_from([1, 2, 10**6]), data=st.data())
def test_the_groups_are_enough_or_say_so(
    on_duckdb: Direct, case: Case, most: int, data: st.DataObject
) -> None:
    """Of one residual by several boundaries, as if other tables were left out."""
    whole = with_a_filter(case.residual)
    nullable = {t for a in whole.atoms for n, t in a.terms if a.table.column(n).nullable}
    names = sorted(v for v in whole.variables if v not in nullable - whole.query.never_null)
    if whole.external or whole.generals or not names:
        return
    for one in {a.table.name: a.table for a in whole.atoms}.values():
        on_duckdb.fill(one, case.rows[one.name])
    order = data.draw(st.permutations(names))
    telling = frozenset(data.draw(st.sets(st.sampled_from(names))))
    plans = []
    for number in range(1, len(order) + 1):
        of = replace(whole, boundary=frozenset(order[:number]))
        plan = plan_of(of, on_duckdb, most, case.statistics or Statistics(), telling & of.boundary)
        if plan is not None:
            plans.append(plan)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_PART", float("inf"))
        together = kept_together(plans, Statistics())
    event(f"together: {max((len(one.plans) for one in together), default=0)}")
    for several in together:
        found = values_of(several, on_duckdb)
        for plan, value in zip(several.plans, found, strict=True):
            expected = plain(plan.residual, on_duckdb)
            assert value <= expected
            assert value == expected or value < plan.groups.least


def fill(snapshot: Direct, rng: random.Random) -> None:
    snapshot.fill(ORDERS, [(o, o % 20) for o in range(40)])
    drawn = [[rng.randrange(n) for n in (40, 20, 20)] for _ in range(300)]
    # One customer buys one part again and again, in all shops.
    drawn += [[20 * (i % 2) + 3, 5, i % 20] for i in range(60)]
    snapshot.fill(LINE, [(i, *row, i % 10) for i, row in enumerate(drawn)])


def two_plans(snapshot: Direct) -> list[ByKeptGroups]:
    statistics = Statistics()
    boundaries = [variables("c p s"), variables("c p")]
    parts = [replace(WHOLE, boundary=boundary) for boundary in boundaries]
    found = [plan_of(part, snapshot, 2, statistics) for part in parts]
    return [plan for plan in found if plan is not None]


def test_no_row_of_a_smaller_boundary_is_left_out(on_duckdb: Direct) -> None:
    """The shops of the larger one's groups say nothing of the smaller one's: with them it fails."""
    fill(on_duckdb, random.Random(1))
    fine, coarse = two_plans(on_duckdb)
    (several,) = kept_together([coarse, fine], Statistics())
    assert several.plans == (fine, coarse)
    assert {v.name for v in several.among} == {"c", "p"}
    expected = [plain(plan.residual, on_duckdb) for plan in (fine, coarse)]
    assert values_of(several, on_duckdb) == expected
    shops = {v: n for v, n in fine.values.items() if v.name == "s"}
    wrong = rolled_up_statement(several.joined, "duckdb", among={**several.among, **shops})
    assert integers(on_duckdb.rows(wrong)) != expected


def test_what_is_no_small_part_or_of_another_join_stays_apart(on_duckdb: Direct) -> None:
    fill(on_duckdb, random.Random(1))
    fine, coarse = two_plans(on_duckdb)
    assert kept_together([fine], Statistics()) == []
    assert kept_together([fine, coarse], None) == []
    alone = replace(fine, telling=variables("s"))
    assert kept_together([alone, coarse], Statistics()) == []
    lines = replace(LINES.of(frozenset({0})), boundary=variables("p s"))
    other = plan_of(replace(lines, boundary=variables("p")), on_duckdb, 2, Statistics())
    assert other is None or kept_together([fine, other], Statistics()) == []


@pytest.mark.parametrize("seed", range(4))
def test_one_statement_for_both(
    on_duckdb: Direct, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In later answers; each time the values are those by the definition."""
    monkeypatch.setattr(leading_planning, "LEADING", 2)
    fill(on_duckdb, random.Random(seed))
    parts = [
        replace(WHOLE, boundary=variables("c p s")),
        replace(WHOLE, boundary=variables("c p")),
    ]
    expected = [plain(part, on_duckdb) for part in parts]
    source, kept = Lasting(on_duckdb, {}), Kept()
    together = []
    for _ in range(6):
        with source.snapshot() as snapshot:
            evaluator = Evaluator(snapshot, LINES.query, "duckdb", kept=kept)
            found = dict[int, int]()
            batches = list(evaluator.together(parts))
            for batch in batches:
                for part, value in zip(batch.residuals, batch.run(), strict=True):
                    found[parts.index(part)] = value
            assert [found[0], found[1]] == expected
            kinds = {type(evaluator._plan(part)) for part in parts}
            together.append(kinds == {ByKeptGroups} and len(batches) == 1)
    assert together[-1] and not together[0]
