"""A single count does not wait for the import of what it does not use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

UNUSED = """
import sys
from sqlrs.cli import main
try:
    main()
finally:
    print(*(name for name in sys.modules if name.startswith(("sqlrs", "sqlglot"))), file=sys.stderr)
    print(*{name.partition(".")[0] for name in sys.modules}, file=sys.stderr)
"""
# Statements with groups, what owners look at, PostgreSQL, units, and libraries that are heavy.
NOT_FOR_A_COUNT = {
    "sqlrs.before_charge",
    "sqlrs.cli.budget",
    "sqlrs.cli.owner",
    "sqlrs.cli.procedures",
    "sqlrs.cli.querying",
    "sqlrs.compiler.cut",
    "sqlrs.compiler.partitioned",
    "sqlrs.compiler.statement",
    "sqlrs.engines.copied_tables",
    "sqlrs.engines.duckdb_functions",
    "sqlrs.engines.given_views",
    "sqlrs.engines.named_fields",
    "sqlrs.engines.postgres_catalog",
    "sqlrs.engines.released",
    "sqlrs.engines.staged",
    "sqlrs.graphs.patterns",
    "sqlrs.ledger.store",
    "sqlrs.measuring.contributions",
    "sqlrs.measuring.groups",
    "sqlrs.measuring.solvable",
    "sqlrs.measuring.solver",
    "sqlrs.mechanisms.clipped_rows",
    "sqlrs.mechanisms.vector",
    "sqlrs.owner.diagnose",
    "sqlrs.owner.explain",
    "sqlrs.procedures",
    "sqlrs.proxy",
    "sqlrs.table_answer",
    *("duckdb", "highspy", "numpy", "psycopg", "rich", "sqlalchemy", "sqlite3", "z3"),
}


def test_a_count_imports_what_it_uses(tmp_path: Path) -> None:
    table = tmp_path / "edge.txt"
    table.write_text("1\t2\n2\t3\n", encoding="utf-8")
    sql = "SELECT count(*) FROM edge AS a JOIN edge AS b ON a.dst = b.src"
    command = ["count", sql, "--table", f"edge={table}", "--epsilon", "1"]
    run = subprocess.run(
        [sys.executable, "-c", UNUSED, *command], capture_output=True, text=True, check=True
    )
    imported = set(run.stderr.split())
    assert "sqlrs.release" in imported and "_duckdb" in imported
    assert NOT_FOR_A_COUNT & imported == set()
