"""``sqlrs count``, ``sqlrs graph`` and ``sqlrs demo``: private answers."""

from __future__ import annotations

import sys
import textwrap
from typing import Annotated

import typer

from sqlrs.answer import Answer
from sqlrs.cli import console, options
from sqlrs.cli.progress import progress_line
from sqlrs.config import Config, UnitSection
from sqlrs.database import Database
from sqlrs.errors import UsageError
from sqlrs.inputs.bigquery import without_clause
from sqlrs.inputs.said_owners import SaidOwner
from sqlrs.mechanisms import DEFAULT, NAMES

Epsilon = Annotated[str, typer.Option(metavar="E", help="The privacy budget of this answer.")]
Price = Annotated[
    str | None, typer.Option("--epsilon", metavar="E", help="The privacy budget of this answer.")
]
Error = Annotated[
    str | None,
    typer.Option(
        metavar="W",
        help="Instead of --epsilon: spend as much of --max-epsilon as makes the 95 % interval "
        "± W or narrower.",
    ),
]
MaxEpsilon = Annotated[
    str | None, typer.Option(metavar="E", help="The most that --error may cost.")
]
Mechanism = Annotated[
    str,
    typer.Option(
        metavar="|".join(NAMES), help="The noise; fitting: the least that the query allows."
    ),
]
Shape = Annotated[int | None, typer.Option(metavar="A", help="The shape of polylaplace.")]
ErrorBars = Annotated[
    str | None, typer.Option(metavar="E2", help="Spend E2 more on a 95 % interval.")
]

_NODES = UnitSection("node", {"edge": (SaidOwner(("src",)), SaidOwner(("dst",)))})


@options.with_data("ledger", "analyst", *options.LIMITS, *options.CHOICES)
def count(
    data: Config,
    sql: options.Sql,
    epsilon: Price = None,
    error: Error = None,
    max_epsilon: MaxEpsilon = None,
    mechanism: Mechanism = DEFAULT,
    shape: Shape = None,
    error_bars: ErrorBars = None,
    json: options.Json = False,
) -> None:
    """Answer a counting query with differential privacy."""
    sql = read_sql(sql)
    check_price(sql, epsilon, error, max_epsilon)
    with data.open() as database, progress_line(database.engine) as progress:
        answer = database.count(
            sql,
            epsilon,
            error=error,
            max_epsilon=max_epsilon,
            mechanism=mechanism,
            shape=shape,
            error_bars=error_bars,
            progress=progress,
        )
    show(answer, json)


@options.with_data("ledger", "analyst", *options.LIMITS, *options.CHOICES)
def price(
    data: Config,
    sql: options.Sql,
    error: Error = None,
    max_epsilon: Annotated[
        str, typer.Option(metavar="E", help="The most that an answer may cost.")
    ] = "1",
) -> None:
    """Say what is known of the price and the error of an answer, without spending anything."""
    with data.open() as database:
        print(database.price(read_sql(sql), error=error, max_epsilon=max_epsilon))


def check_price(sql: str, epsilon: str | None, error: str | None, max_epsilon: str | None) -> None:
    """Refuse a price that cannot be meant before any file is opened."""
    if epsilon is None and error is None and without_clause(sql).epsilon is None:
        raise UsageError(
            "no price was given", hint="give --epsilon E, or --error W --max-epsilon E"
        )
    if epsilon is not None and error is not None:
        raise UsageError("--epsilon and --error cannot stand together", hint="leave one out")
    if (error is None) != (max_epsilon is None):
        raise UsageError("--error and --max-epsilon belong together", hint="give both, or neither")


