"""The command line: answers on stdout, messages on stderr, an exit code for each kind of end."""

from sqlrs.cli.main import main

__all__ = ["main"]
