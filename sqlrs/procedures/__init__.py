"""Private counts as functions inside PostgreSQL: rendered, installed, listed, removed."""

from __future__ import annotations

from sqlrs.procedures.definition import Definition
from sqlrs.procedures.installable import installable
from sqlrs.procedures.render import Grants, install_script
from sqlrs.procedures.table_definition import TableDefinition
from sqlrs.procedures.unit_definition import UnitDefinition

__all__ = [
    "Definition",
    "Grants",
    "TableDefinition",
    "UnitDefinition",
    "install_script",
    "installable",
]
