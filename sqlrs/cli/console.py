"""``sqlrs console``: the web pages of owner and analysts."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from sqlrs.cli import options
from sqlrs.config import Config
from sqlrs.errors import UsageError

if TYPE_CHECKING:
    from sqlrs.console.http_server import ConsoleServer
    from sqlrs.console.web_demo import Demo

Port = Annotated[
    int | None, typer.Option(help="The port; else that of the configuration, or 8432.")
]


def console(config: options.ConfigFile = None, port: Port = None) -> None:
    """Serve the pages for analysts and owner in a browser, without the proxy."""
    from sqlrs.console.config import ConsoleConfig
    from sqlrs.console.starting import serve_console
    from sqlrs.proxy.config import ProxyConfig

    file = config or options.found()
    if file is None:
        raise UsageError("nothing to serve", hint="give --config FILE, or try sqlrs demo --web")
    pages = ConsoleConfig.read(file)
    if port is not None:
        pages = replace(pages, port=port)
    serve_console(Config.read(file), ProxyConfig.read(file), pages, ready=say)


def demo(port: int) -> None:
    """A console on generated data, until Ctrl-C."""
    from sqlrs.console.web_demo import serve_demo

    serve_demo(port, _say_demo)


def say(server: ConsoleServer) -> None:
    """Print where browsers find it."""
    print(f"console on {server.address}", flush=True)


def _say_demo(demo: Demo) -> None:
    say(demo.server)
    for user, password in demo.passwords.items():
        print(f"  {user}  {password}", flush=True)
    print("olga is the owner of made-up data, ada an analyst; Ctrl-C ends it.", flush=True)
