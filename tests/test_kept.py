"""What is kept for a statement: made once for the very objects it is about, written once."""

from __future__ import annotations

import duckdb
import pytest
from sqlglot import exp

import sqlrs
from sqlrs.trees.kept import Kept, text_of


def test_it_is_made_once_for_the_same_objects() -> None:
    kept, made = Kept(), []

    def make() -> exp.Select:
        made.append(exp.select("1"))
        return made[-1]

    one, other = [1], [1]
    first = kept.of((one,), make)
    assert kept.of((one,), make) is first
    assert kept.of((other,), make) is not first
    assert kept.of((one,), make, detail="other") is not first
    assert len(made) == 3


def test_a_changed_copy_has_a_text_of_its_own() -> None:
    kept = Kept()
    tree = kept.of((), lambda: exp.select("a").from_("t"))
    assert text_of(tree, "duckdb") == "SELECT a FROM t"
    assert text_of(tree, "duckdb") is text_of(tree, "duckdb")
    assert text_of(tree.where("b"), "duckdb") == "SELECT a FROM t WHERE b"
    assert text_of(exp.select("c"), "postgres") == "SELECT c"


def test_no_more_is_kept_than_a_limit() -> None:
    kept = Kept()
    objects = [[i] for i in range(600)]
    found = [kept.of((one,), exp.Select) for one in objects]
    again = [kept.of((one,), exp.Select) for one in reversed(objects)]
    assert [a is b for a, b in zip(found, reversed(again), strict=True)] == [False] * 100 + [
        True
    ] * 500


def test_a_second_answer_writes_no_statement_again(monkeypatch: pytest.MonkeyPatch) -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE visit (id INT PRIMARY KEY, cost INT CHECK (cost BETWEEN 0 AND 9), "
        "ward TEXT CHECK (ward IN ('a', 'b')))"
    )
    sql = "SELECT ward, avg(cost) AS m, count(*) AS n FROM visit GROUP BY ward ORDER BY n"
    with sqlrs.connect(connection) as database:
        first = database.query(sql, 1)
        written: list[str] = []
        plain = exp.Expression.sql

        def noted(self: exp.Expression, *given: object, **options: object) -> str:
            written.append(type(self).__name__)
            return plain(self, *given, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(exp.Expression, "sql", noted)
        second = database.query(sql, 2)
        assert second.columns == first.columns and len(second.rows) == len(first.rows)
        assert written == []
