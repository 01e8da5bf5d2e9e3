"""Residuals with more and more witnesses are read together: the same numbers, on any rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import duckdb
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import sqlrs
from sqlrs.engines.base import integers
from sqlrs.engines.duckdb import DuckDBSnapshot
from sqlrs.measuring import sampling as reading
from sqlrs.noise import PolyLaplace
from sqlrs.planning import choose as choosing
from sqlrs.planning.plan import Plain, PrunedSemiJoins, ResidualPlan, SemiJoins
from sqlrs.planning.witness_chains import WitnessChain, sums_up, witness_chains
from sqlrs.planning.witnesses import witnessed
from sqlrs.query import Query
from sqlrs.residuals.residual import Members, Residual, Residuals
from sqlrs.sql.witness_chain import chain_statement
from sqlrs.sql.write import statement_of
from tests.planning.adapters import Direct
from tests.planning.strategies import Case, evaluate
from tests.planning.test_witnesses import witnessed_cases
from tests.support import brute
from tests.support.builders import atom, query, table
from tests.support.examples import examples
from tests.support.special import LINES, Line


def plan_of(residual: Residual, seeds: int) -> ResidualPlan | None:
    found = witnessed(residual)
    if found is None:
        return None
    return (
        PrunedSemiJoins(residual, found, seeds) if residual.boundary else SemiJoins(residual, found)
    )


def narrowed(residual: Residual, members: Members) -> Residual:
    """Some atoms of a residual with the predicates on their variables alone."""
    held = residual.query.variables(members)
    return replace(
        residual,
        members=members,
        inequalities=frozenset(p for p in residual.inequalities if p.variables <= held),
        comparisons=frozenset(p for p in residual.comparisons if p.variables <= held),
        generals=tuple(p for p in residual.generals if p.variables <= held),
    )


def compare(plans: Sequence[ResidualPlan], snapshot: Direct) -> list[WitnessChain]:
    """Each value is the one by the definition, and none is read twice."""
    chains = witness_chains(plans)
    seen = [plan for chain in chains for plan in chain.plans]
    assert len(seen) == len({id(plan) for plan in seen})
    assert {id(p) for p in plans if isinstance(p, PrunedSemiJoins)} <= {id(p) for p in seen}
    for chain in chains:
        values = integers(snapshot.rows(chain_statement(chain, snapshot.dialect)))
        plain = [statement_of(Plain(plan.residual), snapshot.dialect) for plan in chain.plans]
        assert values == [snapshot.scalar(one) for one in plain]
    return chains


def check(case: Case, snapshot: Direct, seeds: int) -> None:
    """A residual with all of its witnesses, and with some of them; and the count of its query."""
    whole = case.residual
    found = witnessed(whole)
    if found is None:
        return
    for one in {a.table.name: a.table for a in whole.query.atoms}.values():
        snapshot.fill(one, case.rows[one.name])
    everything = Residuals(whole.query).of(whole.query.everything)
    residuals = [whole] if everything.external else [whole, everything]
    members = found.counted
    for group in found.groups:
        residuals.append(narrowed(whole, members))
        members |= group
    plans = [plan_of(one, seeds) for one in residuals]
    for chain in compare([plan for plan in plans if plan is not None], snapshot):
        event(f"pruned: {len(chain.pruned)}, counts: {len(chain.counts)}")


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(60))
@given(case=witnessed_cases(), seeds=st.sampled_from([1, 2, 64]))
def test_the_same_values(
    on_duckdb: Direct, on_postgres: Direct, engine: str, case: Case, seeds: int
) -> None:
    check(case, {"duckdb": on_duckdb, "postgres": on_postgres}[engine], seeds)


SPECIAL = [(engine, line) for engine, lines in LINES.items() for line in lines]


@pytest.mark.parametrize(("engine", "line"), SPECIAL, ids=lambda v: str(v))
@settings(max_examples=examples(6))
@given(data=st.data())
def test_special_values(
    on_duckdb: Direct, on_postgres: Direct, engine: str, line: Line, data: st.DataObject
) -> None:
    snapshot = {"duckdb": on_duckdb, "postgres": on_postgres}[engine]
    check(data.draw(witnessed_cases(most_atoms=3, line=line)), snapshot, 1)


LINE = table("line", "of", "supplier", "late", "number", keys=["of number"], nullable="late")
ORDER = table("orders", "id", "open", keys=["id"])
SUPPLIER = table("supplier", "id", "zone", keys=["id"], nullable="zone")
ZONE = table("zone", "id", "far", keys=["id"], private=False)
SHOP = (LINE, ORDER, SUPPLIER, ZONE)


def lines_beside_others(late: bool = True, far: bool = True, *, more: bool) -> Query:
    """Late lines of open orders that have a line of another supplier, ``more``: a late one."""
    atoms = [
        atom(LINE, "o", "s", 1 if late else None, "n"),
        atom(ORDER, "o", 1 if late else None),
        atom(SUPPLIER, "s", "z"),
        atom(ZONE, "z", 1 if far else None),
        atom(LINE, "o", "t", None, "k", alias="second"),
    ]
    if more:
        atoms.append(atom(LINE, "o", "u", 1, "l", alias="third"))
    different = ["s t", "s u"] if more else ["s t"]
    return query(*atoms, different=different, distinct="o n s z")


def by_supplier(of: Query) -> Residual:
    return Residuals(of).of(of.everything - {2, 3})


def in_all(of: Query) -> Residual:
    return Residuals(of).of(of.everything)


def all_plans(late: bool, far: bool, seeds: int) -> list[ResidualPlan]:
    of = [lines_beside_others(late, far, more=more) for more in (False, True)]
    plans = [plan_of(one, seeds) for q in of for one in (in_all(q), by_supplier(q))]
    return [plan for plan in plans if plan is not None]


@st.composite
def shops(draw: st.DrawFn) -> dict[str, list[tuple[object, ...]]]:
    some = st.integers(0, 2)
    orders = draw(st.integers(1, 4))
    lines = draw(
        st.lists(
            st.tuples(st.integers(0, orders), st.integers(0, 3), some | st.none()), max_size=14
        )
    )
    return {
        "line": [(o, s, late, n) for n, (o, s, late) in enumerate(lines)],
        "orders": [(o, draw(some)) for o in range(orders)],
        "supplier": [(s, draw(some | st.none())) for s in range(draw(some), 4)],
        "zone": [(z, draw(some)) for z in range(draw(some), 3)],
    }


@pytest.mark.parametrize("engine", ["duckdb", "postgres"])
@settings(max_examples=examples(60))
@given(rows=shops(), late=st.booleans(), far=st.booleans(), seeds=st.sampled_from([1, 2, 64]))
def test_terms_of_a_sum_in_one_statement(
    on_duckdb: Direct,
    on_postgres: Direct,
    engine: str,
    rows: dict[str, list[tuple[object, ...]]],
    late: bool,
    far: bool,
    seeds: int,
) -> None:
    """Both terms, in all and by supplier: one chain has them, whatever the rows are."""
    snapshot = on_duckdb if engine == "duckdb" else on_postgres
    for one in SHOP:
        snapshot.fill(one, rows[one.name])
    plans = all_plans(late, far, seeds)
    (chain,) = compare(plans, snapshot)
    assert len(plans) == len(chain.plans) == 4 and len(chain.counts) == 2
    for plan in chain.plans:
        found = snapshot.scalar(statement_of(Plain(plan.residual), snapshot.dialect))
        assert brute.residual_value(plan.residual, rows, evaluate=evaluate) == found


def test_what_is_no_chain() -> None:
    """Other conditions, other groups, and a count of another query stay apart."""
    one, other = (lines_beside_others(late, more=True) for late in (True, False))
    plans = [plan_of(by_supplier(q), 64) for q in (one, other)]
    assert [len(c.pruned) for c in witness_chains([p for p in plans if p])] == [1, 1]
    residual = by_supplier(one)
    (o,) = (v for v in residual.variables if v.name == "o")
    by_order = replace(residual, boundary=frozenset({o}))
    apart = [plan_of(residual, 64), plan_of(by_order, 64)]
    assert [len(c.pruned) for c in witness_chains([p for p in apart if p])] == [1, 1]
    groups, count = plan_of(residual, 64), plan_of(in_all(other), 64)
    assert isinstance(groups, PrunedSemiJoins) and isinstance(count, SemiJoins)
    assert not sums_up(count, groups)
    fewer = plan_of(by_supplier(lines_beside_others(more=False)), 64)
    same = plan_of(in_all(one), 64)
    assert isinstance(fewer, PrunedSemiJoins) and isinstance(same, SemiJoins)
    assert sums_up(same, groups) and not sums_up(same, fewer)


def test_groups_that_a_count_needs_are_all_counted(on_duckdb: Direct) -> None:
    """A zone's suppliers are far from the largest; the groups that lead alone count none of it."""
    lines = [(o, s, 1, 10 * o + s) for o in range(9) for s in ((0, 1) if o < 7 else (2, 3))]
    rows: dict[str, list[tuple[object, ...]]] = {
        "line": [*lines],
        "orders": [(o, 1) for o in range(9)],
        "supplier": [(s, s) for s in range(4)],
        "zone": [(z, 1 if z == 2 else 0) for z in range(4)],
    }
    for one in SHOP:
        on_duckdb.fill(one, rows[one.name])
    (chain,) = compare(all_plans(True, True, 1), on_duckdb)
    assert integers(on_duckdb.rows(chain_statement(chain, "duckdb"))) == [7, 7, 2, 2]


