"""The SQL of every construct, as text that is kept, and as statements that give the right value.

Each file below this folder holds what `sqlrs sql` prints for one construct in one dialect. After a
change on purpose `make golden` writes them anew; read the difference.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlglot
from sqlglot import exp

from sqlrs.catalog import Catalog
from sqlrs.compiled import Compiled
from sqlrs.engines.base import Engine
from sqlrs.measuring.solver import solve
from sqlrs.owner.statements import statements
from sqlrs.planning.external_plans import Solved
from tests.golden.constructs import CONSTRUCTS, PUBLIC, ROWS, TABLES, Construct
from tests.support import brute
from tests.support.engine_fixtures import BothEngines
from tests.support.kept import assert_kept
from tests.support.sql_cases import domain, evaluator

FOLDER = Path(__file__).parent
DIALECTS = ("duckdb", "postgres")


@pytest.fixture(scope="module")
def loaded(both_engines: BothEngines) -> dict[str, tuple[Engine, Catalog]]:
    both_engines.load(TABLES, ROWS)
    return {
        name: (engine, engine.catalog().declare(public=PUBLIC))
        for name, engine in both_engines.engines.items()
    }


def _compiled(construct: Construct, catalog: Catalog) -> Compiled:
    compiled = Compiled.of(construct.sql, catalog, construct.settings)
    assert isinstance(compiled, Compiled)
    return compiled


def _printed(construct: Construct, catalog: Catalog, dialect: str) -> str:
    found = statements(_compiled(construct, catalog).residuals, dialect, construct.settings.plan)
    return "\n\n".join([f"-- the query\n{construct.sql};", *map(str, found)]) + "\n"


def _blocks(text: str) -> list[tuple[str, str]]:
    """The titles and statements of a file."""
    pairs = [block.removeprefix("-- ").split("\n", 1) for block in text.strip().split("\n\n")]
    return [(title, sql.removesuffix(";")) for title, sql in pairs]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_the_text_is_the_kept_one(
    loaded: dict[str, tuple[Engine, Catalog]], name: str, dialect: str
) -> None:
    printed = _printed(CONSTRUCTS[name], loaded[dialect][1], dialect)
    assert_kept(FOLDER / dialect / f"{name}.sql", printed)


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", CONSTRUCTS)
def test_the_kept_statements_give_the_values_of_the_definition(
    loaded: dict[str, tuple[Engine, Catalog]], name: str, dialect: str
) -> None:
    engine, catalog = loaded[dialect]
    residuals = _compiled(CONSTRUCTS[name], catalog).residuals
    rows = {t.label: ROWS.get(t.label) or ROWS[t.name] for t in catalog.tables}
    tried, evaluate = domain(residuals.query, rows), evaluator(residuals.query)
    by_name = {
        str(part): part for members in residuals.required for part in residuals.parts(members)
    }
    count = brute.count(residuals.query, rows, evaluate=evaluate)
    text = (FOLDER / dialect / f"{name}.sql").read_text(encoding="utf-8")
    with engine.snapshot() as snapshot:
        for title, sql in _blocks(text):
            statement = sqlglot.parse_one(sql, dialect=dialect)
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


def test_no_file_is_left_over() -> None:
    kept = {path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*.sql")}
    # Those of Spark are compared in tests/spark, where one is.
    dialects = (*DIALECTS, "spark")
    assert kept == {f"{dialect}/{name}.sql" for dialect in dialects for name in CONSTRUCTS}
