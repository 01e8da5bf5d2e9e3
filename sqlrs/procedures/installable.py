"""Which kind of function a text becomes: a count, a table, or an answer about units."""

from __future__ import annotations

from collections.abc import Sequence

from sqlrs.catalog import Catalog
from sqlrs.compiled import MORE_THAN_A_COUNT
from sqlrs.errors import QueryRefused
from sqlrs.noise import DEFAULT_SHAPE
from sqlrs.procedures.definition import Definition
from sqlrs.procedures.facts import Keys
from sqlrs.procedures.table_definition import TableDefinition
from sqlrs.procedures.unit_definition import UnitDefinition
from sqlrs.settings import Settings


def installable(
    sql: str,
    catalog: Catalog,
    *,
    name: str,
    dataset: str = "data",
    shape: int = DEFAULT_SHAPE,
    repeats: bool = True,
    settings: Settings | None = None,
    declared_keys: Keys | None = None,
    parameters: Sequence[str] = (),
) -> Definition | TableDefinition | UnitDefinition:
    """Compile a text for installation, or refuse it; see ``Definition.of``.

    ``shape`` is that of a count's noise; the noise of a table and of units has none.
    """
    if catalog.unit is not None:
        return UnitDefinition.of(
            sql,
            catalog,
            name=name,
            dataset=dataset,
            repeats=repeats,
            settings=settings,
            declared_keys=declared_keys,
            parameters=parameters,
        )
    try:
        return Definition.of(
            sql,
            catalog,
            name=name,
            dataset=dataset,
            shape=shape,
            repeats=repeats,
            settings=settings,
            declared_keys=declared_keys,
            parameters=parameters,
        )
    except QueryRefused as error:
        if error.code not in MORE_THAN_A_COUNT:
            raise
    return TableDefinition.of(
        sql,
        catalog,
        name=name,
        dataset=dataset,
        repeats=repeats,
        settings=settings,
        declared_keys=declared_keys,
        parameters=parameters,
    )
