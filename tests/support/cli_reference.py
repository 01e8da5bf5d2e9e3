"""docs/cli.md: every command with its arguments and options, from the commands themselves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from sqlrs.cli.commands import application

_HEAD = """# Command line

Every command and option, as `--help` prints them; this page is generated. Exit codes: 0 answered,
2 usage, 3 the query is refused, 4 the budget is exhausted, 5 the database failed or what follows
released numbers could not be computed (both may have been charged), 130 interrupted
(143 by SIGTERM, 129 by SIGHUP); 1 stands for a pipe that was closed, or a mistake in sqlrs itself.
Answers go to stdout, messages to stderr. `sqlrs --version` prints the version.

Where `--config` is not given, `./sqlrs.toml` is read, and a line on stderr says so. It is not read
if `--db` or `--table` names the data, since what it declares public was said of other data; nor
where `--ledger` or `--users` names all that a command needs.
"""


def commands() -> Iterator[tuple[str, Any]]:
    """The full name of each command, ``sqlrs budget grant`` say, with the command."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, Any]]:
        below = getattr(command, "commands", None)
        if below is None:
            yield name, command
            return
        for word, one in below.items():
            yield from walk(f"{name} {word}", one)

    return walk("sqlrs", typer.main.get_command(application()))


def options() -> dict[str, frozenset[str]]:
    """The options of each command."""
    found = {
        name: frozenset({"--help"}).union(*(_names(p) for p in command.params))
        for name, command in commands()
    }
    root = typer.main.get_command(application())
    return found | {f"sqlrs {n}": frozenset({n}) for p in root.params for n in _names(p)}


def reference() -> str:
    """The whole page."""
    return "\n".join([_HEAD, *(_section(name, command) for name, command in commands())])


def _names(parameter: Any) -> frozenset[str]:
    return frozenset(n for n in (*parameter.opts, *parameter.secondary_opts) if n.startswith("--"))


def _section(name: str, command: Any) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    shown = "".join(
        f" {p.metavar or p.name.upper()}" if p.required else f" [{p.metavar or p.name.upper()}]"
        for p in arguments
    )
    lines = [f"## {name}", "", f"`{name}{shown}`", "", command.help.strip(), ""]
    lines += ["| | |", "|---|---|"]
    for p in command.params:
        if p in arguments:
            left = f"`{p.metavar or p.name.upper()}`"
        else:
            on = ", ".join(f"`{n}{f' {p.metavar}' if p.metavar else ''}`" for n in p.opts)
            off = "".join(f" / `{n}`" for n in p.secondary_opts)
            left = on + off
        lines.append(f"| {left.replace('|', chr(92) + '|')} | {_meaning(p)} |")
    return "\n".join(lines) + "\n"


def _meaning(parameter: Any) -> str:
    text = str(parameter.help or "").replace("|", "\\|")
    if parameter.required:
        return f"{text} Required." if parameter.param_type_name == "option" else text
    default = parameter.default
    if default in (None, False, "", ()) or callable(default):
        return text
    if default is True:
        return f"{text} Default: on."
    return f"{text} Default: {default}."
