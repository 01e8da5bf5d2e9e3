"""``sqlrs serve``, ``sqlrs check-config`` and ``sqlrs user``: the proxy for PostgreSQL clients."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from getpass import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlrs.cli import console, options
from sqlrs.errors import UsageError
from sqlrs.inputs.sections import has_section

if TYPE_CHECKING:
    from sqlrs.database import Database
    from sqlrs.proxy.server import Companion, Proxy
    from sqlrs.proxy.service import Service

users_app = typer.Typer(no_args_is_help=True, help="Add, list and remove the proxy's users.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name.")]
UsersFile = Annotated[
    Path | None, typer.Option("--users", metavar="FILE", help="The file of users.")
]
_STATE = Path(".sqlrs")


def serve(
    config: options.ConfigFile = None,
    user: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Start everything on this machine for this analyst."),
    ] = None,
    budget: Annotated[str, typer.Option(metavar="E", help="The budget of a new user.")] = "10",
    port: Annotated[
        int | None,
        typer.Option(help="The port for clients; else that of the configuration, or 6432."),
    ] = None,
    state: Annotated[
        Path, typer.Option(metavar="DIR", help="Users, budgets and certificate of --user.")
    ] = _STATE,
    db: options.Db = None,
    table: options.TableFiles = None,
    types: options.Types = None,
    undirected: options.Undirected = None,
    private: options.Private = None,
    public: options.Public = None,
    key: options.Key = None,
    unit: options.Units = None,
    owner: options.Owner = None,
    max_rows: options.MaxRows = None,
    domain: options.Domain = None,
    bounds: options.Bounds = None,
    function: options.Function = None,
    ledger: options.Ledger = None,
    memory_limit: options.MemoryLimit = None,
    temp_directory: options.TempDirectory = None,
    max_temp_directory_size: options.MaxTempDirectorySize = None,
    threads: options.Threads = None,
    timeout: options.Timeout = None,
) -> None:
    """Let PostgreSQL clients ask private counts."""
    from sqlrs.proxy import ProxyConfig, embedded, serve

    if config is None and not db and not table:
        config = options.found()
    data = options.gather(
        config=config,
        db=db,
        table=table,
        types=types,
        undirected=undirected,
        private=private,
        public=public,
        key=key,
        unit=unit,
        owner=owner,
        max_rows=max_rows,
        domain=domain,
        bounds=bounds,
        function=function,
        ledger=ledger,
        memory_limit=memory_limit,
        temp_directory=temp_directory,
        max_temp_directory_size=max_temp_directory_size,
        threads=threads,
        timeout=timeout,
    )
    if user is None:
        if config is None:
            raise UsageError("nothing to serve", hint="give --config FILE, or --table and --user")
        proxy = ProxyConfig.read(config)
        if port is not None:
            proxy = replace(proxy, port=port)
        serve(data, proxy, config_path=config, ready=_say, beside=_console(config))
        return
    local = embedded(data, user, state=state, budget=budget, port=port)
    if local.password is not None:
        print(f"password of {user}: {local.password}", flush=True)
    else:
        print(f"{user} keeps the password that was printed at the first start", flush=True)
    serve(local.data, local.proxy, ready=_say)


def check_config(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The configuration.")],
) -> None:
    """Read a configuration, open what it names, and say what would be served."""
    from sqlrs.proxy import check_config

    for line in check_config(file):
        print(line)


@users_app.command("add")
def add(name: Name, config: options.ConfigFile = None, users: UsersFile = None) -> None:
    """Add a user or change a password, asked for or read from stdin."""
    from sqlrs.proxy import add_user

    file = _users_file(config, users)
    try:
        if sys.stdin is not None and sys.stdin.isatty():
            password = getpass(f"password of {name}: ")
        else:
            password = options.read_input(one_line=True)
    except EOFError:
        password = ""
    add_user(file, name, password.rstrip("\r\n"))


@users_app.command("list")
def list_users(config: options.ConfigFile = None, users: UsersFile = None) -> None:
    """Print the names of all users, one a line."""
    from sqlrs.proxy.users import read_users

    file = _users_file(config, users)
    names = sorted(read_users(file))
    if not names:
        print(f"sqlrs: {file} names no user", file=sys.stderr)
    for name in names:
        print(name)


@users_app.command("remove")
def remove(name: Name, config: options.ConfigFile = None, users: UsersFile = None) -> None:
    """Remove a user."""
    from sqlrs.proxy import remove_user

    remove_user(_users_file(config, users), name)


def _users_file(config: Path | None, users: Path | None) -> Path:
    from sqlrs.proxy import ProxyConfig

    if users is not None:
        return users
    config = config or options.found()
    if config is None:
        raise UsageError("no file of users was named", hint="give --config FILE or --users FILE")
    return ProxyConfig.read(config).users


def _console(config: Path) -> Callable[[Service, Mapping[str, Database]], Companion] | None:
    """The console, where the file has a section for it."""
    if not has_section(config, "console"):
        return None
    from sqlrs.console.starting import beside, configured

    pages = configured(config)
    return None if pages is None else beside(pages, console.say)


def _say(proxy: Proxy) -> None:
    config = proxy.service.config
    print(f"listening on {config.listen}:{proxy.port}, database {config.database}", flush=True)
