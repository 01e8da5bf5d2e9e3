"""Statements where units are protected: which owners a measure has, and which are refused."""

from __future__ import annotations

from dataclasses import replace

import pytest
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiler.statement import _Aggregating, compile_statement
from sqlrs.errors import QueryRefused
from sqlrs.measures import Aggregation, Measure
from sqlrs.query import Constant
from sqlrs.refusals import CHAPTERS
from sqlrs.sensitivity.unit_size import measure_size_bound
from sqlrs.units import Link, Owner, Unit
from tests.compiler.test_owners import TABLES

_MONEY = ColumnType(Family.DECIMAL, "DECIMAL(15,2)")
BILL = Table(
    "bill",
    (
        *TABLES[1].columns[:1],
        Column("patient_region", TABLES[1].columns[0].type),
        Column("cost", _MONEY),
    ),
    owners=(Owner("patient"),),
)
CATALOG = Catalog("duckdb", (*TABLES, BILL), unit=Unit("patient.id"))


def _compiled(sql: str, catalog: Catalog = CATALOG) -> Aggregation:
    [aggregation] = compile_statement(sql, catalog).aggregations
    return aggregation


def _shape(sql: str) -> list[list[tuple[int, int]]]:
    """Of each measure the coefficients of its terms and how many owners each has."""
    return [
        sorted((term.coefficient, len(term.owners)) for term in measure.terms)
        for measure in _compiled(sql).measures
    ]


@pytest.mark.parametrize(
    ("sql", "shape"),
    [
        ("SELECT count(*) FROM patient", [[(1, 1)]]),
        ("SELECT region, count(*) FROM patient WHERE region IN (1, 2) GROUP BY region", [[(1, 1)]]),
        ("SELECT product, avg(day) FROM visit WHERE product IN (1, 2) GROUP BY product",
         [[(-1, 1), (1, 1)], [(1, 1)]]),
        ("SELECT sum(cost) FROM bill", [[(-1, 1), (1, 1)]]),
        ("SELECT sum(greatest(cost, 0)) FROM bill", [[(1, 1)]]),
        ("SELECT count(cost) FROM bill", [[(1, 1)]]),
        ("SELECT count(*) FROM bill WHERE patient = 42", [[(1, 1)]]),
        # Inside one unit nothing is taken away, so these have no terms.
        ("SELECT count(*) FROM patient p LEFT JOIN visit v ON v.patient = p.id", [[]]),
        ("SELECT count(*) FROM patient p WHERE NOT EXISTS (SELECT 1 FROM visit v WHERE "
         "v.patient = p.id)", [[]]),
        ("SELECT count(*) FROM (SELECT id FROM patient UNION ALL SELECT patient FROM visit) u",
         [[(1, 1), (1, 1)]]),
        ("SELECT count(*) FROM edge", [[(1, 2)]]),
        ("SELECT count(*) FROM edge a JOIN edge b ON a.dst = b.src", [[(1, 3)]]),
        ("SELECT sum(greatest(b.cost, 0)) FROM bill b JOIN visit v ON b.patient_region = v.product",
         [[(1, 2)]]),
        ("SELECT count(DISTINCT patient) FROM visit", [[(1, 1)]]),
        ("SELECT product, count(DISTINCT patient) FROM visit WHERE product IN (1, 2) GROUP BY 1",
         [[(1, 1)]]),
        ("SELECT count(*) FROM visit WHERE 1 = 2", [[]]),
    ],
)  # fmt: skip
def test_answered(sql: str, shape: list[list[tuple[int, int]]]) -> None:
    assert _shape(sql) == shape


