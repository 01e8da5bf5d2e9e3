"""Random SQL of analysts over columns of many types, full of special values.

`Drawer` writes one counting query at a time: joins between columns of one family, comparisons with
literals inside and outside a type, arithmetic at its ends, casts, functions, guards, choices.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

INTEGERS = ["0", "1", "-1", "2", "5", "5", "300", "NULL"]
SMALL = ["0", "1", "-1", "2", "5", "5", "NULL"]
MOMENTS = ["2020-01-01 00:00:00", "1999-12-31 23:59:59", "2020-01-01 00:00:01", "infinity"]
DAYS = ["'2020-01-01'", "'1999-12-31'", "'2024-02-29'", "'infinity'", "'-infinity'", "NULL"]
FLOATS = ["'NaN'", "'Infinity'", "'-Infinity'", "'-0.0'", "0", "1.5", "0.1", "1e30", "NULL"]
TEXTS = ["''", "'5'", "'5 '", "' 5'", "'ab'", "'AB'", "'ab  '", "'300'", "NULL"]
DECIMALS = ["0", "1.5", "1.3", "-99.9", "99.9", "5", "NULL"]


def _ends(bits: int, signed: bool = True) -> list[str]:
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return [str(low), str(low + 1), str(high), str(high - 1)]


def _moments(*fractions: str) -> list[str]:
    return [f"'{m}{'' if m == 'infinity' else f}'" for m in MOMENTS for f in fractions] + ["NULL"]


def _unsigned(values: list[str]) -> list[str]:
    return [value for value in values if not value.startswith("-")]


@dataclass(frozen=True)
class ColumnOf:
    """A column, the family that it is joined within, its type, and the values drawn for it."""

    name: str
    family: str
    type: str
    values: Sequence[str]


Tables = dict[str, tuple[ColumnOf, ...]]

DUCKDB: Tables = {
    "a": (
        ColumnOf("ti", "integer", "TINYINT", SMALL + _ends(8)),
        ColumnOf("i", "integer", "INTEGER", INTEGERS + _ends(32)),
        ColumnOf("h", "integer", "HUGEINT", INTEGERS + _ends(64) + _ends(127)),
        ColumnOf("de", "decimal", "DECIMAL(4,1)", DECIMALS),
        ColumnOf("f", "real", "FLOAT", FLOATS),
        ColumnOf("s", "text", "VARCHAR", TEXTS),
        ColumnOf("dt", "date", "DATE", DAYS),
        ColumnOf("ss", "timestamp", "TIMESTAMP_S", _moments("")),
        ColumnOf("ts", "timestamp", "TIMESTAMP", _moments("", ".4", ".000001")),
        ColumnOf("tz", "zoned", "TIMESTAMPTZ", _moments("")),
        ColumnOf("bo", "boolean", "BOOLEAN", ["TRUE", "FALSE", "NULL"]),
    ),
    "b": (
        ColumnOf("si", "integer", "SMALLINT", INTEGERS + _ends(16)),
        ColumnOf("bi", "integer", "BIGINT", INTEGERS + _ends(64) + _ends(32)),
        ColumnOf("ub", "integer", "UBIGINT", _unsigned(INTEGERS + _ends(64, signed=False))),
        ColumnOf("dw", "decimal", "DECIMAL(18,4)", [*DECIMALS, "1.25", "99999999999999.9999"]),
        ColumnOf("db", "double", "DOUBLE", [*FLOATS, "1e300"]),
        ColumnOf("s2", "text", "VARCHAR", TEXTS),
        ColumnOf("d2", "date", "DATE", DAYS),
        ColumnOf("sm", "timestamp", "TIMESTAMP_MS", _moments("", ".4")),
        ColumnOf("z2", "zoned", "TIMESTAMPTZ", _moments("", ".5")),
        ColumnOf("b2", "boolean", "BOOLEAN", ["TRUE", "FALSE", "NULL"]),
        ColumnOf("bt", "bit", "BIT", ["'101'", "'1'", "NULL"]),
    ),
}
POSTGRES: Tables = {
    "a": (
        ColumnOf("si", "integer", "smallint", INTEGERS + _ends(16)),
        ColumnOf("i", "integer", "integer", INTEGERS + _ends(32)),
        ColumnOf("n", "decimal", "numeric", [*DECIMALS, "1.50", "'NaN'", "'Infinity'"]),
        ColumnOf("f", "real", "real", FLOATS),
        ColumnOf("s", "text", "text", TEXTS),
        ColumnOf("c", "char", "char(4)", TEXTS),
        ColumnOf("dt", "date", "date", DAYS),
        ColumnOf("ts", "timestamp", "timestamp(0)", _moments("")),
        ColumnOf("tz", "zoned", "timestamptz", _moments("")),
        ColumnOf("bo", "boolean", "boolean", ["TRUE", "FALSE", "NULL"]),
    ),
    "b": (
        ColumnOf("i2", "integer", "integer", INTEGERS + _ends(32)),
        ColumnOf("bi", "integer", "bigint", INTEGERS + _ends(64) + _ends(32)),
        ColumnOf("n2", "decimal", "numeric(8,2)", DECIMALS),
        ColumnOf("db", "double", "double precision", [*FLOATS, "1e300"]),
        ColumnOf("v", "text", "varchar(5)", TEXTS),
        ColumnOf("c6", "char", "char(6)", TEXTS),
        ColumnOf("d2", "date", "date", DAYS),
        ColumnOf("t2", "timestamp", "timestamp", _moments("", ".4", ".000001")),
        ColumnOf("z2", "zoned", "timestamptz(3)", _moments("", ".5")),
        ColumnOf("b2", "boolean", "boolean", ["TRUE", "FALSE", "NULL"]),
        ColumnOf("bt", "bit", "bit(3)", ["'101'", "NULL"]),
    ),
}

_LITERALS = {
    "integer": ["0", "1", "5", "-1", "300", "2147483648", "5000000000", "1.5", "-2147483648"],
    "decimal": ["1.5", "1.25", "5", "1.3", "123456789.5", "0"],
    "real": ["0.1", "1.5", "0"],
    "double": ["0.1", "1.5", "0", "1e300"],
    "text": ["'5'", "'5 '", "'ab'", "'AB'", "''"],
    "char": ["'5'", "'5 '", "'ab'", "'ab   '"],
    "date": ["DATE '2020-01-01'", "'2020-01-01'", "DATE 'infinity'", "TIMESTAMP '2020-01-01'"],
    "timestamp": [
        "TIMESTAMP '2020-01-01 00:00:00'", "'2020-01-01 00:00:00'", "'2020-01-01 00:00:00.4'",
        "TIMESTAMP '2020-01-01 00:00:00.4'", "'2020-01-01 00:00:00.0004'", "DATE '2020-01-01'",
        "'2020-01-01 00:00:00.000001'",
    ],
    "zoned": ["'2020-01-01 00:00:00+00'", "TIMESTAMPTZ '2020-01-01 00:00:00-05'"],
    "boolean": ["TRUE", "FALSE"],
    "bit": ["'101'"],
}  # fmt: skip
_CASTS = {
    "integer": ["smallint", "integer", "bigint", "text", "double precision", "numeric", "bit"],
    "decimal": ["integer", "text", "double precision"],
    "real": ["integer", "double precision", "text"],
    "double": ["real", "integer", "text"],
    "text": ["integer", "varchar", "char(2)", "numeric"],
    "char": ["text", "varchar"],
    "date": ["timestamp", "text"],
    "timestamp": ["date", "timestamp"],
    "zoned": ["date", "timestamp"],
    "boolean": ["integer", "text"],
    "bit": ["text", "integer"],
}
_NUMBERS = ("integer", "decimal", "real", "double")
# Between conditions, unlike the AND of BETWEEN.
_AND = "  AND  "
_OPERATORS = ["=", "<>", "<", "<=", ">", ">="]


@dataclass(frozen=True)
class Drawn:
    """A query: what it counts, and its conditions."""

    head: str
    conditions: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The text."""
        return f"{self.head} WHERE {' AND '.join(self.conditions)}"

    def alone(self) -> list[str]:
        """The conditions of each table on the table itself, as an engine may try them first."""
        found = []
        for table, other in (("a", "b"), ("b", "a")):
            own = [c for c in self.conditions if not re.search(rf"\b{other}\.", c)]
            if own:
                found.append(f"SELECT count(*) FROM {table} WHERE {' AND '.join(own)}")
        return found