def test_groups_whose_bound_is_above_the_best_are_counted(on_duckdb: Direct) -> None:
    """Supplier 0 has the most lines, none with a witness: the next one decides."""
    lines = [(o, 0, 1, o) for o in range(5)]
    lines += [(o, s, 1, 10 * o + s) for o in range(5, 8) for s in (1, 2)] + [(9, 1, 1, 99)]
    on_duckdb.fill(LINE, lines)
    on_duckdb.fill(ORDER, [(o, 1) for o in range(10)])
    on_duckdb.fill(SUPPLIER, [])
    on_duckdb.fill(ZONE, [])
    (chain,) = compare(all_plans(True, True, 1), on_duckdb)
    assert integers(on_duckdb.rows(chain_statement(chain, "duckdb"))) == [3, 3, 0, 0]


def test_other_witnesses_and_predicates_are_no_chain() -> None:
    """A second line of another supplier is none that is open; nor are lines below a number all."""
    line, order = atom(LINE, "o", "s", 1, "n"), atom(ORDER, "o", 1)
    any_line = atom(LINE, "o", "t", None, "k", alias="second")
    late_line = atom(LINE, "o", "t", 2, "k", alias="second")
    supplier = atom(SUPPLIER, "s", "z")
    plain = query(line, order, supplier, any_line, different="s t", distinct="o n s z")
    late = query(line, order, supplier, late_line, different="s t", distinct="o n s z")
    below = query(
        line, order, supplier, any_line, different="s t", less=[("n", 5)], distinct="o n s z"
    )
    for other in (late, below):
        residuals = [Residuals(of).of(frozenset({0, 1, 3})) for of in (plain, other)]
        plans = [plan for one in residuals if (plan := plan_of(one, 64)) is not None]
        assert [len(chain.pruned) for chain in witness_chains(plans)] == [1, 1]


