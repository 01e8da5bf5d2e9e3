"""``sqlrs explain``, ``sql``, ``sensitivity`` and ``dry-run``: for those who run the data."""

from __future__ import annotations

import json as json_text
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlrs.cli import options
from sqlrs.cli.counting import ErrorBars, Mechanism, Shape, read_sql
from sqlrs.cli.progress import progress_line
from sqlrs.config import Config
from sqlrs.errors import EngineFailed, QueryRefused, UsageError
from sqlrs.inputs.smartnoise import read_metadata
from sqlrs.mechanisms import DEFAULT

if TYPE_CHECKING:
    from sqlrs.owner.diagnose import Diagnosis

_OF_ROWS = "these sensitivities are of single rows; answers protect units of {} by other means"


@options.with_data(*options.CHOICES)
def explain(
    data: Config,
    sql: options.Sql,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The ε to plan for.")] = "1",
    mechanism: Mechanism = DEFAULT,
    shape: Shape = None,
    error_bars: ErrorBars = None,
    svg: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw the query graph.")
    ] = None,
    residual: Annotated[
        str | None,
        typer.Option(metavar="ALIAS[,…]", help="The residual whose boundary the picture marks."),
    ] = None,
) -> None:
    """Show the query graph, its residuals with their plans, and the error to expect."""
    with data.open(schema_only=True) as database:
        explanation = database.explain(
            read_sql(sql), epsilon, mechanism=mechanism, shape=shape, error_bars=error_bars
        )
    from sqlrs.owner.explain import Explanation

    if svg is not None and isinstance(explanation, Explanation):
        picture = explanation.svg(frozenset((residual or "").split(",")) - {""})
        try:
            svg.write_text(picture, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write {svg}: {error.strerror}") from None
    print(explanation)


@options.with_data(*options.CHOICES)
def sql(
    data: Config,
    sql: options.Sql,
    dialect: Annotated[
        str | None, typer.Option(metavar="duckdb|postgres|spark", help="The SQL to print.")
    ] = None,
) -> None:
    """Print the SQL statement of the count and of each residual."""
    with data.open(schema_only=True) as database:
        found = database.sql(read_sql(sql), dialect)
    print("\n\n".join(map(str, found)) if found else "-- no statement: the count is always 0")


@options.with_data(*options.LIMITS, *options.CHOICES)
def sensitivity(
    data: Config,
    sql: options.Sql,
    method: Annotated[
        str,
        typer.Option(metavar="refined|residual|elastic|smooth|global|local|all", help="Which one."),
    ] = "refined",
    beta: Annotated[str, typer.Option(metavar="B", help="The smoothness β.")] = "0.1",
    json: options.Json = False,
) -> None:
    """Print sensitivities of a query on the data. For the owner: nothing of it is private."""
    with data.open() as database, progress_line(database.engine) as progress:
        if method == "all":
            found = database.sensitivities(read_sql(sql), beta, progress=progress)
        else:
            one = database.sensitivity(read_sql(sql), method, beta, progress=progress)
            found = {method: one}
        unit = database.catalog.unit
    if unit is not None:
        print(f"sqlrs: {_OF_ROWS.format(unit.name)}", file=sys.stderr)
    if json:
        objects = {name: _as_dict(result) for name, result in found.items()}
        print(json_text.dumps({"methods": objects} if method == "all" else objects[method]))
        return
    for name, result in found.items():
        print(f"{name:<10}{_line(result)}")
    results = [one for one in found.values() if not isinstance(one, QueryRefused)]
    counts = [one.count for one in results if one.count is not None]
    if counts:
        print(f"{'count':<10}{counts[0]}")


@options.with_data(*options.LIMITS, *options.CHOICES)
def dry_run(
    data: Config,
    sql: options.Sql,
    epsilon: Annotated[str, typer.Option(metavar="E", help="The ε to try.")] = "1",
) -> None:
    """Run a query as a release would, within the limits, and say how long it took.

    For the owner: nothing is charged or released, and what is said depends on the data.
    """
    # No ledger hears of it, and what was refused after an earlier run may be tried again.
    unrecorded = replace(data, ledger=None, refused_queries=())
    with unrecorded.open() as database, progress_line() as progress:
        found = database.dry_run(read_sql(sql), epsilon, progress=progress)
    print(found)
    if found.problem:
        raise typer.Exit(EngineFailed.exit_code)


def from_smartnoise(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A SmartNoise metadata file, YAML.")],
) -> None:
    """Print the configuration that a SmartNoise metadata file means, and what was understood."""
    found = read_metadata(file)
    print(found.to_toml(), end="")
    for line in found.report:
        print(f"sqlrs: {line}", file=sys.stderr)


def _as_dict(result: Diagnosis | QueryRefused) -> dict[str, object]:
    if not isinstance(result, QueryRefused):
        return result.as_dict()
    return {"error": {"code": result.code, "message": result.message, "hint": result.hint}}


def _line(result: Diagnosis | QueryRefused) -> str:
    from sqlrs.owner.diagnose import decimal_text

    if isinstance(result, QueryRefused):
        return f"{'-':>24}  {result.message}"
    at = f"k = {result.k}" if result.k is not None else ""
    notes = f"  {'; '.join(result.notes)}" if result.notes else ""
    return f"{decimal_text(result.value, 2):>24}  {at:<10}{result.seconds:8.3f} s{notes}"