@pytest.mark.parametrize(
    ("sql", "code", "marks", "hint"),
    [
        ("SELECT count(*) FROM lonely", "no_owner", "lonely", "declares"),
        ("SELECT count(DISTINCT product) FROM visit", "unit_lost", "visit", "DISTINCT (unit"),
        ("SELECT count(DISTINCT p.id) FROM patient p JOIN visit v ON p.region = v.product",
         "unit_lost", "visit v", "DISTINCT (unit"),
        ("SELECT count(*) FROM patient p WHERE EXISTS (SELECT 1 FROM visit v WHERE "
         "v.product = p.region)", "unit_lost", "visit v", "outer row"),
        ("SELECT count(*) FROM patient p LEFT JOIN visit v ON v.product = p.region",
         "unit_lost", "visit v", ""),
        ("SELECT count(*) FROM part p LEFT JOIN visit v ON v.product = p.id",
         "unit_lost", "visit v", ""),
        ("SELECT count(*) FROM (SELECT id FROM part UNION ALL SELECT patient FROM visit) u",
         "unit_lost", "", "on its own"),
        ("SELECT src, count(*) FROM edge WHERE src IN (1, 2) GROUP BY src",
         "several_owners", "src", "without GROUP BY"),
        ("SELECT sum(cost) FROM bill b JOIN visit v ON b.patient_region = v.product",
         "several_owners", "sum(cost)", "greatest(column, 0)"),
        ("SELECT count(*) FROM (SELECT src FROM edge UNION ALL SELECT patient FROM visit) u",
         "several_owners", "", "each part"),
        ("SELECT sum(greatest(cost, 0)), sum(cost) FROM bill b JOIN visit v "
         "ON b.patient_region = v.product", "several_owners", "sum(cost)", "greatest(column, 0)"),
    ],
)  # fmt: skip
def test_refused(sql: str, code: str, marks: str, hint: str) -> None:
    with pytest.raises(QueryRefused) as caught:
        _compiled(sql)
    error = caught.value
    assert error.code == code
    assert code in {entry.code for entry in CHAPTERS["units"]}
    assert error.span is not None
    # Nothing marked: the whole statement is.
    assert sql[error.span.start : error.span.end] == (marks or sql)
    assert hint in (error.hint or "")


def test_owners_are_terms_of_the_output() -> None:
    [measure] = _compiled("SELECT count(DISTINCT patient) FROM visit").measures
    [term] = measure.terms
    assert frozenset(term.owners) == (term.query.distinct or frozenset())
    [measure] = _compiled("SELECT count(*) FROM visit WHERE patient = 42").measures
    assert [o.value for o in measure.terms[0].owners if isinstance(o, Constant)] == [42]


def test_without_a_unit_nothing_is_added() -> None:
    rows = replace(CATALOG, unit=None)
    for sql in ("SELECT count(*) FROM item", "SELECT count(DISTINCT product) FROM visit"):
        [measure] = _compiled(sql, rows).measures
        [term] = measure.terms
        assert not term.owners and len(term.query.atoms) == 1


def test_chains_of_two_links() -> None:
    to_item = Link(("o", "l"), (None, "item"), ("order", "line"))
    return_ = Table(
        "returned",
        (Column("o", TABLES[4].columns[0].type), Column("l", TABLES[4].columns[0].type)),
        owners=(Owner("customer", (to_item, TABLES[4].owners[0].links[0])),),
    )
    catalog = replace(CATALOG, tables=(*CATALOG.tables, return_))
    [measure] = _compiled("SELECT count(*) FROM returned r, part p", catalog).measures
    [term] = measure.terms
    assert [a.table.name for a in term.query.atoms] == ["returned", "part", "item", "orders"]
    assert len(term.owners) == 1


def test_sizes_of_measures() -> None:
    for sql, size in [
        ("SELECT count(*) FROM patient", 1),
        ("SELECT sum(CASE WHEN region = 1 THEN 2 ELSE 5 END) FROM patient", 5),
        ("SELECT sum(region) FROM patient", 2**31 + 2**31 - 1),
        ("SELECT count(*) FROM visit", None),
        ("SELECT count(*) FROM visit WHERE 1 = 2", 0),
    ]:
        [measure] = _compiled(sql).measures
        assert measure_size_bound(measure) == size, sql


@pytest.mark.parametrize(
    ("sql", "asked"),
    [
        ("SELECT count(*) FROM visit", False),
        ("SELECT sum(greatest(cost, 0)) FROM bill", False),
        ("SELECT sum(cost) FROM bill", True),
        ("SELECT count(*) FROM edge", True),
        ("SELECT count(DISTINCT product) FROM visit", True),
        ("SELECT count(*) FROM (SELECT patient FROM visit LIMIT 3) t", True),
    ],
)
def test_what_is_not_plain_is_asked_unit_by_unit_first(
    sql: str, asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    by_unit = Measure((), unit=Measure(()).unit * 3)

    def measured(self: _Aggregating, aggregate: exp.Expr) -> Measure:
        return by_unit

    monkeypatch.setattr(_Aggregating, "_measure_by_unit", measured)
    assert (_compiled(sql).measures == (by_unit,)) == asked
