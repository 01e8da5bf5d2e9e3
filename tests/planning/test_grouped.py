"""Values of all groups in one statement: equal to brute force over each group alone."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import exp

from sqlrs.catalog import Column, ColumnType, Family, Table
from sqlrs.engines.base import Opened
from sqlrs.measures import KeyDomain, Ordinals, Signed
from sqlrs.measuring.groups import can_measure_by_group, read_domain
from sqlrs.measuring.measurements import Measurements
from sqlrs.query import (
    Atom,
    Comparison,
    Constant,
    Filter,
    General,
    Inequality,
    Query,
    Term,
    Variable,
    Weight,
)
from sqlrs.residuals.residual import Residuals
from sqlrs.sql.grouped_text import query_text
from tests.planning.adapters import Direct
from tests.planning.strategies import TABLES
from tests.support import brute
from tests.support.builders import INTEGER, TEXT, atom, query, table
from tests.support.examples import examples

Row = tuple[object, ...]
MODULUS = 2
REST = "the rest"


@pytest.fixture(params=["duckdb", "postgres"])
def anywhere(request: pytest.FixtureRequest) -> Direct:
    found = request.getfixturevalue(f"on_{request.param}")
    assert isinstance(found, Direct)
    return found


def measuring(snapshot: Direct, how: str = "auto") -> Measurements:
    return Measurements(Opened(snapshot, snapshot.dialect), how)


def listed(keys: Sequence[int], rows: Iterable[Row], kinds: str = "BIGINT") -> KeyDomain:
    """A domain of constants; a type for each key."""
    types = kinds.split()

    def value(one: object, kind: str) -> exp.Expression:
        return exp.cast(exp.convert(one), exp.DataType.build(kind, "duckdb"))

    selects = [
        exp.Select(
            expressions=[
                exp.alias_(value(one, kind), f"k{key}")
                for key, one, kind in zip(keys, row, types * len(row), strict=False)
            ]
        )
        for row in rows
    ]
    tree: exp.Query = selects[0]
    for select in selects[1:]:
        tree = exp.union(tree, select, distinct=False)
    return KeyDomain(tuple(keys), tree, "listed")


def in_order(rows: Iterable[Row]) -> list[Row]:
    """The rows as they are numbered: by their columns, NULL last."""
    return sorted(rows, key=lambda row: [(v is None, 0 if v is None else v) for v in row])


def evaluate(condition: object, values: object) -> bool:
    """The conditions of the strategies, with NULL as it is in SQL."""
    found = _value(condition, values)
    assert found is None or isinstance(found, bool)
    return found is True


def _value(tree: object, values: object) -> object:
    match tree:
        case exp.Column():
            assert isinstance(values, dict)
            return values[tree.name]
        case exp.Placeholder():
            assert isinstance(values, tuple)
            return values[int(tree.name[1:])]
        case exp.Literal():
            return int(tree.this)
        case exp.Paren():
            return _value(tree.this, values)
        case exp.Is():
            return _value(tree.this, values) is None
    assert isinstance(tree, exp.Binary)
    left, right = _value(tree.left, values), _value(tree.right, values)
    if isinstance(tree, exp.Or):
        return True if True in (left, right) else None if None in (left, right) else False
    if left is None or right is None:
        return None
    assert isinstance(left, int) and isinstance(right, int)
    match tree:
        case exp.LT():
            return left < right
        case exp.EQ():
            return left == right
        case exp.Add():
            return left + right
        case exp.Mod():
            return left % right
    raise TypeError(type(tree).__name__)


def with_remainder(of: Table, column: str) -> Table:
    """The table with a computed column: a remainder of one of its columns."""
    value = exp.Mod(this=exp.column(column, quoted=True), expression=exp.Literal.number(MODULUS))
    nullable = of.column(column).nullable
    return of.with_computed([Column(REST, INTEGER, nullable, computed=value)])


def with_values(of: Table, rows: Iterable[Row]) -> list[Row]:
    """The rows with what is computed from them."""
    names = [c.name for c in of.columns]
    found = []
    for row in rows:
        for one in of.columns[len(row) :]:
            assert isinstance(one.computed, exp.Mod)
            value = row[names.index(one.computed.this.name)]
            assert value is None or isinstance(value, int)
            row = (*row, None if value is None else value % MODULUS)
        found.append(row)
    return found


def stored(of: Table) -> Table:
    return replace(of, columns=tuple(c for c in of.columns if c.computed is None))


@dataclass(frozen=True)
class Case:
    """A query with keys, their domains with the rows in order, and the rows of all tables."""

    signed: Signed
    domains: tuple[KeyDomain, ...]
    groups: list[list[Row]]
    rows: dict[str, list[Row]]

    def fill(self, snapshot: Direct) -> None:
        for of in {one.table.name: one.table for one in self.signed.query.atoms}.values():
            count = len(stored(of).columns)
            snapshot.fill(stored(of), [row[:count] for row in self.rows[of.name]])


def random_case(rng: random.Random) -> Case:
    """Few values in many rows: most groups have results, some rows belong to no group."""
    tables = {
        of.name: with_remainder(of, rng.choice(of.columns).name) if rng.random() < 0.6 else of
        for of in TABLES
    }
    atoms = [random_atom(f"t{i}", rng, tables) for i in range(rng.choice([1, 2, 2, 3]))]
    names = sorted(frozenset[Variable]().union(*(one.variables for one in atoms)))
    if not names:
        return random_case(rng)
    computed = [t for one in atoms for name, t in one.terms if name == REST]
    terms: list[Term | None] = [*names, *names, *computed, *computed, Constant(1, INTEGER), None]
    keys = tuple(rng.choice(terms) for _ in range(rng.choice([1, 2, 2])))
    pairs = random_pairs(names, rng)
    inequalities = {Inequality.between(*pair) for pair in pairs if rng.random() < 0.4}
    comparisons = {Comparison(a, b, rng.random() < 0.5) for a, b in pairs if rng.random() < 0.2}
    generals = [General(odd_sum(), pair) for pair in pairs[:1] if rng.random() < 0.2]
    output = None
    if rng.random() < 0.4:
        output = frozenset(v for v in names if v in keys or rng.random() < 0.4)
    if rng.random() < 0.4:
        atoms = [random_weight(one, output, rng) for one in atoms]
    found = Query(
        tuple(atoms), frozenset(inequalities), frozenset(comparisons), tuple(generals), output
    )
    apart = [(i,) for i in range(len(keys))]
    numbers = apart if rng.random() < 0.5 else [tuple(rng.sample(range(len(keys)), len(keys)))]
    groups = [random_domain(len(some), rng) for some in numbers]
    domains = tuple(listed(some, rows) for some, rows in zip(numbers, groups, strict=True))
    rows = {name: with_values(of, random_rows(stored(of), rng)) for name, of in tables.items()}
    return Case(Signed(1, found, keys), domains, [in_order(one) for one in groups], rows)


def random_pairs(names: Sequence[Variable], rng: random.Random) -> list[tuple[Variable, Variable]]:
    pairs = [rng.sample(names, 2) for _ in range(2) if len(names) > 1]
    return [(one, other) for one, other in pairs]


def random_atom(alias: str, rng: random.Random, tables: Mapping[str, Table]) -> Atom:
    of = tables[rng.choice(sorted(tables))]
    terms: list[tuple[str, Term]] = []
    for one in of.columns:
        kind = rng.random()
        if kind < 0.05:
            terms.append((one.name, Constant(rng.randrange(2), INTEGER)))
        elif kind < 0.8 or any(one.name in key for key in of.keys):
            terms.append((one.name, Variable(rng.choice("abcdefghijkl"), INTEGER)))
    filters: tuple[Filter, ...] = ()
    if rng.random() < 0.2:
        name = rng.choice(of.columns).name
        test = exp.LT(this=exp.column(name), expression=exp.Literal.number(2))
        filters = (Filter(test, frozenset({name})),)
    return Atom(alias, of, tuple(terms), filters)


def random_weight(one: Atom, output: frozenset[Variable] | None, rng: random.Random) -> Atom:
    """The atom with a weight, where one is allowed: never null, and decided by the output."""
    names = [c.name for c in one.table.columns if not c.nullable]
    if not names or (output is not None and not any(key <= output for key in one.keys)):
        return one
    return replace(one, weight=Weight(rng.choice(names), 2))


def random_rows(of: Table, rng: random.Random) -> list[Row]:
    """Rows that obey the keys, with NULLs and repeated rows where these are allowed."""
    found: list[Row] = []
    for _ in range(rng.choice([0, 9, 12, 12, 12])):
        row = tuple(
            None if c.nullable and rng.random() < 0.2 else rng.randrange(3) for c in of.columns
        )
        if brute.keys_hold(of, [*found, row]):
            found.append(row)
    return found


def random_domain(keys: int, rng: random.Random) -> list[Row]:
    """Most combinations of most values, in any order."""
    every: Iterable[Row] = product([0, 1, 2, 7, None], repeat=keys)
    rows = [row for row in every if rng.random() < 0.8]
    rng.shuffle(rows)
    return rows or [(None,) * keys]


def odd_sum() -> exp.Expression:
    total = exp.Add(this=exp.Placeholder(this="v0"), expression=exp.Placeholder(this="v1"))
    rest = exp.Mod(this=exp.paren(total), expression=exp.Literal.number(2))
    return exp.EQ(this=rest, expression=exp.Literal.number(1))


def by_definition(case: Case) -> dict[Ordinals, int]:
    """Each group alone: the results whose keys are its values."""
    found = case.signed.query
    results = [
        (a, weight)
        for a, weight in brute.weighed(found, found.everything, case.rows, evaluate)
        if all(brute.holds(p, a, evaluate) for p in found.predicates)
    ]
    totals: dict[Ordinals, int] = {}
    for group, wanted in keys_of(case.domains, case.groups).items():
        inside = [
            (a, weight)
            for a, weight in results
            if all(value_of(key, a) == wanted[i] for i, key in enumerate(case.signed.keys))
        ]
        if found.distinct is None:
            total = sum(weight for _, weight in inside)
        else:
            output = sorted(found.distinct)
            total = sum({tuple(a[v] for v in output): weight for a, weight in inside}.values())
        if total:
            totals[group] = total
    return totals


def keys_of(
    domains: Sequence[KeyDomain], groups: Sequence[Sequence[Row]]
) -> dict[Ordinals, dict[int, object]]:
    """Every group with the values of its keys."""
    found: dict[Ordinals, dict[int, object]] = {}
    for group in product(*(range(len(rows)) for rows in groups)):
        found[group] = {}
        for place, domain, rows in zip(group, domains, groups, strict=True):
            found[group] |= zip(domain.keys, rows[place], strict=True)
    return found


def value_of(key: Term | None, assignment: brute.Assignment) -> object:
    if isinstance(key, Variable):
        return assignment[key]
    return None if key is None else key.value


def check_totals(case: Case, snapshot: Direct, how: str) -> None:
    case.fill(snapshot)
    residuals = Residuals(case.signed.query)
    found = measuring(snapshot, how).totals(case.signed, residuals, case.domains)
    assert found == by_definition(case)


seeds = st.integers(0, 2**32)
plans = st.sampled_from(["auto", "plain", "factorised"])


@settings(max_examples=examples(80))
@given(seeds, plans)
def test_totals_on_duckdb(on_duckdb: Direct, seed: int, how: str) -> None:
    check_totals(random_case(random.Random(seed)), on_duckdb, how)


@settings(max_examples=examples(40))
@given(seeds, plans)
def test_totals_on_postgres(on_postgres: Direct, seed: int, how: str) -> None:
    check_totals(random_case(random.Random(seed)), on_postgres, how)


VISIT = table("visit", "person", "ward", "cost", nullable="ward", types={"ward": TEXT})
WARDS = listed([0], [("B",), (None,), ("a",), ("C",)], "VARCHAR")
VISITS: list[Row] = [
    *((1, "a", 4), (1, "a", 2**62), (2, "B", 1), (2, None, 0), (2, None, 5)),
    *((3, "elsewhere", 9), (3, "A", 7), (4, "a", 2**62), (4, "a", 2**62), (4, "a", 2**62)),
]


def by_ward(*atoms: Atom, keys: str = "w", distinct: str | None = None) -> Signed:
    found = query(*atoms, distinct=distinct)
    known = {v.name: v for v in found.variables(found.everything)}
    return Signed(1, found, tuple(known[name] for name in keys))


def totals(
    snapshot: Direct, signed: Signed, *domains: KeyDomain, how: str = "auto"
) -> dict[Ordinals, int]:
    return measuring(snapshot, how).totals(signed, Residuals(signed.query), domains)


def test_a_domain_is_numbered_with_null_last(anywhere: Direct) -> None:
    rows = read_domain(anywhere, WARDS, 10)
    assert set(rows) == {("B",), (None,), ("a",), ("C",)}
    assert rows[-1] == (None,)
    assert rows == read_domain(anywhere, WARDS, 4)
    assert rows[:3] == read_domain(anywhere, WARDS, 2)


def test_a_domain_of_two_keys_is_numbered_by_both(anywhere: Direct) -> None:
    rows = [(1, None), (None, 0), (0, 1), (None, None), (0, None), (1, 0)]
    assert list(read_domain(anywhere, listed([1, 0], rows), 10)) == in_order(rows)


def test_settings_of_the_session_number_nothing_anew() -> None:
    with duckdb.connect() as connection:
        connection.execute("SET default_null_order = 'nulls_first'; SET default_order = 'DESC'")
        rows = read_domain(Direct(connection), listed([0], [(2,), (None,), (1,)]), 9)
        assert rows == ((1,), (2,), (None,))


@pytest.mark.parametrize("how", ["plain", "factorised"])
def test_texts_null_and_rows_of_no_group(anywhere: Direct, how: str) -> None:
    anywhere.fill(VISIT, VISITS)
    places = {row[0]: i for i, row in enumerate(read_domain(anywhere, WARDS, 9))}
    found = totals(anywhere, by_ward(atom(VISIT, "p", "w")), WARDS, how=how)
    assert found == {(places["a"],): 5, (places["B"],): 1, (places[None],): 2}
    distinct = by_ward(atom(VISIT, "p", "w"), distinct="p w")
    found = totals(anywhere, distinct, WARDS, how=how)
    assert found == {(places["a"],): 2, (places["B"],): 1, (places[None],): 1}


def test_values_of_another_width(anywhere: Direct) -> None:
    """A list of small numbers against a column of large ones."""
    anywhere.fill(VISIT, VISITS)
    few = listed([0], [(1,), (3,), (8,)], "SMALLINT")
    assert totals(anywhere, by_ward(atom(VISIT, "p", "w"), keys="p"), few) == {(0,): 2, (1,): 2}


@pytest.mark.parametrize("how", ["auto", "plain"])
def test_without_any_key_there_is_one_group(anywhere: Direct, how: str) -> None:
    anywhere.fill(VISIT, VISITS)
    signed = Signed(1, query(atom(VISIT, "p", "w")))
    assert totals(anywhere, signed, how=how) == {(): 10}
    anywhere.fill(VISIT, [])
    assert totals(anywhere, signed, how=how) == {}


def test_constants_and_null_as_keys(anywhere: Direct) -> None:
    """Keys that the query fixes: its results are in one group, or in none."""
    anywhere.fill(VISIT, VISITS)
    found = query(atom(VISIT, "p", Constant("a", TEXT)))
    places = {row[0]: i for i, row in enumerate(read_domain(anywhere, WARDS, 9))}
    for key, expected in ((Constant("a", TEXT), {(places["a"],): 5}), (None, {(places[None],): 5})):
        assert totals(anywhere, Signed(1, found, (key,)), WARDS) == expected
    assert totals(anywhere, Signed(1, found, (Constant("elsewhere", TEXT),)), WARDS) == {}


def test_a_row_that_fits_two_rows_of_a_domain_is_in_the_first() -> None:
    """Where a column does not tell letters apart, a domain that does must not count it twice."""
    blind = ColumnType(Family.TEXT, "VARCHAR", "nocase")
    of = table("blind", "w", types={"w": blind})
    with duckdb.connect() as connection:
        snapshot = Direct(connection)
        connection.execute("CREATE TABLE blind (w VARCHAR COLLATE NOCASE)")
        connection.execute("INSERT INTO blind VALUES ('a'), ('A'), ('b')")
        wards = listed([0], [("a",), ("A",), ("B",)], "VARCHAR")
        found = totals(snapshot, by_ward(atom(of, "w")), wards)
        assert sorted(found.values()) == [1, 2]
        rows = read_domain(snapshot, wards, 9)
        assert {rows[place][0] for (place,) in found} == {"A", "B"}


def test_a_row_that_fits_two_rows_on_postgres(on_postgres: Direct) -> None:
    run = on_postgres.connection.execute
    run(
        "CREATE COLLATION pg_temp.blind "
        "(provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
    )
    blind = ColumnType(Family.TEXT, "text", "blind")
    of = table("blind", "w", types={"w": blind})
    run("CREATE TABLE blind (w text COLLATE pg_temp.blind)")
    run("INSERT INTO blind VALUES ('a'), ('A'), ('b')")
    wards = listed([0], [("a",), ("A",), ("B",)], "VARCHAR")
    found = totals(on_postgres, by_ward(atom(of, "w")), wards)
    assert sorted(found.values()) == [1, 2]


def heavy(one: Atom, column: str) -> Atom:
    return replace(one, weight=Weight(column, 2**62))


@pytest.mark.parametrize("how", ["plain", "factorised"])
def test_sums_beyond_64_bits(anywhere: Direct, how: str) -> None:
    anywhere.fill(VISIT, VISITS)
    places = {row[0]: i for i, row in enumerate(read_domain(anywhere, WARDS, 9))}
    found = totals(anywhere, by_ward(heavy(atom(VISIT, "p", "w"), "cost")), WARDS, how=how)
    assert found == {(places["a"],): 4 + 2**64, (places["B"],): 1, (places[None],): 5}
    anywhere.fill(VISIT, [(1, "a", 2**50), (1, "a", 3), (2, "a", 2**40), (3, "C", 0)])
    squared = by_ward(*(heavy(atom(VISIT, "p", "w"), "cost") for _ in range(2)))
    expected = (2**50 + 3) ** 2 + 2**80
    assert totals(anywhere, squared, WARDS, how=how) == {(places["a"],): expected}


@pytest.mark.parametrize("how", ["plain", "factorised"])
@pytest.mark.parametrize("read", [False, True])
def test_a_weight_counts_once_for_each_distinct_output(
    anywhere: Direct, how: str, read: bool
) -> None:
    """Whoever has a visit: of each person the weight, however many visits there are."""
    person = table("person", "id", "w", "weight", keys=["id"], nullable="w")
    visit = table("any_visit", "person")
    rows: list[Row] = [(1, 0, 4), (2, 0, 2**62), (3, None, 9), (4, 2, 0), (5, 1, 3), (6, None, 1)]
    anywhere.fill(person, rows)
    anywhere.fill(visit, [(1,), (1,), (2,), (2,), (3,), (4,), (6,)])
    known = atom(person, "p", "w", "weight") if read else atom(person, "p", "w")
    signed = by_ward(heavy(known, "weight"), atom(visit, "p"), distinct="p w")
    domain = listed([0], [(0,), (1,), (2,), (None,)])
    found = totals(anywhere, signed, domain, how=how)
    assert found == {(0,): 4 + 2**62, (3,): 10}
    whole = query_text(signed.query, anywhere.dialect)
    assert anywhere.run(whole) == [(14 + 2**62,)]


def check_by_group(seed: int, snapshot: Direct, how: str) -> None:
    """A table whose rows belong to one group each, joined with itself and with public data."""
    rng = random.Random(seed)
    wards = table(
        "patient", "w", "p", "q", keys=["p q"] if rng.random() < 0.5 else [], nullable="w"
    )
    if rng.random() < 0.5:
        wards = with_remainder(wards, "w")
    free = table("open_data", "p", "q", private=False, nullable="q")
    key, numbers = Variable("k", INTEGER), [Variable(name, INTEGER) for name in "abcd"]
    at = wards.columns[-1].name if len(wards.columns) > 3 else "w"
    atoms = [
        Atom(
            f"t{i}",
            wards,
            tuple((c.name, key if c.name == at else rng.choice(numbers)) for c in wards.columns),
        )
        for i in range(rng.choice([1, 2, 2, 3]))
    ]
    if rng.random() < 0.4:
        atoms.append(Atom("free", free, (("p", rng.choice(numbers)), ("q", rng.choice(numbers)))))
    held = sorted(frozenset[Variable]().union(*(one.variables for one in atoms)) - {key})
    pairs = random_pairs(held, rng)
    different = frozenset(Inequality.between(*pair) for pair in pairs if rng.random() < 0.5)
    output = None
    if rng.random() < 0.3:
        output = frozenset(v for v in held if rng.random() < 0.5) | {key}
    if output is None and rng.random() < 0.4:
        atoms = [random_weight(one, None, rng) for one in atoms]
    residuals = Residuals(Query(tuple(atoms), different, distinct=output))
    rows = {of.name: with_values(of, random_rows(stored(of), rng)) for of in (wards, free)}
    for of in (wards, free):
        count = len(stored(of).columns)
        snapshot.fill(stored(of), [row[:count] for row in rows[of.name]])
    groups = random_domain(1, rng)
    wanted = residuals.required
    assert can_measure_by_group(residuals, wanted, (key,))
    found = measuring(snapshot, how).values_by_group(
        residuals, wanted, (key,), [listed([0], groups)]
    )
    place = [c.name for c in wards.columns].index(at)
    for number, (value,) in enumerate(in_order(groups)):
        alone = {**rows, "patient": [row for row in rows["patient"] if row[place] == value]}
        expected = brute.residual_values(residuals, wanted, alone)
        assert found[number,] == expected, (seed, value)
    assert len(found) == len(groups)


@settings(max_examples=examples(40))
@given(seeds, plans)
def test_residuals_by_group_on_duckdb(on_duckdb: Direct, seed: int, how: str) -> None:
    check_by_group(seed, on_duckdb, how)


@settings(max_examples=examples(20))
@given(seeds, plans)
def test_residuals_by_group_on_postgres(on_postgres: Direct, seed: int, how: str) -> None:
    check_by_group(seed, on_postgres, how)


@pytest.mark.parametrize("how", ["plain", "factorised"])
def test_tables_and_variables_with_the_names_of_steps(anywhere: Direct, how: str) -> None:
    private = table("per_key", "k0", "ordinal", "results", nullable="k0 ordinal results")
    public = table("domain_0", "k0", private=False)
    anywhere.fill(private, [(1, 2, 3), (1, 2, 3), (4, 2, None), (5, None, None)])
    anywhere.fill(public, [(1,), (4,), (9,)])
    signed = by_ward(
        atom(private, "o", "x", "y"), atom(private, "o", "x", "z"), keys="ox", distinct="o x"
    )
    renamed = {"o": "o0", "x": "ordinal", "y": "results", "z": "per_key"}

    def again(one: Variable) -> Variable:
        return Variable(renamed[one.name], one.type)

    atoms = tuple(
        replace(one, terms=tuple((c, again(v)) for c, v in one.terms if isinstance(v, Variable)))
        for one in signed.query.atoms
    )
    keys = tuple(again(key) for key in signed.keys if isinstance(key, Variable))
    select = exp.select("k0").from_("domain_0")
    domains = (KeyDomain((0,), select, ""), listed([1], [(None,), (2,)]))
    for output, expected in (
        (None, {(0, 0): 4, (1, 0): 1}),
        (frozenset(keys), {(0, 0): 1, (1, 0): 1}),
    ):
        found = Signed(1, Query(atoms, distinct=output), keys)
        assert totals(anywhere, found, *domains, how=how) == expected
