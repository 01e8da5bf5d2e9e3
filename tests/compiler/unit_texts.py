"""Random texts over a small schema of units, safe and unsafe ones alike: nobody here knows which.

Every query shows the columns pid and x, both whole numbers, and pid is not always the unit's id.
"""

from __future__ import annotations

from random import Random
from typing import TypeVar

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.units import Link, Owner, Unit

INTEGER = ColumnType(Family.INTEGER, "INTEGER")
TEXT = ColumnType(Family.TEXT, "VARCHAR")
DECIMAL = ColumnType(Family.DECIMAL, "DECIMAL(10,2)")
DOUBLE = ColumnType(Family.FLOAT, "DOUBLE")
BOOLEAN = ColumnType(Family.BOOLEAN, "BOOLEAN")


def _key(*names: str) -> frozenset[frozenset[str]]:
    return frozenset({frozenset(names)})


PATIENT = Table(
    "patient",
    (Column("id", INTEGER, False), Column("age", INTEGER), Column("town", INTEGER)),
    _key("id"),
    owners=(Owner("id"),),
)
VISIT = Table(
    "visit",
    (
        Column("vid", INTEGER, False),
        Column("patient", INTEGER),
        Column("town", INTEGER),
        Column("cost", DECIMAL),
        Column("score", DOUBLE),
        Column("urgent", BOOLEAN),
    ),
    _key("vid"),
    owners=(Owner("patient"),),
)
ITEM = Table(
    "item",
    (Column("visit", INTEGER), Column("drug", INTEGER), Column("n", INTEGER)),
    owners=(Owner("patient", (Link(("visit",), (None, "visit"), ("vid",)),)),),
)
TOWN = Table(
    "town",
    (Column("tid", INTEGER, False), Column("name", TEXT), Column("region", INTEGER)),
    _key("tid"),
    private=False,
)
EDGE = Table(
    "edge",
    (Column("src", INTEGER), Column("dst", INTEGER)),
    owners=(Owner("src"), Owner("dst")),
)
TABLES = (PATIENT, VISIT, ITEM, TOWN)


def catalog(dialect: str = "duckdb", *further: Table) -> Catalog:
    """The catalog of the tables, whose unit is the patient."""
    return Catalog(dialect, (*TABLES, *further), unit=Unit("patient.id"))


_T = TypeVar("_T")
Row = tuple[object, ...]
Rows = dict[str, list[Row]]


def random_rows(random: Random) -> Rows:
    """A tiny database: NULLs, ids without a patient, dangling links, equal rows, special values."""

    def one(*values: object) -> object:
        return random.choice(values)

    patients: list[Row] = [
        (i, one(None, 0, 1, 2), one(None, 0, 1, 2)) for i in range(random.randint(0, 4))
    ]
    visits: list[Row] = [
        (
            10 + i,
            one(None, 0, 1, 2, 3),
            one(None, 0, 1, 2),
            one(None, "0.00", "1.50", "-2.25", "99999999.99"),
            one(None, "NaN", "-0.0", "0.0", "Infinity", "1.5"),
            one(None, True, False),
        )
        for i in range(random.randint(0, 9))
    ]
    items: list[Row] = [
        (one(None, 10, 11, 12, 13, 99), one(None, 0, 1), one(None, 0, 1, 2, -3))
        for _ in range(random.randint(0, 8))
    ]
    towns: list[Row] = [(i, one("a", "b", None), one(None, 0, 1)) for i in range(3)]
    return {"patient": patients, "visit": visits, "item": items, "town": towns}


def owner_of(table: str, row: Row, rows: Rows) -> object:
    """The unit that owns a row, None for public rows and for rows without one."""
    if table == "item":
        return next((v[1] for v in rows["visit"] if v[0] == row[0]), None)
    return {"patient": row[0], "visit": row[1]}.get(table)


def only(unit: object, rows: Rows) -> Rows:
    """The database of one unit alone, with what is public."""
    return {
        table: [row for row in found if table == "town" or owner_of(table, row, rows) == unit]
        for table, found in rows.items()
    }


def owned(rows: Rows) -> Rows:
    """The database without the rows that nobody owns."""
    return {
        table: [row for row in found if table == "town" or owner_of(table, row, rows) is not None]
        for table, found in rows.items()
    }


