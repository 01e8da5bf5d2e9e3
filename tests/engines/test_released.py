"""What runs above the cuts meets released rows only."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from time import perf_counter
from uuid import UUID

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.engines import released
from sqlrs.engines.read_off import read_off
from sqlrs.engines.released import (
    Layout,
    ReleasedDatabase,
    ReleasedRelation,
    afterwards,
    described,
    duckdb_type,
)
from sqlrs.engines.released_json import from_json, to_json
from sqlrs.errors import QueryRefused
from sqlrs.measures import Aggregation, KeyDomain, Measure
from sqlrs.releasing import AfterRelease

WARDS = ReleasedRelation(
    "released_0",
    (("k0", "VARCHAR"), ("a0", "BIGINT")),
    (("A", 10), ("B", 30), (None, -2)),
)


def query(sql: str) -> exp.Query:
    tree = sqlglot.parse_one(sql, read="duckdb")
    assert isinstance(tree, exp.Query)
    return tree


def test_a_statement_goes_on_over_released_rows() -> None:
    sql = "SELECT k0 AS ward, 100.0 * a0 / sum(a0) OVER () AS share FROM released_0 WHERE a0 > 0"
    found = afterwards(query(f"{sql} ORDER BY 2 DESC"), [WARDS])
    assert found.rows == (("B", 75.0), ("A", 25.0))
    assert found.columns == (("ward", "VARCHAR"), ("share", "DOUBLE"))


def test_the_columns_are_known_beforehand_without_a_row() -> None:
    found = described(query("SELECT k0, a0 / 2 AS half FROM released_0"), [WARDS])
    assert found.columns == (("k0", "VARCHAR"), ("half", "DOUBLE"))
    assert found.rows == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM visit",
        "SELECT no_such_function(a0) FROM released_0",
        "SELECT a0 + k0 FROM released_0 WHERE k0 > DATE '2020-01-01' AND k0 < INTERVAL 1 DAY",
    ],
)
def test_what_duckdb_cannot_run_is_refused_beforehand(sql: str) -> None:
    with pytest.raises(QueryRefused) as refused:
        described(query(sql), [WARDS])
    assert refused.value.code == "unsupported"


def test_files_settings_and_python_are_out_of_reach(tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("x\n1\n")
    rows = [(1,)]  # noqa: F841 - a variable of this name must not be found
    for sql in (
        f"SELECT * FROM read_csv('{secret}')",
        f"SELECT * FROM '{secret}'",
        f"SELECT * FROM glob('{tmp_path}/*')",
        "SELECT * FROM rows",
        "SELECT getenv('HOME')",
    ):
        with pytest.raises(QueryRefused):
            afterwards(query(sql), [WARDS])


def test_memory_is_bounded() -> None:
    with pytest.raises(QueryRefused):
        afterwards(query("SELECT length(list(range)::VARCHAR) FROM range(200000000)"), [WARDS])


VALUES: dict[str, tuple[object, ...]] = {
    "BIGINT": (0, -(2**63), 2**63 - 1, None),
    "HUGEINT": (2**63, -(2**127), 2**127 - 1),
    "VARCHAR": ("", "a", "ä'\"\n", "NULL", "a\0b", None),
    "BOOLEAN": (True, False, None),
    "DATE": (date(1, 1, 1), date(9999, 12, 31)),
    "TIMESTAMP": (datetime(1, 1, 1), datetime(2024, 2, 29, 23, 59, 59, 999999)),
    "TIME": (time(0), time(23, 59, 59, 999999)),
    "DOUBLE": (0.1, -0.0, 5e-324, 1.7976931348623157e308, float("inf"), float("-inf")),
    "UUID": (UUID(int=0), UUID(int=2**128 - 1)),
    "DECIMAL(38, 2)": (Decimal("0.01"), Decimal("-" + "9" * 36), Decimal("1E+20"), None),
    "DECIMAL(38, 0)": (Decimal(10**38 - 1), 7),
    "INTEGER": (None, None),
}


@pytest.mark.parametrize("kind", VALUES)
def test_values_come_back_as_they_went_in(kind: str) -> None:
    values = VALUES[kind]
    assert duckdb_type(values) == kind
    relation = ReleasedRelation("r", (("k0", kind),), tuple((value,) for value in values))
    found = afterwards(query("SELECT k0 FROM r"), [relation]).rows
    assert found == relation.rows
    assert {type(v) for (v,) in found} == {
        Decimal if kind.startswith("DECIMAL") and v is not None else type(v) for v in values
    }
    assert from_json(to_json([relation, WARDS])) == (relation, WARDS)


def test_not_a_number_comes_back() -> None:
    relation = ReleasedRelation("r", (("k0", "DOUBLE"),), ((float("nan"),),))
    [[found]] = afterwards(query("SELECT k0 FROM r"), [relation]).rows
    [read] = from_json(to_json([relation]))
    assert repr(found) == repr(read.rows[0][0]) == "nan"


@pytest.mark.parametrize("kind", VALUES)
def test_json_keeps_types(kind: str) -> None:
    relation = ReleasedRelation("r", (("k0", kind),), tuple((v,) for v in VALUES[kind]))
    [read] = from_json(to_json([relation]))
    assert [repr(v) for (v,) in read.rows] == [repr(v) for v in VALUES[kind]]


@pytest.mark.parametrize(
    "values",
    [
        (2**127,),
        (Decimal("NaN"),),
        (Decimal("1e38"),),
        (Decimal("1e30"), Decimal("1e-20")),
        (1, "a"),
        (True, 1),
        (date(2024, 1, 1), datetime(2024, 1, 1)),
        (datetime(2024, 1, 1, tzinfo=UTC),),
        (b"x",),
    ],
)
def test_what_no_type_holds_exactly_is_refused(values: tuple[object, ...]) -> None:
    with pytest.raises(QueryRefused):
        duckdb_type(values)


def test_ten_thousand_groups_are_no_matter_of_seconds() -> None:
    """Row by row DuckDB needs 7 s for these; in one statement 0.05 s."""
    rows = tuple((f"group {i}", i, Decimal(i) / 100) for i in range(10_000))
    columns = (("k0", "VARCHAR"), ("a0", "BIGINT"), ("a1", "DECIMAL(38, 2)"))
    relation = ReleasedRelation("r", columns, rows)
    start = perf_counter()
    found = afterwards(query("SELECT count(*), sum(a1) FROM r WHERE k0 <> 'x'"), [relation])
    assert found.rows == ((10_000, Decimal("499950.00")),)
    assert perf_counter() - start < 2


def test_division_by_a_noisy_zero_is_null() -> None:
    relation = ReleasedRelation("r", (("a0", "BIGINT"),), ((0,), (4,)))
    found = afterwards(query("SELECT 8 / a0, 8 // a0, 8 % a0 FROM r"), [relation])
    assert found.rows == ((None, None, None), (2.0, 2, 0))


def test_a_join_of_all_with_all_is_refused_before_it_fills_the_memory() -> None:
    relation = ReleasedRelation("r", (("a0", "BIGINT"),), tuple((i,) for i in range(1000)))
    with pytest.raises(QueryRefused) as refused:
        afterwards(query("SELECT 1 FROM r AS a, r AS b"), [relation])
    assert refused.value.code == "too_much"


def test_one_database_runs_a_statement_before_and_after_its_rows_come() -> None:
    database = ReleasedDatabase(Layout.of([WARDS]))
    statement = query("SELECT count(*) FROM released_0")
    assert database.run(statement).rows == ((0,),)
    with pytest.raises(ValueError, match="other columns"):
        database.fill([ReleasedRelation(WARDS.name, (("k0", "DATE"),))])
    database.fill([WARDS])
    assert database.run(statement).rows == ((len(WARDS.rows),),)
    with pytest.raises(QueryRefused):
        database.run(query("SELECT * FROM read_csv('/etc/passwd')"))
    database.close()


def test_recorded_numbers_of_other_types_are_shown_all_the_same() -> None:
    today = ReleasedRelation("r", (("k0", "INTEGER"), ("a0", "BIGINT")))
    recorded = ReleasedRelation("r", (("k0", "VARCHAR"), ("m0", "BIGINT")), (("A", 3),))
    statement = query("SELECT k0, a0 FROM r")
    cuts = (Aggregation("r", (KeyDomain((0,), None, ""),), (Measure(()),), (0,)),)
    above = AfterRelease(statement, cuts, (), ReleasedDatabase(Layout.of([today])))
    assert above.run([recorded]).rows == (("A", 3),)


def test_the_next_user_of_a_database_finds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same connection is handed out again after a clean end, and never after a failure."""
    handed: list[object] = []
    take = released._AHEAD.take

    def noted() -> object:
        handed.append(take())
        return handed[-1]

    monkeypatch.setattr(released._AHEAD, "take", noted)
    count = query("SELECT count(*) FROM released_0")
    afterwards(count, [WARDS])
    first = ReleasedDatabase(Layout.of([WARDS]))
    assert first.run(count).rows == ((0,),)
    first.fill([WARDS])
    first.close()
    first.close()
    other = ReleasedRelation("other", (("x", "INTEGER"),))
    second = ReleasedDatabase(Layout.of([other]))
    assert handed[-1] is handed[-2]
    with pytest.raises(QueryRefused, match="released_0"):
        second.run(count)
    second.close()
    third = ReleasedDatabase(Layout.of([other]))
    assert handed[-1] is not handed[-2]
    third.close()


