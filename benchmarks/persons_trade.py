"""TPC-H with units: the queries of R2T's evaluation, their errors and their seconds."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import sqlglot
from sqlglot import exp

import sqlrs
from benchmarks.groups import tables
from benchmarks.persons_laws import EPSILON, ClippedSums, one_owner, rms, several_owners
from sqlrs.before_charge import Groups, mechanisms_of
from sqlrs.compiled import CompiledStatement
from sqlrs.engines.base import Opened
from sqlrs.measures import PerUnit
from sqlrs.measuring.measurements import Measurements
from sqlrs.mechanisms.clipped import ClippedVector
from sqlrs.mechanisms.packed import PackedNumber
from sqlrs.mechanisms.packing_solver import CertifiedSums

BUYS = "customer JOIN orders ON c_custkey = o_custkey"
LINES = f"{BUYS} JOIN lineitem ON o_orderkey = l_orderkey"
SELLS = "supplier JOIN partsupp ON s_suppkey = ps_suppkey"
TRADE = f"{LINES} JOIN supplier ON l_suppkey = s_suppkey"
ORDER = ["l_orderkey -> orders"]


@dataclass(frozen=True)
class TradeCase:
    """A query of R2T's evaluation, its unit, and the mean error that its authors print."""

    name: str
    sql: str
    unit: str
    owners: Mapping[str, Sequence[str]]
    printed: float | None = None


