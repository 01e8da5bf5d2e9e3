"""Every command by its name, with the place where it is found: who names one imports it alone."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated

import typer

from sqlrs import __version__

# Name -> module of this package and the function in it, in the order of --help.
COMMANDS = {
    "count": ("counting", "count"),
    "query": ("querying", "query"),
    "price": ("counting", "price"),
    "graph": ("counting", "graph"),
    "demo": ("counting", "demo"),
    "explain": ("owner", "explain"),
    "sql": ("owner", "sql"),
    "sensitivity": ("owner", "sensitivity"),
    "dry-run": ("owner", "dry_run"),
    "tables": ("tables", "tables"),
    "from-smartnoise": ("owner", "from_smartnoise"),
    "serve": ("proxy", "serve"),
    "console": ("console", "console"),
    "check-config": ("proxy", "check_config"),
    "install": ("procedures", "install"),
    "installed": ("procedures", "installed"),
    "uninstall": ("procedures", "uninstall"),
    "hide-statistics": ("procedures", "hide_statistics"),
}
GROUPS = {"budget": ("budget", "app"), "user": ("proxy", "users_app")}


def application(words: Sequence[str] = ()) -> typer.Typer:
    """The command line for these words: with the command that the first one names, else with all.

    Reading the options of all commands takes longer than a small count.
    """
    app = typer.Typer(
        name="sqlrs",
        help="Answer counting queries with joins under differential privacy, inside the database.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    app.callback()(_root)
    named = set(words[:1]) & (COMMANDS.keys() | GROUPS.keys())
    # What is imported stays: the garbage collector would look at it again and again.
    gc.disable()
    for name, place in COMMANDS.items():
        if name in named or not named:
            app.command(name)(_found(*place))
    for name, place in GROUPS.items():
        if name in named or not named:
            app.add_typer(_found(*place), name=name)
    gc.enable()
    return app


def _found(module: str, name: str) -> typer.Typer:
    found: typer.Typer = getattr(import_module(f"sqlrs.cli.{module}"), name)
    return found


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"sqlrs {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Answer counting queries with joins under differential privacy, inside the database."""
