"""The command line: answers on stdout, messages on stderr, an exit code for each kind of end."""

from sqlrs.cli.main import app, main

__all__ = ["app", "main"]
