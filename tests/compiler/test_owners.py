"""The owners of results, against the definition: what is left of an answer without a unit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.compile import compile_query
from sqlrs.compiler.owners import OwnedQuery, OwnersUnknown, owner_words, with_owners
from sqlrs.compiler.simplify import Contradiction
from sqlrs.errors import UsageError
from sqlrs.measures import Signed
from sqlrs.query import Constant, Query, Term, Variable
from sqlrs.sensitivity.unit_size import size_bound
from sqlrs.units import Link, Owner, Unit
from tests.support import brute, sql_cases, units
from tests.support.examples import examples
from tests.support.strategies import ALL, Draw, TinyDatabase, databases, queries

_INT = ColumnType(Family.INTEGER, "INTEGER")


def _results(
    query: Query, database: brute.Database, shown: Iterable[Variable], owners: Iterable[Term]
) -> Counter[tuple[tuple[object, ...], frozenset[object]]]:
    """How often each value of ``shown`` comes with each set of owners; once if DISTINCT."""
    evaluate = sql_cases.evaluator(query)
    found: Counter[tuple[tuple[object, ...], frozenset[object]]] = Counter()
    seen = set()
    for a, weight in brute.weighed(query, query.everything, database, evaluate):
        if not all(brute.holds(p, a, evaluate) for p in query.predicates):
            continue
        if query.distinct is not None:
            output = tuple(a[v] for v in sorted(query.distinct))
            if output in seen:
                continue
            seen.add(output)
        ids = frozenset(o.value if isinstance(o, Constant) else a[o] for o in owners)
        found[tuple(a[v] for v in shown), ids] += weight
    return found


def _values(found: Counter[Any]) -> Counter[tuple[object, ...]]:
    total: Counter[tuple[object, ...]] = Counter()
    for (values, _), number in found.items():
        total[values] += number
    return total


def check_owners(
    query: Query, owned: OwnedQuery, catalog: Catalog, database: brute.Database
) -> None:
    """A unit that leaves takes its own results with it and changes no other, by definition."""
    shown = sorted(query.variables(query.everything) if query.distinct is None else query.distinct)
    found = _results(owned.query, database, shown, owned.owners)
    everything = _results(query, units.owned_rows(catalog, database), shown, ())
    assert _values(found) == _values(everything)
    assert all(bool(ids) == bool(query.private) and None not in ids for _, ids in found)
    size = size_bound(Signed(1, owned.query, (), owned.owners))
    for unit in units.units_in(catalog, database):
        smaller = units.owned_rows(catalog, units.without_unit(catalog, database, unit))
        left = Counter({key: n for key, n in found.items() if unit not in key[1]})
        assert _values(_results(query, smaller, shown, ())) == _values(left)
        if size is not None:
            assert found.total() - left.total() <= size


@st.composite
def _with_unit(draw: Draw, database: TinyDatabase) -> TinyDatabase:
    """The same database with owners of its private tables: columns, or links to a key."""
    done: list[Table] = []
    for table in database.catalog.tables:
        names = {c.name for c in table.columns}
        own = [Owner(name) for name in sorted(names) if name in "abc"] or [Owner("d")]
        linked = [
            Owner(column, (Link(tuple(sorted(key)), other.identity, tuple(sorted(key))),))
            for other in done
            for key in other.keys
            if key <= names
            for column in (
                [c.name for c in other.columns]
                if not other.private
                else [owner.column for owner in other.owners if not owner.links]
            )
        ]
        far = [
            Owner(owner.column, (Link(key, other.identity, key), *owner.links))
            for other in done
            if other.private
            for owner in other.owners
            if owner.links
            for key in map(tuple, map(sorted, other.keys))
            if set(key) <= names
        ]
        options = draw(st.sampled_from([o for o in (own, linked, far) if o]))
        owners = draw(st.lists(st.sampled_from(options), min_size=1, max_size=2, unique=True))
        done.append(replace(table, owners=tuple(owners) if table.private else ()))
    catalog = replace(database.catalog, tables=tuple(done), unit=Unit("r.a"))
    return TinyDatabase(catalog, database.rows)


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_a_unit_takes_its_results_with_it_and_changes_no_other(data: st.DataObject) -> None:
    private = data.draw(st.sampled_from([True, True, None]))
    database = data.draw(_with_unit(data.draw(databases(private, max_rows=3))))
    catalog = database.catalog
    query = compile_query(data.draw(queries(catalog, ALL)), catalog)
    if isinstance(query, Contradiction):
        return
    try:
        owned = with_owners(query, catalog)
    except OwnersUnknown as unknown:
        event(unknown.code)
        assert unknown.code == "unit_lost" and query.distinct is not None
        return
    event(f"{len(owned.owners)} owners, distinct: {query.distinct is not None}")
    check_owners(query, owned, catalog, database.by_name)
    assert owner_words(owned.query, owned.owners, "r.a")


def _table(name: str, columns: str, key: str = "", *owners: Owner, private: bool = True) -> Table:
    """Columns with ? may be NULL."""
    keys = frozenset({frozenset(key.split())} if key else ())
    named = tuple(Column(c.rstrip("?"), _INT, c.endswith("?")) for c in columns.split())
    return Table(name, named, keys, private, owners=owners)


_TO_ORDERS = Link(("order",), (None, "orders"), ("id",))
TABLES = (
    _table("patient", "id region?", "id", Owner("id")),
    _table("visit", "patient? product day", "", Owner("patient")),
    _table("edge", "src dst", "src dst", Owner("src"), Owner("dst")),
    _table("orders", "id customer? clerk", "id", Owner("customer")),
    _table("item", "order? line part", "order line", Owner("customer", (_TO_ORDERS,))),
    _table("part", "id size", "id", private=False),
    _table("lonely", "x"),
)
CATALOG = Catalog("duckdb", TABLES, unit=Unit("patient.id"))


def _owned(sql: str, catalog: Catalog = CATALOG) -> tuple[Query, OwnedQuery]:
    query = compile_query(sql, catalog)
    assert isinstance(query, Query)
    return query, with_owners(query, catalog)


@pytest.mark.parametrize(
    ("sql", "owners", "atoms", "words"),
    [
        ("SELECT count(*) FROM patient", 1, 1, "one unit: patient.id through patient.id"),
        ("SELECT count(*) FROM visit", 1, 1, "one unit: patient.id through visit.patient"),
        (
            "SELECT count(*) FROM visit v JOIN visit w ON v.patient = w.patient",
            1,
            2,
            "one unit: patient.id through visit.patient",
        ),
        (
            "SELECT count(*) FROM visit v JOIN visit w ON v.product = w.product",
            2,
            2,
            "up to 2 units: patient.id through visit.patient; patient.id through visit.patient",
        ),
        (
            "SELECT count(*) FROM item",
            1,
            2,
            "one unit: patient.id through item.order → orders.customer and orders.customer",
        ),
        ("SELECT count(*) FROM item i JOIN orders o ON i.order = o.id", 1, 2, "one unit"),
        ("SELECT count(*) FROM item i JOIN orders o ON i.line = o.id", 2, 3, "up to 2 units"),
        ("SELECT count(*) FROM item i JOIN item j ON i.order = j.order", 1, 3, "one unit"),
        ("SELECT count(*) FROM orders o JOIN orders p ON o.id = p.id", 1, 2, "one unit"),
        (
            "SELECT count(*) FROM orders o, orders p, visit v WHERE o.id = p.id AND "
            "o.customer < v.patient AND p.customer < v.product",
            2,
            3,
            "up to 2 units",
        ),
        ('SELECT count(*) FROM item WHERE "order" = 7', 1, 2, "one unit"),
        ("SELECT count(*) FROM visit WHERE patient = 42", 1, 1, "one unit"),
        ("SELECT count(*) FROM edge", 2, 1, "up to 2 units"),
        ("SELECT count(*) FROM edge WHERE src = dst", 1, 1, "one unit"),
        ("SELECT count(*) FROM edge WHERE src = 1 AND dst = 1", 1, 1, "one unit"),
        ("SELECT count(*) FROM part", 0, 1, "no result belongs to a unit"),
        ("SELECT count(*) FROM part p JOIN visit v ON p.id = v.product", 1, 2, "one unit"),
        ("SELECT count(DISTINCT patient) FROM visit", 1, 1, "one unit"),
        ("SELECT count(DISTINCT (patient, product)) FROM visit", 1, 1, "one unit"),
        (
            "SELECT count(*) FROM patient p WHERE EXISTS (SELECT 1 FROM visit v WHERE "
            "v.patient = p.id)",
            1,
            2,
            "one unit",
        ),
        ('SELECT count(DISTINCT "order") FROM item', 1, 2, "one unit"),
        (
            "SELECT count(DISTINCT (p.id, v.patient)) FROM patient p JOIN visit v ON "
            "p.region = v.product",
            2,
            2,
            "up to 2 units",
        ),
    ],
)
def test_examples(sql: str, owners: int, atoms: int, words: str) -> None:
    _, owned = _owned(sql)
    assert (len(owned.owners), len(owned.query.atoms)) == (owners, atoms)
    assert words in owner_words(owned.query, owned.owners, "patient.id")


@pytest.mark.parametrize(
    ("sql", "alias", "code"),
    [
        ("SELECT count(DISTINCT product) FROM visit", "visit", "unit_lost"),
        (
            "SELECT count(DISTINCT p.id) FROM patient p JOIN visit v ON p.region = v.product",
            "v",
            "unit_lost",
        ),
        (
            "SELECT count(*) FROM patient p WHERE id IN (SELECT product FROM visit)",
            "visit",
            "unit_lost",
        ),
        ("SELECT count(DISTINCT src) FROM edge", "edge", "unit_lost"),
        ("SELECT count(DISTINCT line) FROM item", "item", "unit_lost"),
        ("SELECT count(*) FROM lonely", "lonely", "no_owner"),
    ],
)
def test_what_has_no_such_owners_is_refused(sql: str, alias: str, code: str) -> None:
    query = compile_query(sql, CATALOG)
    assert isinstance(query, Query)
    with pytest.raises(OwnersUnknown) as caught:
        with_owners(query, CATALOG)
    assert caught.value.code == code
    assert caught.value.alias.endswith(alias)


def test_ids_that_may_be_null_are_not() -> None:
    for sql, filters in [
        ("SELECT count(*) FROM visit", 1),
        ("SELECT count(*) FROM visit WHERE patient IS NOT NULL", 1),
        ("SELECT count(*) FROM visit v JOIN patient p ON v.patient = p.id", 0),
        ("SELECT count(*) FROM visit v WHERE patient = 3", 0),
        ("SELECT count(*) FROM visit v JOIN visit w ON v.patient < w.patient", 0),
        ("SELECT count(*) FROM patient", 0),
        ("SELECT count(*) FROM item", 1),
    ]:
        _, owned = _owned(sql)
        assert sum(len(atom.filters) for atom in owned.query.atoms) == filters, sql


def test_a_link_leads_to_a_key() -> None:
    to_visit = Owner("patient", (Link(("x",), (None, "visit"), ("product",)),))
    tables = (*TABLES[:-1], _table("lonely", "x", "", to_visit))
    with pytest.raises(UsageError, match="is no key of visit"):
        _owned("SELECT count(*) FROM lonely", replace(CATALOG, tables=tables))


def test_a_link_joins_one_type() -> None:
    by_name = Table("note", (Column("p", ColumnType(Family.TEXT, "VARCHAR")),))
    to_patient = Owner("id", (Link(("p",), (None, "patient"), ("id",)),))
    tables = (*TABLES, replace(by_name, owners=(to_patient,)))
    with pytest.raises(UsageError, match="whose type is another one"):
        _owned("SELECT count(*) FROM note", replace(CATALOG, tables=tables))


def test_chains_that_do_not_end_are_refused() -> None:
    up = Owner("boss", (Link(("boss",), (None, "staff"), ("id",)),))
    tables = (*TABLES, _table("staff", "id boss", "id", up))
    with pytest.raises(OwnersUnknown) as caught:
        _owned("SELECT count(*) FROM staff", replace(CATALOG, tables=tables))
    assert caught.value.code == "too_complex"


def test_owners_of_what_a_chain_passes_are_owners_too() -> None:
    """An order that leaves with its clerk leaves its items without an owner."""
    orders = replace(TABLES[3], owners=(Owner("customer"), Owner("clerk")))
    catalog = replace(CATALOG, tables=(*TABLES[:3], orders, *TABLES[4:]))
    query, owned = _owned("SELECT count(*) FROM item", catalog)
    database = {t.label: list[brute.Row]() for t in TABLES} | {
        "orders": [(1, 10, 20), (2, 10, 21), (3, None, 22)],
        "item": [(1, 1, 0), (1, 2, 0), (2, 1, 0), (3, 1, 0), (9, 1, 0)],
    }
    assert len(owned.owners) == 2
    check_owners(query, owned, catalog, database)
    with pytest.raises(AssertionError):
        check_owners(query, replace(owned, owners=owned.owners[:1]), catalog, database)


DATABASE: brute.Database = {
    "patient": [(1, 0), (2, 0), (3, 0), (4, None), (5, 1)],
    "visit": [(9, 0, 5), (9, 0, 6), (9, 1, 5), (2, 1, 5), (None, 0, 5)],
    "edge": [(5, 0), (6, 0), (7, 0), (0, 1), (0, 2), (4, 4)],
    "orders": [],
    "item": [],
    "part": [(0, 1)],
    "lonely": [],
}


def _all_owners(sql: str) -> tuple[Query, OwnedQuery]:
    """A DISTINCT query and its owners as those of its join, whether the output decides them."""
    query = compile_query(sql, CATALOG)
    assert isinstance(query, Query) and query.distinct is not None
    return query, with_owners(replace(query, distinct=None), CATALOG)


WRONG = [
    "SELECT count(DISTINCT p.id) FROM patient p JOIN visit v ON p.region = v.product",
    "SELECT count(DISTINCT product) FROM visit",
    "SELECT count(DISTINCT src) FROM edge",
    "SELECT count(*) FROM patient p WHERE region IN (SELECT product FROM visit)",
]


@pytest.mark.parametrize("sql", WRONG)
def test_the_check_finds_owners_that_the_output_does_not_decide(sql: str) -> None:
    query, joined = _all_owners(sql)
    assert query.distinct is not None
    held = {term for term in joined.owners if isinstance(term, Variable)}
    # The owners join the output all the same, which is then counted more than once ...
    wider = replace(joined.query, distinct=query.distinct | held)
    with pytest.raises(AssertionError):
        check_owners(query, OwnedQuery(wider, joined.owners), CATALOG, DATABASE)
    # ... or only those that the output holds are owners, and others change results too.
    kept = tuple(term for term in joined.owners if term in query.distinct)
    narrow = replace(joined.query, distinct=query.distinct)
    with pytest.raises(AssertionError):
        check_owners(query, OwnedQuery(narrow, kept), CATALOG, DATABASE)


def test_the_check_finds_rows_without_an_owner() -> None:
    query, owned = _owned("SELECT count(*) FROM visit")
    check_owners(query, owned, CATALOG, DATABASE)
    bare = tuple(replace(atom, filters=()) for atom in owned.query.atoms)
    with pytest.raises(AssertionError):
        check_owners(
            query, replace(owned, query=replace(owned.query, atoms=bare)), CATALOG, DATABASE
        )


@pytest.mark.parametrize(
    ("sql", "size"),
    [
        ("SELECT count(*) FROM patient", 1),
        ("SELECT count(*) FROM patient WHERE id = 3", 1),
        ("SELECT count(DISTINCT patient) FROM visit", 1),
        ("SELECT count(DISTINCT (patient, 1)) FROM visit WHERE product = 2", 1),
        ("SELECT count(DISTINCT (patient, product)) FROM visit WHERE product = 2", 1),
        ("SELECT count(DISTINCT (patient, product)) FROM visit", None),
        ("SELECT count(*) FROM visit", None),
        ("SELECT count(*) FROM visit WHERE patient = 3", None),
        ("SELECT count(*) FROM patient p JOIN part q ON p.region = q.id", 1),
        ("SELECT count(*) FROM patient p JOIN part q ON p.region = q.size", None),
        ("SELECT count(*) FROM patient p JOIN patient q ON p.region = q.id", None),
        ("SELECT count(*) FROM edge", None),
        ("SELECT count(*) FROM edge WHERE dst = 3", None),
        ("SELECT count(*) FROM edge WHERE src = dst", 1),
        ("SELECT count(*) FROM part", 0),
    ],
)
def test_what_keys_say_of_one_unit(sql: str, size: int | None) -> None:
    _, owned = _owned(sql)
    assert size_bound(Signed(1, owned.query, (), owned.owners)) == size
    tripled = size_bound(Signed(-3, owned.query, (), owned.owners))
    assert tripled == (None if size is None else 3 * size)
