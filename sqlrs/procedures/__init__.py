"""Private counts as functions inside PostgreSQL: rendered, installed, listed, removed."""

from __future__ import annotations

from sqlrs.procedures.definition import Definition
from sqlrs.procedures.render import Grants, install_script

__all__ = ["Definition", "Grants", "install_script"]
