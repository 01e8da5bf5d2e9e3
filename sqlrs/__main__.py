"""``python -m sqlrs``: the command line."""

from sqlrs.cli import main

main()