CUSTOMER = {"customer": ["c_custkey"], "orders": ["o_custkey"], "lineitem": ORDER}
SUPPLIER = {"supplier": ["s_suppkey"], "partsupp": ["ps_suppkey"]}
BOTH = {**CUSTOMER, **SUPPLIER, "lineitem": [*ORDER, "l_suppkey"]}
CASES = [
    TradeCase(
        "Q3",
        f"SELECT count(*) FROM {LINES} WHERE o_orderdate < DATE '1997-01-01' "
        "AND l_shipdate > DATE '1994-01-01'",
        "customer.c_custkey",
        CUSTOMER,
        0.0025,
    ),
    TradeCase(
        "Q12",
        "SELECT count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey",
        "orders.o_orderkey",
        {"orders": ["o_orderkey"], "lineitem": ["l_orderkey"]},
        0.00023,
    ),
    TradeCase(
        "Q20",
        f"SELECT count(*) FROM {SELLS} JOIN lineitem ON l_suppkey = ps_suppkey "
        "AND l_partkey = ps_partkey",
        "supplier.s_suppkey",
        {**SUPPLIER, "lineitem": ["l_suppkey"]},
        0.0058,
    ),
    TradeCase("Q10", f"SELECT count(*) FROM {BUYS}", "customer.c_custkey", CUSTOMER, 0.0017),
    TradeCase(
        "Q18", f"SELECT sum(l_quantity) FROM {LINES}", "customer.c_custkey", CUSTOMER, 0.0013
    ),
    TradeCase(
        "Q11",
        f"SELECT sum(ps_supplycost * ps_availqty) FROM {SELLS}",
        "supplier.s_suppkey",
        SUPPLIER,
        0.018,
    ),
    TradeCase(
        "Q5",
        f"SELECT count(*) FROM {TRADE} WHERE c_nationkey = s_nationkey",
        "customer.c_custkey",
        BOTH,
    ),
    TradeCase(
        "Q8",
        f"SELECT count(*) FROM {TRADE} JOIN part ON l_partkey = p_partkey "
        "WHERE o_orderdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31'",
        "customer.c_custkey",
        BOTH,
    ),
    TradeCase(
        "Q21",
        "SELECT count(*) FROM orders JOIN lineitem ON o_orderkey = l_orderkey "
        "JOIN supplier ON l_suppkey = s_suppkey "
        "WHERE l_receiptdate > l_commitdate AND o_orderstatus = 'F'",
        "orders.o_orderkey",
        {"orders": ["o_orderkey"], "lineitem": ["l_orderkey", "l_suppkey"], **SUPPLIER},
    ),
    TradeCase(
        "Q7",
        f"SELECT sum(l_extendedprice * (1 - l_discount)) FROM {TRADE} "
        "WHERE l_shipdate BETWEEN DATE '1995-01-01' AND DATE '1996-12-31' "
        "AND c_nationkey <> s_nationkey",
        "customer.c_custkey",
        BOTH,
    ),
]
TABLES = ("customer", "orders", "lineitem", "supplier", "partsupp", "part")
KEPT_KEYS = {
    "customer": ["c_custkey"],
    "orders": ["o_orderkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
    "supplier": ["s_suppkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "part": ["p_partkey"],
}
# As the specification of TPC-H bounds them.
SPECIFIED: Mapping[str, Sequence[int]] = {
    "lineitem.l_extendedprice": [0, 110_000],
    "lineitem.l_discount": [0, 1],
    "lineitem.l_quantity": [1, 50],
    "partsupp.ps_supplycost": [1, 1_000],
    "partsupp.ps_availqty": [1, 9_999],
}
# A customer and a supplier of the same number would be one unit, so suppliers are numbered behind
# all customers and orders.
BEHIND = 10**9


def trade_tables(scale: str) -> Path:
    """The tables of TPC-H, in which no supplier has the number of a customer or an order."""
    path = tables(scale, TABLES, "tpch-units")
    with duckdb.connect(str(path)) as connection:
        shifted = "SELECT coalesce(max(s_suppkey), 0) > ? FROM supplier"
        if connection.execute(shifted, [BEHIND]).fetchall() == [(False,)]:
            connection.begin()
            for name, column in SUPPLIERS.items():
                connection.execute(f"UPDATE {name} SET {column} = {column} + {BEHIND}")
            connection.commit()
    return path


SUPPLIERS = {"supplier": "s_suppkey", "partsupp": "ps_suppkey", "lineitem": "l_suppkey"}


@dataclass(frozen=True)
class TradeCell:
    """Errors in parts of the answer, and seconds: of the processor, and of a clock."""

    query: str
    unit: str
    owners: int
    rms: float
    median: float
    strict: float
    r2t_rms: float
    r2t_median: float
    printed: float | None
    plain: float
    private: float
    clock: float

    @property
    def gain(self) -> float:
        """How many times larger the error of R2T is in the middle."""
        return self.r2t_median / self.median

    @property
    def ratio(self) -> float:
        """The private answer as a multiple of the plain one."""
        return self.private / self.plain


ROUNDS = 6
"""The first answer on some rows plans, the second looks at what later ones leave out."""


def processor_seconds(work: Callable[[], object]) -> tuple[float, float]:
    """One run, by the processor and by the clock."""
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return used, time.perf_counter() - clock


def in_turns(*works: Callable[[], object]) -> list[tuple[float, float]]:
    """The least of some runs of each, one after the other."""
    rounds = [[processor_seconds(work) for work in works] for _ in range(ROUNDS)]
    return [min(own) for own in zip(*rounds, strict=True)]


def measure_trade(case: TradeCase, path: Path) -> TradeCell:
    """Error and time of one query through the public interface."""
    with sqlrs.connect(
        f"duckdb:///{path}",
        public=[name for name in TABLES if name not in case.owners],
        keys=KEPT_KEYS,
        unit=case.unit,
        owners=case.owners,
        bounds=SPECIFIED,
    ) as database:
        tree = sqlglot.parse_one(case.sql, read="duckdb")
        assert isinstance(tree, exp.Select)

        def plain() -> list[tuple[object, ...]]:
            with database.engine.snapshot() as snapshot:
                return list(snapshot.rows(tree))

        # Another epsilon each time: an answer that is recorded is not computed again.
        epsilons = (f"0.80{number}" for number in range(ROUNDS))
        (seconds, _), (private, clock) = in_turns(
            plain, lambda: database.query(case.sql, next(epsilons))
        )
        ((value,),) = plain()
        owners, loose, strict = clipped_sums(case.sql, database)
        answer = float(Fraction(str(value)) / loose.worth)
        rng = np.random.default_rng(1)
        own, other = loose.errors(answer, rng), loose.r2t_errors(answer, rng)
        replaced = strict.errors(answer, rng)
        return TradeCell(
            case.name,
            case.unit,
            owners,
            rms(own) / answer,
            float(np.median(own)) / answer,
            rms(replaced) / answer,
            rms(other) / answer,
            float(np.median(other)) / answer,
            case.printed,
            seconds,
            private,
            clock,
        )


def clipped_sums(
    sql: str, database: sqlrs.Database, epsilon: Decimal = EPSILON
) -> tuple[int, ClippedSums, ClippedSums]:
    """How many own a result, and the sums where units are added or removed, and replaced too."""
    settings = database.settings
    compiled = CompiledStatement.of(sql, database.catalog, settings)
    with database.engine.snapshot() as snapshot:
        groups = Groups.read(compiled.statement.aggregations, snapshot, settings)
        (own,) = mechanisms_of(compiled, groups, epsilon, None, settings).values()
        measurements = Measurements(Opened(snapshot, database.engine.dialect))
        if isinstance(own, PackedNumber):
            signed, residuals = own.summand.signed, own.summand.residuals
            results = measurements.owned_results(signed, residuals, own.most)
            sums = CertifiedSums(results, own.seconds)
            loose, strict = (
                several_owners(replace(own, strict=way), sums) for way in (False, True)
            )
            return len(set(signed.owners)), loose, strict
        assert isinstance(own, ClippedVector) and not isinstance(own.source, PerUnit)
        parts = [(one.signed, one.residuals) for one in own.source]
        # One number that no unit lowers moves as far whether a unit goes or another comes.
        known = one_owner(own, measurements.contributions(parts, [], own.grid))
        return 1, known, known