class Texts:
    """Draws texts."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._names = 0

    def statement(self) -> str:
        """One aggregate, or several, over a nested query."""
        inner = self.query(self._random.randint(1, 3))
        what = self._one("count(*)", "sum(t.x)", "count(t.x)", "count(DISTINCT t.pid)")
        if self._chance(0.15):
            what += " FILTER (WHERE t.x > 0)"
        if self._chance(0.2):
            where = "WHERE t.x IN (0, 1, 2) GROUP BY t.x"
            return f"SELECT t.x, {what} FROM ({inner}) AS t {where}"
        return f"SELECT {what} FROM ({inner}) AS t"

    def query(self, depth: int) -> str:
        """A query that shows pid and x."""
        if depth == 0:
            return self._one(
                "SELECT patient AS pid, town AS x FROM visit",
                "SELECT patient AS pid, vid AS x FROM visit",
                "SELECT id AS pid, age AS x FROM patient",
                "SELECT visit AS pid, n AS x FROM item",
                "SELECT tid AS pid, region AS x FROM town",
                "SELECT v.patient AS pid, i.n AS x FROM visit AS v JOIN item AS i "
                "ON i.visit = v.vid",
                "SELECT patient AS pid, CAST(cost AS INTEGER) AS x FROM visit WHERE score > 0",
            )
        shape = self._one(
            *(self._filter, self._group, self._group, self._join, self._join, self._distinct),
            *(self._both, self._window, self._exists, self._in, self._scalar, self._swap),
            *(self._public, self._full, self._sets, self._beside),
        )
        return shape(depth)

    def _filter(self, depth: int) -> str:
        a, given = self._from(depth)
        return f"SELECT {a}.pid, {a}.x FROM {given} WHERE {self._condition(a)}"

    def _condition(self, a: str) -> str:
        return self._one(
            f"{a}.x > 0", f"{a}.x IS NULL", f"{a}.x <> 1 OR {a}.pid = 2", f"NOT ({a}.x = {a}.pid)"
        )

    def _group(self, depth: int) -> str:
        a, given = self._from(depth)
        what = self._one(
            "count(*)", f"sum({a}.x)", f"max({a}.x)", f"count(DISTINCT {a}.x)", f"min({a}.pid)"
        )  # fmt: skip
        having = self._one("", "", " HAVING count(*) > 1", f" HAVING bool_or({a}.x > 0)")
        if self._chance(0.2):
            return f"SELECT min({a}.pid) AS pid, count(*) AS x FROM {given} GROUP BY {a}.x{having}"
        further = self._one("", f", {a}.x")
        return f"SELECT {a}.pid, {what} AS x FROM {given} GROUP BY {a}.pid{further}{having}"

    def _sets(self, depth: int) -> str:
        a, given = self._from(depth)
        what = self._one("count(*)", f"sum({a}.x)", f"{a}.x", f"min({a}.pid)")
        keys = self._one(
            f"GROUPING SETS (({a}.pid, {a}.x), {a}.pid)",
            f"{a}.pid, ROLLUP ({a}.x)",
            f"{a}.pid, CUBE ({a}.x, {a}.x + 1)",
            f"GROUPING SETS (({a}.pid, {a}.x), ({a}.x))",
            f"ROLLUP ({a}.pid, {a}.x)",
        )
        having = self._one("", f" HAVING {a}.x IS NULL", " HAVING count(*) > 1")
        return f"SELECT {a}.pid, {what} AS x FROM {given} GROUP BY {keys}{having}"

    def _beside(self, depth: int) -> str:
        a, given = self._from(depth)
        b, inner = self._from(1)
        c = self._name()
        on = self._one(*[f"{b}.pid = {a}.pid"] * 4, f"{b}.x = {a}.x", f"{b}.pid = {a}.x")
        further = self._one("", f" AND {b}.x > {a}.x")
        shown = self._one(
            f"SELECT {b}.x FROM {inner} WHERE {on}{further}",
            f"SELECT count(*) AS x FROM {inner} WHERE {on}{further}",
            f"SELECT {b}.x, count(*) AS n FROM {inner} WHERE {on}{further} GROUP BY {b}.x",
        )
        join = self._one(",", " CROSS JOIN", " LEFT JOIN")
        true = " ON true" if join == " LEFT JOIN" else ""
        pid = self._one(f"{a}.pid", f"{a}.pid", f"{a}.pid", f"{c}.x AS pid")
        return f"SELECT {pid}, {c}.x FROM {given}{join} LATERAL ({shown}) AS {c}{true}"

    def _join(self, depth: int) -> str:
        a, first = self._from(depth)
        b, second = self._from(depth - 1 if self._chance(0.5) else 1)
        kind = self._one("JOIN", "LEFT JOIN", "RIGHT JOIN")
        on = self._one(
            *[f"{a}.pid = {b}.pid"] * 4,
            f"{a}.pid = {b}.pid AND {a}.x < {b}.x",
            f"{a}.x = {b}.x",
            f"{a}.pid = {b}.pid OR {a}.x = 1",
            f"{a}.pid = {b}.x",
        )
        kept = b if kind == "RIGHT JOIN" or self._chance(0.2) else a
        if kind == "JOIN" and self._chance(0.4):
            return f"SELECT {kept}.pid, {b}.x FROM {first}, {second} WHERE {on}"
        return f"SELECT {kept}.pid, {b}.x FROM {first} {kind} {second} ON {on}"

    def _full(self, depth: int) -> str:
        a, first = self._from(depth)
        b, second = self._from(1)
        on = self._one(f"{a}.pid = {b}.pid", f"{a}.pid = {b}.pid", f"{a}.x = {b}.x")
        pid = self._one(f"coalesce({a}.pid, {b}.pid)", f"coalesce({a}.pid, {b}.pid)", f"{a}.pid")
        return f"SELECT {pid} AS pid, {b}.x FROM {first} FULL JOIN {second} ON {on}"

    def _public(self, depth: int) -> str:
        a, given = self._from(depth)
        kind = self._one("JOIN", "LEFT JOIN", "RIGHT JOIN")
        t = self._name()
        return f"SELECT {a}.pid, {t}.region AS x FROM {given} {kind} town AS {t} ON {a}.x = {t}.tid"

    def _distinct(self, depth: int) -> str:
        a, given = self._from(depth)
        shown = self._one(f"{a}.pid, {a}.x", f"{a}.pid, 1 AS x", f"{a}.x AS pid, {a}.x")
        return f"SELECT DISTINCT {shown} FROM {given}"

    def _both(self, depth: int) -> str:
        how = self._one("UNION ALL", "UNION", "EXCEPT", "INTERSECT")
        return f"{self.query(depth - 1)} {how} {self.query(0)}"

    def _numbered(self) -> str:
        a = self._name()
        by = self._one(*[f"{a}.patient"] * 3, f"{a}.town")
        order = self._one(*[f"{a}.town, {a}.vid"] * 3, f"{a}.vid DESC", f"{a}.town")
        call = self._one("row_number()", f"lag({a}.town)", f"first_value({a}.town)")
        shown = f"{call} OVER (PARTITION BY {by} ORDER BY {order})"
        return f"SELECT {a}.patient AS pid, {shown} AS x FROM visit AS {a}"

    def _window(self, depth: int) -> str:
        if self._one(True, False):
            return self._numbered()
        a, given = self._from(depth)
        by = self._one(*[f"PARTITION BY {a}.pid"] * 3, f"PARTITION BY {a}.x", "")
        call = self._one(
            f"rank() OVER ({by} ORDER BY {a}.x)",
            f"dense_rank() OVER ({by} ORDER BY {a}.x DESC)",
            f"count(*) OVER ({by})",
            f"sum({a}.x) OVER ({by} ORDER BY {a}.x)",
        )
        return f"SELECT {a}.pid, {call} AS x FROM {given}"

    def _exists(self, depth: int) -> str:
        a, given = self._from(depth)
        b, inner = self._from(1)
        on = self._one(*[f"{b}.pid = {a}.pid"] * 3, f"{b}.x = {a}.x", f"{b}.x > 0")
        word = self._one("EXISTS", "NOT EXISTS", "x IS NULL OR EXISTS")
        word = word.replace("x IS", f"{a}.x IS")
        return (
            f"SELECT {a}.pid, {a}.x FROM {given} WHERE {word} "
            f"(SELECT 1 FROM {inner} WHERE {on} AND {b}.x IS NOT NULL)"
        )

    def _in(self, depth: int) -> str:
        a, given = self._from(depth)
        b, inner = self._from(1)
        shown = self._one("pid", "pid", "x")
        where = self._one("", f" WHERE {b}.pid = {a}.pid", f" WHERE {b}.x > 0")
        word = self._one("IN", "NOT IN")
        return (
            f"SELECT {a}.pid, {a}.x FROM {given} WHERE {a}.{shown} {word} "
            f"(SELECT {b}.{shown} FROM {inner}{where})"
        )

    def _scalar(self, depth: int) -> str:
        a, given = self._from(depth)
        b, inner = self._from(1)
        where = self._one(*[f" WHERE {b}.pid = {a}.pid"] * 3, "", f" WHERE {b}.x = {a}.x")
        call = self._one("count(*)", f"max({b}.x)", f"sum({b}.x)")
        return f"SELECT {a}.pid, (SELECT {call} FROM {inner}{where}) AS x FROM {given}"

    def _swap(self, depth: int) -> str:
        a, given = self._from(depth)
        return f"SELECT {a}.x AS pid, {a}.pid AS x FROM {given}"

    def _from(self, depth: int) -> tuple[str, str]:
        name = self._name()
        return name, f"({self.query(max(0, depth - 1))}) AS {name}"

    def _name(self) -> str:
        self._names += 1
        return f"q{self._names}"

    def _one(self, *values: _T) -> _T:
        return self._random.choice(values)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share
