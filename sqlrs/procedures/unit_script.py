"""A definition about units -> the texts of its function."""

from __future__ import annotations

from psycopg.sql import SQL, Composable, Literal

from sqlrs.procedures.shown_columns import Shown
from sqlrs.procedures.table_script import lines, returned_column, shown_value
from sqlrs.procedures.unit_definition import ClippedMeasure, UnitDefinition
from sqlrs.templates import template

_DIALECT = "postgres"


def unit_parts(definition: UnitDefinition) -> dict[str, Composable]:
    """What the template of a table needs beside what every function has."""
    first = 2 + len(definition.call.parameters)
    returned = definition.call.returned
    released = SQL("\n").join(
        _released(definition, place, one) for place, one in enumerate(definition.measures)
    )
    return {
        "unit": Literal(definition.unit.name),
        "returns": _returns(definition),
        "columns": lines(f"  returned_{i} ALIAS FOR ${first + i};" for i, _ in enumerate(returned)),
        "groups": SQL(definition.groups.sql(dialect=_DIALECT, pretty=True)),
        "max_groups": Literal(definition.max_groups),
        "rows": SQL("measured -> 0"),
        "bound_values": SQL(""),
        "check_work": SQL(""),
        "noisy": SQL(template("procedures/clipped_noise.sql")).format(released=released),
        "journaled": _journaled(definition),
        "tell": SQL("" if definition.one_number else template("procedures/tell_clippings.sql")),
        "deliver": SQL(template("procedures/table_rows.sql")).format(
            outputs=lines(_outputs(definition))
        ),
    }


def _returns(definition: UnitDefinition) -> Composable:
    if definition.one_number:
        return SQL(", ".join(f"{name} {kind}" for name, kind in definition.call.returned))
    return SQL(", ").join(map(returned_column, definition.shown))


def _journaled(definition: UnitDefinition) -> Composable:
    """The answer in the journal: the number, or how many rows a table has."""
    if not definition.one_number:
        return SQL("jsonb_array_length(told_rows)")
    return SQL(_of_first_row(definition.shown[0]))


def _of_first_row(one: Shown) -> str:
    return shown_value(one).replace("one ->", "told_rows -> 0 ->")


def _outputs(definition: UnitDefinition) -> list[str]:
    if not definition.one_number:
        return [
            f"    returned_{i} := {shown_value(one)};" for i, one in enumerate(definition.shown)
        ]
    place = definition.shown[0].place
    values = (
        shown_value(definition.shown[0]),
        "paid",
        "this_noise",
        f"(told_clippings -> {place} ->> 0)::numeric",
        f"(told_clippings -> {place} ->> 1)::numeric",
    )
    return [f"    returned_{i} := {value};" for i, value in enumerate(values)]


def _released(definition: UnitDefinition, place: int, measure: ClippedMeasure) -> Composable:
    """The lines that release one aggregate."""
    return SQL(template("procedures/clipped_measure.sql").rstrip("\n")).format(
        place=Literal(place),
        found=Literal(place + 1),
        thresholds=SQL(", ").join(map(Literal, measure.grid)),
        shared=Literal(len(definition.measures)),
        strict=Literal(definition.strict),
        signed=Literal(measure.signed),
        worth=Literal(measure.worth),
    )