@pytest.fixture
def every_row_matters(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Bounds come first for few rows too, and an answer is what its noise is drawn for."""
    monkeypatch.setattr(reading, "_SMALL", 0)
    monkeypatch.setattr(choosing, "_MANY_ROWS", 0)
    told = 10**9

    def told_noise(self: PolyLaplace, sensitivity: Fraction, bits: object) -> int:
        return told * int(sensitivity * 1000)

    monkeypatch.setattr(PolyLaplace, "sample", told_noise)
    yield


SQL = (
    "SELECT count(*) FROM supplier, line AS one, orders, zone WHERE supplier.id = one.supplier"
    " AND orders.id = one.of AND supplier.zone = zone.id AND orders.open = {} AND one.late > {}"
    " AND zone.far < {}"
    " AND EXISTS (SELECT 1 FROM line AS two WHERE two.of = one.of AND two.supplier <> one.supplier)"
    " AND NOT EXISTS (SELECT 1 FROM line AS two WHERE two.of = one.of"
    " AND two.supplier <> one.supplier AND two.late > {})"
)
KEYS: dict[str, Sequence[str] | Sequence[Sequence[str]]] = {
    "line": [("of", "number")],
    "orders": ["id"],
    "supplier": ["id"],
    "zone": ["id"],
}


def filled(path: Path, rng: random.Random) -> None:
    with duckdb.connect(str(path)) as connection:
        for name, columns, rows in (
            ("zone", "id INT NOT NULL, far INT", [(z, rng.randrange(3)) for z in range(4)]),
            ("supplier", "id INT NOT NULL, zone INT", [(s, rng.randrange(4)) for s in range(9)]),
            ("orders", "id INT NOT NULL, open INT", [(o, rng.randrange(2)) for o in range(40)]),
            (
                "line",
                "of INT NOT NULL, supplier INT, late INT, number INT NOT NULL",
                [
                    (rng.randrange(40), rng.choice([*range(9), None]), rng.randrange(4), n)
                    for n in range(120)
                ],
            ),
        ):
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)


@pytest.mark.usefixtures("every_row_matters")
def test_every_answer_is_the_one_by_the_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those of which one statement reads both terms and their groups."""
    run, chained = DuckDBSnapshot.run, list[str]()

    def heard(self: DuckDBSnapshot, text: str, *more: object) -> object:
        chained.extend([text] if "rows_in_common" in text else [])
        return run(self, text, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(DuckDBSnapshot, "run", heard)
    for seed in range(6):
        rng = random.Random(seed)
        path = tmp_path / f"lines{seed}.duckdb"
        filled(path, rng)
        sql = SQL.format(rng.randrange(2), rng.randrange(2), rng.randrange(1, 4), rng.randrange(3))
        found = []
        for plan in ("plain", "auto"):
            with sqlrs.connect(f"duckdb:///{path}", public=["zone"], keys=KEYS) as database:
                database.settings = replace(database.settings, plan=plan)
                found.append([database.count(sql, f"1.0{turn}").value for turn in range(5)])
        assert found[0] == found[1], seed
    # Two values by supplier and both counts.
    assert any("value_4" in text for text in chained)
