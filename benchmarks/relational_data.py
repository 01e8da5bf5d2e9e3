"""The tables of ``relational``: TPC-H, the same with skewed foreign keys, and a snowflake.

Each is a DuckDB file that is made once and kept; PostgreSQL gets a copy of it.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.relational_queries import (
    KEYS,
    PUBLIC,
    SNOWFLAKE,
    SNOWFLAKE_KEYS,
    SNOWFLAKE_PUBLIC,
    TPCH,
    Case,
)
from benchmarks.tpch import KEPT, database_file

_BATCH = 100_000
# A number below ``many`` for a row, rank r as often as 1/r, always the same for the same row.
_RANK = (
    "least(floor(exp(ln({many} + 1.0) * (hash({row}) / 18446744073709551616.0)))::BIGINT, {many})"
)
_EVEN = "(hash({row}) % ({many})::UBIGINT)::BIGINT + 1"


@dataclass(frozen=True)
class Schema:
    """Tables with what is declared of them, and the counts that are asked of them."""

    keys: Mapping[str, list[str]]
    public: list[str]
    cases: list[Case]


SCHEMAS = {
    "tpch": Schema(KEYS, PUBLIC, TPCH),
    "skewed": Schema(KEYS, PUBLIC, TPCH),
    "snowflake": Schema(SNOWFLAKE_KEYS, SNOWFLAKE_PUBLIC, SNOWFLAKE),
}


def data_file(schema: str, scale: str, folder: Path | None) -> Path:
    """The DuckDB file of one schema at one scale; ``folder`` as ``database_file`` has it."""
    path = KEPT / f"relational-{schema}-{scale}.db"
    if schema == "tpch":
        return database_file(scale, KEYS, path, folder)
    if schema == "snowflake":
        return _made(path, lambda connection: _snowflake(connection, float(scale)))
    even = data_file("tpch", scale, folder)
    return _made(path, lambda connection: _skew(connection, even))


def _made(path: Path, fill: Callable[[duckdb.DuckDBPyConnection], None]) -> Path:
    if not path.exists():
        KEPT.mkdir(exist_ok=True)
        half = path.with_suffix(".part")
        half.unlink(missing_ok=True)
        with duckdb.connect(str(half)) as connection:
            fill(connection)
            for (name,) in connection.execute("SHOW TABLES").fetchall():
                for column in connection.table(name).columns:
                    connection.execute(f"ALTER TABLE {name} ALTER {column} SET NOT NULL")
        half.rename(path)
    return path


def _skew(connection: duckdb.DuckDBPyConnection, even: Path) -> None:
    """TPC-H's tables where rank r of what a foreign key refers to is as frequent as 1/r."""
    connection.execute(f"ATTACH '{even}' AS even (READ_ONLY)")

    def size(table: str) -> int:
        ((number,),) = connection.execute(f"SELECT count(*) FROM even.{table}").fetchall()
        return int(number)

    def rank(row: str, many: int) -> str:
        return _RANK.format(row=row, many=many)

    replaced = {
        "customer": f"c_nationkey: {rank('c_custkey', 25)} - 1",
        "supplier": f"s_nationkey: {rank('s_suppkey', 25)} - 1",
        "orders": f"o_custkey: {rank('o_orderkey', size('customer'))}",
    }
    for table in KEYS:
        chosen = "*"
        if table in replaced:
            column, value = replaced[table].split(": ")
            chosen = f"* REPLACE (({value})::BIGINT AS {column})"
        if table == "lineitem":
            continue
        connection.execute(f"CREATE TABLE {table} AS SELECT {chosen} FROM even.{table}")
    # A line names a part and a supplier that offers it.
    place = rank("l_orderkey * 8 + l_linenumber", size("partsupp"))
    connection.execute(
        "CREATE TABLE lineitem AS WITH offer AS "
        "(SELECT ps_partkey, ps_suppkey, row_number() OVER (ORDER BY hash(ps_partkey), ps_suppkey) "
        f"AS place FROM partsupp), line AS (SELECT *, {place} AS place FROM even.lineitem) "
        "SELECT line.* EXCLUDE (place) REPLACE (ps_partkey AS l_partkey, ps_suppkey AS l_suppkey) "
        "FROM line JOIN offer USING (place) ORDER BY l_orderkey, l_linenumber"
    )
    connection.execute("DETACH even")


def _snowflake(connection: duckdb.DuckDBPyConnection, scale: float) -> None:
    """Two facts, sales and clicks, refunds of sales, and dimensions that refer to dimensions."""
    sizes = {
        "department": 20,
        "category": 300,
        "product": int(20_000 * scale) + 100,
        "country": 12,
        "city": 400,
        "store": int(2_000 * scale) + 50,
        "customer": int(100_000 * scale) + 100,
        "sale": int(2_000_000 * scale),
        "click": int(4_000_000 * scale),
        "refund": int(100_000 * scale),
    }

    def even(column: str, many: int) -> str:
        drawn = _EVEN.format(row=f"concat('{column}', range)", many=many)
        return f"{drawn} AS {column}"

    def skewed(column: str, many: int) -> str:
        drawn = _RANK.format(row=f"concat('{column}', range)", many=many)
        return f"{drawn} AS {column}"

    columns = {
        "department": ["concat('department ', range + 1) AS name"],
        "category": [even("department", sizes["department"])],
        "product": [skewed("category", sizes["category"]), even("price", 100)],
        "country": ["concat('country ', range + 1) AS name"],
        "city": [skewed("country", sizes["country"]), even("size", 10)],
        "store": [even("city", sizes["city"])],
        "customer": [skewed("city", sizes["city"]), even("age", 90)],
        "sale": [
            skewed("product", sizes["product"]),
            even("customer", sizes["customer"]),
            even("store", sizes["store"]),
            even("day", 365),
        ],
        "click": [
            skewed("customer", sizes["customer"]),
            even("product", sizes["product"]),
            even("day", 365),
        ],
        "refund": [even("sale", sizes["sale"]), even("day", 365)],
    }
    for name, size in sizes.items():
        chosen = ", ".join(["range + 1 AS id", *columns[name]])
        connection.execute(f"CREATE TABLE {name} AS SELECT {chosen} FROM range({size})")


@contextmanager
def in_postgres(path: Path, schema: Schema) -> Iterator[tuple[str, int]]:
    """The URL and process of a server with the file's tables; no index but the keys'."""
    import psycopg

    from tests.support.postgres_server import PostgresServer

    with (
        PostgresServer() as server,
        server.database() as url,
        duckdb.connect(str(path), read_only=True) as source,
    ):
        with psycopg.connect(url, autocommit=True) as connection:
            for name, key in schema.keys.items():
                described = source.execute(f"DESCRIBE {name}").fetchall()
                columns = ", ".join(f"{column} {kind} NOT NULL" for column, kind, *_ in described)
                connection.execute(f"CREATE TABLE {name} ({columns})")
                rows = source.execute(f"SELECT * FROM {name}")
                with connection.cursor().copy(f"COPY {name} FROM STDIN (FORMAT csv)") as copy:
                    while batch := rows.fetchmany(_BATCH):
                        text = io.StringIO()
                        csv.writer(text).writerows(batch)
                        copy.write(text.getvalue())
                connection.execute(f"ALTER TABLE {name} ADD PRIMARY KEY ({', '.join(key)})")
            connection.execute("VACUUM ANALYZE")
            row = connection.execute("SELECT pg_read_file('postmaster.pid')").fetchone()
        assert row is not None
        yield url, int(row[0].split()[0])