NUMBERS = ReleasedRelation(
    "released_0",
    (("a0", "BIGINT"), ("a1", "HUGEINT"), ("a2", "DECIMAL(38, 2)"), ("a2_low", "DECIMAL(38, 2)")),
    ((-(2**63) + 1, 10**38 - 1, Decimal("12.30"), Decimal("-0.05")),),
)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT released_0.a0 FROM released_0",
        'SELECT released_0.a2 AS "sum", released_0.a2_low, released_0.a0 FROM released_0',
        "SELECT released_0.a1 AS a0, released_0.a0 AS a1 FROM released_0",
    ],
)
def test_numbers_are_read_off_as_duckdb_shows_them(sql: str) -> None:
    rows = read_off(query(sql), [NUMBERS])
    shown = afterwards(query(sql), [NUMBERS]).rows
    assert rows == shown
    assert rows is not None and repr(rows) == repr(shown)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT released_0.a0 FROM released_0",
        "SELECT released_0.a0 FROM released_0 WHERE released_0.a0 > 0",
        "SELECT released_0.a0 FROM released_0 LIMIT 0",
        "SELECT released_0.a0 FROM released_0 AS released_1",
        "SELECT released_0.a0 FROM released_0, released_0 AS b",
        "SELECT released_0.a0 FROM released_0 HAVING released_0.a0 > 0",
        "SELECT released_0.a0 + 1 FROM released_0",
        "SELECT max(released_0.a0) FROM released_0",
        "SELECT released_0.* FROM released_0",
        "SELECT released_0.k0 FROM released_0",
        "SELECT released_0.a0 FROM released_0 UNION ALL SELECT released_0.a0 FROM released_0",
        "WITH released_0 AS (SELECT 1 AS a0) SELECT released_0.a0 FROM released_0",
        "SELECT released_0.a0 FROM main.released_0",
    ],
)
def test_whatever_else_is_asked_needs_the_database(sql: str) -> None:
    assert read_off(query(sql), [NUMBERS]) is None


def test_several_rows_or_relations_need_the_database() -> None:
    sql = query("SELECT released_0.a0 FROM released_0")
    assert read_off(sql, [WARDS]) is None
    assert read_off(sql, [NUMBERS, NUMBERS]) is None