class Drawer:
    """Writes rows and queries over the tables of one engine."""

    def __init__(self, tables: Tables, seed: int) -> None:
        self.tables = tables
        self.random = Random(seed)

    def rows(self, table: str, number: int) -> list[str]:
        """Rows of a table as texts for VALUES."""
        return [
            f"({', '.join(self.random.choice(list(c.values)) for c in self.tables[table])})"
            for _ in range(number)
        ]

    def query(self) -> Drawn:
        """One counting query."""
        draw = self.random
        parts = [self._condition() for _ in range(draw.randint(1, 3))]
        if draw.random() < 0.7:
            parts.insert(draw.randint(0, len(parts)), self._join())
        if draw.random() < 0.3:
            parts.insert(0, self._join())
        counted = draw.choice(["*", "*", "*", f"DISTINCT {self._column()[0]}"])
        return Drawn(f"SELECT count({counted}) FROM a, b", tuple(_AND.join(parts).split(_AND)))

    def _column(self, *families: str) -> tuple[str, ColumnOf]:
        every = [
            (f"{table}.{column.name}", column)
            for table, columns in self.tables.items()
            for column in columns
            if not families or column.family in families
        ]
        return self.random.choice(every)

    def _join(self) -> str:
        left, column = self._column()
        right, _ = self._column(column.family)
        return f"{left} {self.random.choice(['=', '=', '=', '<', '<>'])} {right}"

    def _condition(self) -> str:
        draw = self.random
        return draw.choice(
            [
                self._compared, self._compared, self._arithmetic, self._cast, self._choice,
                self._function, self._guard, self._listed, self._either, self._mixed,
                self._either, self._either, self._widths, self._widths, self._fixed, self._fixed,
            ]
        )()  # fmt: skip

    def _literal(self, column: ColumnOf) -> str:
        return self.random.choice(_LITERALS[column.family])

    def _compared(self) -> str:
        name, column = self._column()
        return f"{name} {self.random.choice(_OPERATORS)} {self._literal(column)}"

    def _mixed(self) -> str:
        (left, _), (right, _) = self._column(*_NUMBERS), self._column(*_NUMBERS)
        return f"{left} {self.random.choice(_OPERATORS[1:])} {right}"

    def _arithmetic(self) -> str:
        draw = self.random
        (left, column), (right, _) = self._column(*_NUMBERS), self._column(*_NUMBERS)
        number = draw.choice(["1", "2", "2000000000", "0.5", "3"])
        left_side = draw.choice(
            [
                f"{left} * {number}", f"{left} + {number}", f"{left} + {right}", f"abs({left})",
                f"{left} % 3", f"- {left}", f"{left} * {right}", f"{left} / {number}",
            ]
        )  # fmt: skip
        return f"{left_side} {draw.choice(_OPERATORS)} {self._literal(column)}"

    def _cast(self) -> str:
        draw = self.random
        name, column = self._column()
        target = draw.choice(_CASTS[column.family])
        against = draw.choice([self._literal(column), "'5'", "5", self._column(column.family)[0]])
        return f"CAST({name} AS {target}) {draw.choice(_OPERATORS)} {against}"

    def _choice(self) -> str:
        draw = self.random
        name, column = self._column()
        other, literal = self._column(column.family)[0], self._literal(column)
        return draw.choice(
            [
                f"coalesce({name}, {other}) = {literal}",
                f"nullif({name}, {other}) IS NULL",
                f"CASE WHEN {name} = {literal} THEN TRUE ELSE {other} = {literal} END",
                f"({name} = {literal} OR {other} = {literal})",
                f"{name} IS DISTINCT FROM {literal}",
            ]
        )

    def _function(self) -> str:
        draw = self.random
        text, _ = self._column("text", "char")
        day, _ = self._column("date", "timestamp")
        return draw.choice(
            [
                f"lower({text}) = 'ab'", f"length({text}) = 2", f"{text} || 'x' = '5 x'",
                f"{text} LIKE '5%'", f"upper({text}) = {self._column('text')[0]}",
                f"extract(year FROM {day}) = 2020", f"{text} = trim({text})",
                f"date_trunc('month', {day}) = {self._column('timestamp')[0]}",
                f"{day} + INTERVAL '1 day' > TIMESTAMP '2020-01-01'",
            ]
        )  # fmt: skip

    def _widths(self) -> str:
        """Integers that are equal, and arithmetic that fits the width of one of them."""
        draw = self.random
        (left, _), (right, _) = self._column("integer"), self._column("integer")
        factor = draw.choice(["2", "100", "20000", "2000000000"])
        return f"{left} = {right}{_AND}{left} * {factor} {draw.choice(_OPERATORS)} 0"

    def _fixed(self) -> str:
        """A column that equals a literal, in an expression with other columns."""
        draw = self.random
        name, column = self._column("integer", "decimal", "text", "timestamp")
        literal, (other, _) = self._literal(column), self._column(*_NUMBERS)
        numbers = [
            f"{name} * {other} > 0",
            f"{name} + {other} < 9",
            f"{name} * 2000000000 > {other}",
        ]
        texts = [f"{name} = {self._column('char', 'text')[0]}", f"length({name}) > {other}"]
        any_type = f"{name} = {self._column(column.family)[0]}"
        uses = {"integer": numbers, "decimal": numbers, "text": texts}.get(
            column.family, [any_type]
        )
        return f"{name} = {literal}{_AND}({draw.choice(uses)} OR {other} = 300)"

    def _guard(self) -> str:
        draw = self.random
        name, _ = self._column("integer", "decimal")
        other, _ = self._column("integer", "decimal")
        guard = draw.choice(
            [f"{name} > 0", f"{name} <> 0", f"{name} = 5", f"{name} BETWEEN 1 AND 9"]
        )
        return f"{guard}{_AND}{other} / {name} > 0"

    def _listed(self) -> str:
        draw = self.random
        name, column = self._column()
        literals = ", ".join(self._literal(column) for _ in range(draw.randint(1, 3)))
        between = f"{self._literal(column)} AND {self._literal(column)}"
        return draw.choice(
            [
                f"{name} IN ({literals})",
                f"{name} NOT IN ({literals})",
                f"{name} BETWEEN {between}",
                f"{name} IS NOT NULL",
                f"{name} IS NULL",
            ]
        )

    def _either(self) -> str:
        draw = self.random
        (left, one), (right, other) = self._column(), self._column()
        second, _ = self._column(one.family, "char" if one.family == "text" else one.family)
        return draw.choice(
            [
                f"({left} = {self._literal(one)} OR {right} = {self._literal(other)})",
                f"{left} = {self._literal(one)}{_AND}({left} = {second} OR {right} IS NULL)",
            ]
        )
