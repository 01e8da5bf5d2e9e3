"""``sqlrs query``: private tables, with groups, sums and averages."""

from __future__ import annotations

import sys
from csv import writer as written_csv
from typing import Annotated

import typer

from sqlrs.cli import options
from sqlrs.cli.counting import Error, ErrorBars, MaxEpsilon, Price, check_price, read_sql
from sqlrs.cli.progress import progress_line
from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.mechanisms import CLIPPED, DEFAULT
from sqlrs.noise import PolyLaplace
from sqlrs.table_answer import TableAnswer

Sql = Annotated[
    str,
    typer.Argument(
        metavar="SQL", help="A query of counts, sums and averages; - reads it from stdin."
    ),
]
Mechanism = Annotated[
    str,
    typer.Option(
        metavar="|".join((DEFAULT, CLIPPED, PolyLaplace.name)),
        help="fitting: what the query allows; clipped: each private row or unit is cut to a "
        "threshold; polylaplace: units whose rows are bounded.",
    ),
]
Csv = Annotated[bool, typer.Option("--csv", help="Print the rows as CSV.")]


@options.with_data("ledger", "analyst", *options.LIMITS, *options.CHOICES)
def query(
    data: Config,
    sql: Sql,
    epsilon: Price = None,
    error: Error = None,
    max_epsilon: MaxEpsilon = None,
    mechanism: Mechanism = DEFAULT,
    error_bars: ErrorBars = None,
    json: options.Json = False,
    csv: Csv = False,
) -> None:
    """Answer a query with groups, sums and averages with differential privacy."""
    if json and csv:
        raise UsageError("the rows are printed as JSON or as CSV, not as both")
    sql = read_sql(sql)
    check_price(sql, epsilon, error, max_epsilon)
    with data.open() as database, progress_line(database.engine) as progress:
        answer = database.query(
            sql,
            epsilon,
            error=error,
            max_epsilon=max_epsilon,
            mechanism=mechanism,
            error_bars=error_bars,
            progress=progress,
        )
    show_table(answer, json=json, as_csv=csv)


def show_table(answer: TableAnswer, *, json: bool, as_csv: bool) -> None:
    """Print the rows to stdout, and what else is to be said to stderr."""
    if answer.repeated:
        print("sqlrs: asked before: the recorded numbers, free of charge", file=sys.stderr)
    if json:
        print(answer.to_json())
    elif as_csv:
        for note in answer.notes:
            print(f"sqlrs: {note}", file=sys.stderr)
        writer = written_csv(sys.stdout, lineterminator="\n")
        writer.writerow(answer.names)
        writer.writerows(answer.rows)
    else:
        print(answer.to_text())
