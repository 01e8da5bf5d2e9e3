"""Every construct of the language with the query that shows it, and the small data it runs on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import Decimal

from sqlrs.catalog import ColumnType, Family, Table
from sqlrs.settings import Settings
from tests.support.builders import TEXT, table

DATE = ColumnType(Family.DATE, "DATE")
TIMESTAMP = ColumnType(Family.TIMESTAMP, "TIMESTAMP")
MONEY = ColumnType(Family.DECIMAL, "DECIMAL(9, 2)")
Row = tuple[object, ...]

TABLES: tuple[Table, ...] = (
    table("edge", "src", "dst", keys=["src dst"]),
    table(
        "visit", "patient", "day", "at", "cost", "hospital", nullable="hospital cost",
        types={"day": DATE, "at": TIMESTAMP, "cost": MONEY, "hospital": TEXT},
    ),
    table("person", "id", "born", "city", keys=["id"], types={"born": DATE, "city": TEXT}),
    table("city", "name", "country", keys=["name"], types={"name": TEXT, "country": TEXT}),
    table("Order", "select", "größe", 'a "b"', keys=["select"]),
    replace(table("room", "id", "floor", keys=["id"]), schema="clinic"),
)  # fmt: skip
PUBLIC = ("city",)


def _visit(patient: int, day: int, hour: int, cost: str | None, hospital: str | None) -> Row:
    return (
        patient, date(2024, 2, day), datetime(2024, 2, day, hour),
        None if cost is None else Decimal(cost), hospital,
    )  # fmt: skip


ROWS: dict[str, list[Row]] = {
    "edge": [(1, 2), (2, 3), (3, 1), (1, 3), (3, 3), (3, 4), (4, 1), (2, 5)],
    "visit": [
        _visit(1, 26, 8, "10.00", "m"), _visit(1, 27, 9, "20.50", "p"),
        _visit(1, 29, 7, "20.50", "q"), _visit(1, 29, 7, "20.50", "q"),
        _visit(2, 26, 8, None, "p"), _visit(2, 28, 10, "5.25", None),
        _visit(2, 28, 10, "30.00", "m"), _visit(3, 27, 9, None, None),
        _visit(4, 26, 9, "1.00", None), _visit(4, 26, 9, "1.50", None),
        _visit(4, 26, 10, None, None), _visit(4, 26, 11, None, None), _visit(3, 27, 9, "7.00", "q"),
    ],
    "person": [
        (1, date(1980, 5, 1), "A"), (2, date(1990, 1, 31), "B"), (3, date(1985, 7, 7), "A"),
    ],
    "city": [("A", "x"), ("B", "x"), ("C", "y")],
    "Order": [(1, 10, 5), (2, 20, 5), (3, 20, 6)],
    "clinic.room": [(1, 0), (2, 0), (3, 1)],
}  # fmt: skip

_PLAIN = Settings(plan="plain")


@dataclass(frozen=True)
class Construct:
    """A query that shows one construct, with the settings it is planned under."""

    sql: str
    settings: Settings = _PLAIN


_FACTORISED, _PRUNED = Settings(plan="factorised"), Settings(plan="pruned")
_THREE = "FROM visit a JOIN visit b USING (patient) JOIN visit c USING (patient)"
_EDGES = "FROM edge a JOIN edge b ON a.dst = b.src"

_GIVEN: dict[str, str | Construct] = {
    # joins
    "join_on": f"SELECT count(*) {_EDGES}",
    "join_using": "SELECT count(*) FROM edge a JOIN edge b USING (src)",
    "natural_join": "SELECT count(*) FROM edge a NATURAL JOIN edge b",
    "comma_join": "SELECT count(*) FROM edge a, edge b WHERE a.dst = b.src",
    "cross_join": "SELECT count(*) FROM edge a CROSS JOIN person p",
    "nested_join": "SELECT count(*) FROM edge a JOIN (edge b JOIN edge c ON b.dst = c.src) "
    "ON a.dst = b.src",
    "derived_table": "SELECT count(*) FROM (SELECT src AS x, dst AS y FROM edge WHERE src < 4) "
    "d JOIN edge e ON d.y = e.src",
    "common_table_expression": "WITH near AS (SELECT dst FROM edge WHERE src = 1) "
    "SELECT count(*) FROM near JOIN edge ON near.dst = edge.src",
    "triangle": f"SELECT count(*) {_EDGES} JOIN edge c ON b.dst = c.src AND c.dst = a.src",
    "disconnected_parts": f"SELECT count(*) {_EDGES}, person p JOIN visit v ON p.id = v.patient",
    # what single tables say
    "filters": "SELECT count(*) FROM visit v JOIN person p ON v.patient = p.id "
    "WHERE (v.hospital LIKE 'p%' OR v.cost > 6) AND p.city IN ('A', 'B') AND v.patient % 2 = 1",
    "constant": f"SELECT count(*) {_EDGES} WHERE a.dst = 3",
    "repeated_variable": f"SELECT count(*) {_EDGES} WHERE a.src = a.dst",
    "count_column": "SELECT count(v.hospital) FROM visit v JOIN person p ON v.patient = p.id",
    "null_guards": "SELECT count(*) FROM visit a JOIN visit b ON a.hospital = b.hospital "
    "WHERE a.cost <> b.cost",
    "bag": "SELECT count(*) FROM visit a JOIN visit b USING (patient)",
    "keyed": "SELECT count(*) FROM visit v JOIN person p ON v.patient = p.id",
    "public": "SELECT count(*) FROM person p JOIN city c ON p.city = c.name "
    "JOIN visit v ON v.patient = p.id",
    # predicates between tables
    "inequality": f"SELECT count(*) {_EDGES} JOIN edge c ON b.dst = c.src "
    "WHERE a.src <> b.dst AND a.src <> c.dst AND a.dst <> c.dst",
    "comparison_constant": f"SELECT count(*) {_EDGES} WHERE a.dst <= 3 AND b.dst > 1",
    "comparison_two_constants": "SELECT count(*) FROM visit a JOIN visit b USING (patient) "
    "WHERE a.cost < 10 AND b.cost < 30",
    "comparison_internal": f"SELECT count(*) {_THREE} WHERE a.day < b.day",
    "between": f"SELECT count(*) {_THREE} WHERE b.day BETWEEN a.day AND c.day",
    "sweep_integer": "SELECT count(*) FROM edge a JOIN edge b USING (src) JOIN edge c "
    "USING (src) WHERE a.dst < b.dst AND b.dst < c.dst",
    "sweep_date": f"SELECT count(*) {_THREE} WHERE a.day < b.day AND b.day < c.day",
    "sweep_decimal": f"SELECT count(*) {_THREE} WHERE a.cost < b.cost AND b.cost <= c.cost",
    "sweep_text": f"SELECT count(*) {_THREE} "
    "WHERE a.hospital < b.hospital AND b.hospital < c.hospital",
    "sweep_timestamp": f"SELECT count(*) {_THREE} WHERE a.at < b.at AND b.at < c.at",
    "sweep_constant": "SELECT count(*) FROM visit a, visit b "
    "WHERE a.day < b.day AND b.day <= DATE '2024-02-28'",
    "domain_constant": "SELECT count(*) FROM visit a, visit b "
    "WHERE a.day < b.day AND b.day <= DATE '2024-02-28' AND b.cost > a.cost AND b.cost < 25",
    "domain_integer": "SELECT count(*) FROM edge a JOIN edge b USING (src) JOIN edge c "
    "USING (src) JOIN edge d USING (src) "
    "WHERE a.dst < b.dst AND b.dst < c.dst AND c.dst < d.dst",
    "domain_decimal": f"SELECT count(*) {_THREE} JOIN visit d USING (patient) "
    "WHERE a.cost < b.cost AND b.cost <= c.cost AND c.cost < d.cost",
    "relaxed": Construct(
        f"SELECT count(*) {_THREE} WHERE a.day < b.day AND b.day < c.day",
        Settings(plan="plain", max_external=0),
    ),
    "general_internal": f"SELECT count(*) {_THREE} WHERE a.cost + b.cost < 40",
    "general_solved": Construct(
        "SELECT count(*) FROM visit a JOIN visit b USING (patient) WHERE abs(a.day - b.day) <= 1",
        Settings(plan="plain", solver=True),
    ),
    # projection
    "distinct_column": "SELECT count(DISTINCT a.hospital) FROM visit a JOIN visit b "
    "USING (patient) WHERE a.day <> b.day",
    "distinct_rows": "SELECT count(*) FROM (SELECT DISTINCT v.hospital, p.city FROM visit v "
    "JOIN person p ON v.patient = p.id) AS d",
    "distinct_of_two_tables": "SELECT count(*) FROM (SELECT DISTINCT a.hospital, b.day "
    "FROM visit a JOIN visit b USING (patient) "
    "WHERE a.hospital <> b.hospital AND a.day <> b.day) AS d",
    "distinct_external": f"SELECT count(DISTINCT a.cost) {_THREE} "
    "WHERE a.day < b.day AND b.day < c.day",
    "exists": "SELECT count(*) FROM person p "
    "WHERE EXISTS (SELECT 1 FROM visit v WHERE v.patient = p.id AND v.day > p.born)",
    "in_subquery": "SELECT count(*) FROM person p "
    "WHERE p.id IN (SELECT patient FROM visit WHERE hospital = 'm')",
    # names
    "quoted_names": 'SELECT count(*) FROM "Order" AS "from" JOIN "Order" AS "b c" '
    'ON "from"."größe" = "b c"."größe" WHERE "from"."a ""b""" <= "b c"."a ""b"""',
    "schema_qualified": "SELECT count(*) FROM clinic.room a JOIN clinic.room b USING (floor)",
    # other plans
    "factorised_path": Construct(
        f"SELECT count(*) {_EDGES} JOIN edge c ON b.dst = c.src JOIN edge d ON c.dst = d.src",
        _FACTORISED,
    ),
    "factorised_inequality": Construct(
        f"SELECT count(*) {_EDGES} JOIN edge c ON b.dst = c.src WHERE a.src <> c.dst",
        _FACTORISED,
    ),
    "factorised_distinct": Construct(
        f"SELECT count(DISTINCT a.src) {_EDGES} JOIN edge c ON b.dst = c.src", _FACTORISED
    ),
    "pruned_square": Construct(
        f"SELECT count(*) {_EDGES} JOIN edge c ON b.dst = c.src "
        "JOIN edge d ON c.dst = d.src AND d.dst = a.src",
        _PRUNED,
    ),
}
CONSTRUCTS: dict[str, Construct] = {
    name: given if isinstance(given, Construct) else Construct(given)
    for name, given in _GIVEN.items()
}