def graph(
    pattern: Annotated[
        str, typer.Argument(help="triangle, starK, pathK, cycleK, square, two_triangles, cliqueK.")
    ],
    file: Annotated[
        str,
        typer.Argument(help="An edge list (.txt, .edges, .mtx, .csv, .tsv), or a Parquet file."),
    ],
    epsilon: Epsilon,
    undirected: Annotated[
        bool,
        typer.Option(
            "--undirected", help="Read each edge both ways, and protect it as one: two rows."
        ),
    ] = False,
    node: Annotated[
        bool, typer.Option("--node", help="Protect a node with all its edges, not an edge.")
    ] = False,
    mechanism: Mechanism = DEFAULT,
    shape: Shape = None,
    error_bars: ErrorBars = None,
    memory_limit: options.MemoryLimit = None,
    temp_directory: options.TempDirectory = None,
    max_temp_directory_size: options.MaxTempDirectorySize = None,
    threads: options.Threads = None,
    timeout: options.Timeout = None,
    json: options.Json = False,
) -> None:
    """Count a pattern in a graph file, every edge private; with --node every node too."""
    from sqlrs.graphs.patterns import pattern_sql

    sql = pattern_sql(pattern)
    gathered = Config().override(
        tables={"edge": file},
        graphs={"edge": "undirected" if undirected else "directed"},
        unit=_NODES if node else None,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        max_temp_directory_size=max_temp_directory_size,
        threads=threads,
        timeout=timeout,
    )
    with gathered.open() as database:
        for line in _how_read(pattern, undirected, node):
            print(f"sqlrs: {line}", file=sys.stderr)
        answer = _ask(database, sql, epsilon, mechanism, shape, error_bars)
    show(answer, json)


def _how_read(pattern: str, undirected: bool, node: bool) -> tuple[str, str]:
    """How a graph is read, and how often an occurrence counts; nothing of it looks at the file."""
    from sqlrs.graphs.patterns import automorphisms, pattern_edges

    whole_node = "one node with all its edges is protected"
    edges = pattern_edges(pattern)
    both_ways = automorphisms(edges, undirected=True)
    if undirected:
        return (
            "read as undirected edges, each both ways, repetitions removed; "
            f"{whole_node if node else 'one undirected edge (two rows) is protected'}",
            f"each {pattern} counts {_times(both_ways)}",
        )
    one_way = automorphisms(edges, undirected=False)
    return (
        "read as directed edges src → dst, repetitions removed; "
        f"{whole_node if node else 'one row is protected'}; "
        "give --undirected if the edges have no direction",
        f"each directed {pattern} counts {_times(one_way)}; where the file holds both directions "
        f"of its edges, each {pattern} counts {_times(both_ways)}",
    )


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"


def demo(
    epsilon: Epsilon = "1",
    pattern: Annotated[str, typer.Option(help="A pattern, as for sqlrs graph.")] = "triangle",
    json: options.Json = False,
    web: Annotated[
        bool, typer.Option("--web", help="Serve the console on generated data instead.")
    ] = False,
    port: Annotated[int, typer.Option(help="The port of --web; 0 takes a free one.")] = 8432,
) -> None:
    """Count triangles privately in a graph that is generated on the spot."""
    if web:
        console.demo(port)
        return
    from sqlrs.graphs.demo import demo_database, known_truth
    from sqlrs.graphs.patterns import pattern_sql

    sql = pattern_sql(pattern)
    with demo_database() as database:
        answer = _ask(database, sql, epsilon, DEFAULT, None, None)
        if json:
            show(answer, json)
            return
        truth = known_truth(database, sql, answer.epsilon)
    print("A made-up graph of friends; every row of edge(src, dst) is private. The query:\n")
    print(textwrap.fill(sql, initial_indent="  ", subsequent_indent="    "))
    print(f"\nWhat the analyst gets, for epsilon {answer.epsilon}:")
    print(f"  the private answer {answer.value:>11,}   (run again for fresh noise)")
    print("What nobody gets from real data; shown because this graph is made up:")
    print(f"  the true count     {truth.count:>11,}")
    print(f"  the standard error {truth.standard_error:>11,}")


def read_sql(sql: str) -> str:
    """The query's text, from standard input where it is a dash."""
    return options.read_input() if sql == "-" else sql


def show(answer: Answer, json: bool) -> None:
    """Print an answer to stdout."""
    if json:
        print(answer.to_json())
        return
    if answer.repeated:
        print("sqlrs: asked before: the recorded answer, free of charge", file=sys.stderr)
    for note in answer.notes:
        print(f"sqlrs: {note}", file=sys.stderr)
    print(answer.value)
    if answer.error_bars is not None:
        bars = answer.error_bars
        print(f"between {bars.low} and {bars.high} with probability {float(bars.coverage):.0%}")


def _ask(
    database: Database,
    sql: str,
    epsilon: str,
    mechanism: str,
    shape: int | None,
    error_bars: str | None,
) -> Answer:
    with progress_line(database.engine) as progress:
        return database.count(
            sql,
            epsilon,
            mechanism=mechanism,
            shape=shape,
            error_bars=error_bars,
            progress=progress,
        )
