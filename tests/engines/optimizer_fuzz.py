"""Self-joins at random: does DuckDB count them right with all optimizers, and with each one off?

``python -m tests.engines.optimizer_fuzz SEED SECONDS [STATEMENTS]`` draws queries and rows, lets
sqlrs write the statement of the count and of some residuals by some plan, and compares the numbers
with brute force: as sqlrs runs them, with every optimizer on, and with one further one off.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import duckdb
from sqlglot import exp

from sqlrs.catalog import Catalog, Column, ColumnType, Family, Table
from sqlrs.compiled import Compiled
from sqlrs.engines.duckdb_optimizers import MISCOUNTING, SETTING
from sqlrs.planning.choose import choose
from sqlrs.planning.table_statistics import Statistics
from sqlrs.query import Query
from sqlrs.residuals.residual import Residuals
from sqlrs.settings import Settings
from sqlrs.sql.write import statement_of
from tests.support import brute

_INTEGER = ColumnType(Family.INTEGER, "INTEGER")
TABLE = Table("t0", (Column("a", _INTEGER), Column("b", _INTEGER)), schema="main")
CATALOG = Catalog("duckdb", (TABLE,))
PLANS = ("plain", "factorised", "pruned", "auto")
# How many optimizers are tried off for each case, beside the ones that are always off.
_SOME = 4


@dataclass(frozen=True)
class Drawn:
    """A query over copies of one table, and the rows of the table."""

    sql: str
    rows: tuple[tuple[int | None, int | None], ...]


def draw(rng: random.Random) -> Drawn:
    """Three to five copies joined as a tree, with up to two further conditions."""
    copies = rng.randint(3, 5)

    def column(copy: int) -> str:
        return f"r{copy}.{rng.choice('ab')}"

    conditions = [f"{column(i)} = {column(rng.randrange(i))}" for i in range(1, copies)]
    for _ in range(rng.randint(0, 2)):
        one, other = rng.sample(range(copies), 2)
        sign = rng.choice(["=", "<", "<=", "<>"])
        conditions.append(f"{column(one)} {sign} {column(other)}")
    tables = ", ".join(f"t0 r{i}" for i in range(copies))

    def value() -> int | None:
        return None if rng.random() < 0.05 else rng.randint(0, 2)

    rows = tuple((value(), value()) for _ in range(rng.randint(1, 5)))
    return Drawn(f"SELECT count(*) FROM {tables} WHERE {' AND '.join(conditions)}", rows)


def statements(drawn: Drawn, rng: random.Random) -> Iterator[tuple[str, exp.Expression, int]]:
    """The count, and residuals in any order by any plan: the plan, its statement, the truth."""
    compiled = Compiled.of(drawn.sql, CATALOG, Settings())
    if not isinstance(compiled, Compiled):
        return
    residuals: Residuals = compiled.residuals
    query: Query = residuals.query
    rows: brute.Database = {TABLE.label: list(drawn.rows)}
    everything = choose(residuals.of(query.everything), how="plain")
    yield "count", statement_of(everything, "duckdb"), brute.count(query, rows)
    parts = residuals.undecided(residuals.required)
    while parts:
        residual, how = rng.choice(parts), rng.choice(PLANS)
        plan = choose(residual, Statistics(), how=how)
        yield how, statement_of(plan, "duckdb"), brute.residual_value(residual, rows)


def fill(connection: duckdb.DuckDBPyConnection, drawn: Drawn) -> None:
    """The table with the drawn rows."""
    connection.execute("CREATE OR REPLACE TABLE t0 (a INTEGER, b INTEGER)")
    connection.executemany("INSERT INTO t0 VALUES (?, ?)", list(drawn.rows))


def disable(connection: duckdb.DuckDBPyConnection, *names: str) -> None:
    """Exactly these optimizers off."""
    connection.execute(f"SET {SETTING} = '{','.join(names)}'")


def fuzz(seed: int, seconds: float, each: int = 4) -> Counter[str]:
    """How many statements ran, and how many of them gave a wrong number in which setting."""
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    end = time.monotonic() + seconds
    with duckdb.connect(config={"threads": 1}) as connection:
        known = [name for (name,) in connection.execute("FROM duckdb_optimizers()").fetchall()]
        while time.monotonic() < end:
            drawn = draw(rng)
            fill(connection, drawn)
            seen["cases"] += 1
            others = rng.sample([name for name in known if name not in MISCOUNTING], _SOME)
            for how, statement, truth in islice(statements(drawn, rng), each):
                text = statement.sql(dialect="duckdb")
                settings: list[tuple[str, tuple[str, ...]]] = [("as sqlrs runs it", ())]
                settings += [(f"without {name}", (name,)) for name in others]
                for name, off in settings:
                    disable(connection, *MISCOUNTING, *off)
                    seen["statements"] += 1
                    if connection.execute(text).fetchall() != [(truth,)]:
                        seen[f"wrong {name}"] += 1
                disable(connection)
                seen["statements"] += 1
                if connection.execute(text).fetchall() != [(truth,)]:
                    seen[f"wrong with all on ({how})"] += 1
                    print(drawn, text, truth, sep="\n")
    return seen


if __name__ == "__main__":
    print(
        duckdb.__version__,
        dict(fuzz(int(sys.argv[1]), float(sys.argv[2]), *map(int, sys.argv[3:]))),
    )
