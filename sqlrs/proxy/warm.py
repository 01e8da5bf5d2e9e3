"""What a first query would wait for and a second one finds: imports and tables of the parser."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

from sqlglot import exp

from sqlrs.catalog import Catalog, Table
from sqlrs.compiled import Compiled, compiled_text
from sqlrs.errors import SqlrsError
from sqlrs.planning.choose import choose
from sqlrs.settings import Settings
from sqlrs.sql.write import statement_of
from sqlrs.trees.build import table_of
from sqlrs.trees.identifiers import column

# What a single count does without, so that the command line starts quickly.
LATER = (
    "sqlrs.before_charge",
    "sqlrs.compiler.statement",
    "sqlrs.engines.released_json",
    "sqlrs.measuring.contributions",
    "sqlrs.measuring.groups",
    "sqlrs.measuring.owned_results",
    "sqlrs.measuring.read_totals",
    "sqlrs.mechanisms.clipped_rows",
    "sqlrs.sql.grouped_text",
    "sqlrs.table_answer",
)


def import_all() -> None:
    """Import what is otherwise imported when it is first used."""
    for name in LATER:
        import_module(name)


def warm(catalog: Catalog, settings: Settings) -> None:
    """Compile and plan one count over the schema. No row is read and nothing is charged."""
    import_all()
    table = next((one for one in catalog.tables if one.private and one.columns), None)
    if table is None:
        return
    # Whatever is wrong with it, its analyst will hear of it.
    with suppress(SqlrsError):
        compiled = compiled_text(_self_join(table).sql(catalog.dialect), catalog, settings)
        if isinstance(compiled, Compiled):
            residuals = compiled.residuals
            plan = choose(residuals.of(residuals.query.everything))
            statement_of(plan, catalog.dialect).sql(catalog.dialect)


def _self_join(table: Table) -> exp.Select:
    """All pairs of rows that agree in the first column."""
    name = table.columns[0].name
    same = exp.EQ(this=column(name, "a"), expression=column(name, "b"))
    first, second = (table_of(table, side) for side in "ab")
    return exp.select(exp.Count(this=exp.Star())).from_(first).join(second, on=same)
