"""The kept constructs on Spark: their statements in its words, and the values of the definition."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.engines.base import Engine
from sqlrs.engines.open import open_engine
from sqlrs.measuring.solver import solve
from sqlrs.owner.statements import Statement, statements
from sqlrs.planning.external_plans import Solved
from sqlrs.residuals.residual import Residuals
from tests.golden.constructs import CONSTRUCTS, PUBLIC, ROWS, TABLES
from tests.support import brute
from tests.support.sql_cases import domain, evaluator


@dataclass(frozen=True)
class SparkConstructs:
    """The constructs over an engine whose tables hold their rows."""

    engine: Engine
    catalog: Catalog

    @classmethod
    def on(cls, target: object) -> SparkConstructs:
        """On a session or a URL; the keys are checked."""
        engine = open_engine(target)
        keys = {t.label.lower(): [sorted(key) for key in t.keys] for t in TABLES if t.keys}
        catalog = engine.catalog()
        engine.check_keys(catalog, keys)
        return cls(engine, catalog.declare(public=PUBLIC, keys=keys))

    def text(self, name: str) -> str:
        """What `sqlrs sql` prints."""
        sql, found = _written(name), self._statements(name)[1]
        return "\n\n".join([f"-- the query\n{sql};", *map(str, found)]) + "\n"

    def assert_values(self, name: str) -> None:
        """Every statement gives the value of the definition."""
        residuals, found = self._statements(name)
        # Spark keeps names of tables in small letters.
        labels = {t.name.lower(): t.label for t in self.catalog.tables}
        rows = {labels[one.rpartition(".")[2].lower()]: ROWS[one] for one in ROWS}
        tried, evaluate = domain(residuals.query, rows), evaluator(residuals.query)
        by_name = {
            str(part): part for members in residuals.required for part in residuals.parts(members)
        }
        count = brute.count(residuals.query, rows, evaluate=evaluate)
        with self.engine.snapshot() as snapshot:
            for title, text in [("the query", _written(name)), *((s.title, s.sql) for s in found)]:
                statement = sqlglot.parse_one(text, dialect="spark")
                assert isinstance(statement, exp.Expression)
                if title in ("the query", "the count"):
                    assert snapshot.scalar(statement) == count
                    continue
                for residual in title.split(", boundary")[0].split(", whose")[0].split(" and "):
                    part = by_name[residual]
                    expected = brute.residual_value(part, rows, domain=tried, evaluate=evaluate)
                    if ", whose rows the solver reads" in title:
                        assert solve(Solved(part), snapshot.rows(statement)) == expected
                    else:
                        assert snapshot.scalar(statement) == expected, residual

    def _statements(self, name: str) -> tuple[Residuals, tuple[Statement, ...]]:
        settings = CONSTRUCTS[name].settings
        compiled = Compiled.of(_written(name), self.catalog, settings)
        assert isinstance(compiled, Compiled)
        return compiled.residuals, statements(compiled.residuals, "spark", settings.plan)


def _written(name: str) -> str:
    """The query in Spark's words: names stand in backticks, and days have a function."""
    named = CONSTRUCTS[name].sql.replace('""', "\0").replace('"', "`").replace("\0", '"')
    return named.replace("(a.day - b.day)", "(datediff(a.day, b.day))")
