"""A definition -> the script that installs it. Names and values are quoted by psycopg alone."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal

from psycopg.sql import SQL, Composable, Identifier, Literal

from sqlrs.ledger.base import Kind
from sqlrs.procedures.calls import Call
from sqlrs.procedures.definition import RESERVED_NAMES, Definition
from sqlrs.procedures.schema_parts import MIGRATIONS, OBJECTS, edition
from sqlrs.procedures.staged_script import staged_measure
from sqlrs.procedures.table_definition import TableDefinition
from sqlrs.procedures.table_script import integers, table_parts
from sqlrs.procedures.unit_definition import UnitDefinition
from sqlrs.procedures.unit_script import unit_parts
from sqlrs.records import dataclass
from sqlrs.refusals import refusal
from sqlrs.templates import template
from sqlrs.units import ROW

DEFAULT_OWNER = "sqlrs_owner"

# What analysts call beside the counts themselves.
_FOR_ANALYSTS = frozenset({"budget", "history"})
AnyDefinition = Definition | TableDefinition | UnitDefinition
_QUOTES = ("$sqlrs$", "$measure$", "$groups$", "$keys$", "$above$")


@dataclass(frozen=True)
class Grants:
    """Who owns the function, who may call it, and which caps are set with it."""

    owner: str = DEFAULT_OWNER
    roles: tuple[str, ...] = ()
    budget: Decimal | None = None
    dataset_budget: Decimal | None = None


def install_script(definition: AnyDefinition, grants: Grants) -> str:
    """The whole script, for one transaction: it may be run again, and never touches a balance."""
    owner = Identifier(grants.owner)
    parts = [
        _text("begin"),
        _filled("owner", owner_text=Literal(grants.owner)),
        _filled("schema", owner_text=Literal(grants.owner)),
        _checked("check_roles", definition, grants, roles=_texts(grants.roles)),
        _checked("check_members", definition, grants),
        *(
            _filled(
                "read_table",
                schema=Identifier(table.schema or "public"),
                table=Identifier(table.name),
                owner=owner,
            )
            for table in definition.tables
        ),
        _filled("become_owner", owner=owner),
        _filled(
            "check_schema",
            owner_text=Literal(grants.owner),
            inner_functions=_texts(sorted(RESERVED_NAMES - _FOR_ANALYSTS)),
        ),
        _upgrade(),
        *(_text(name) for name in OBJECTS),
        _filled(
            "table_facts",
            columns=SQL(template("postgres/columns.sql")),
            keys=SQL(template("postgres/keys.sql")),
        ),
        _text("changed"),
        *_types(definition),
        _filled(
            "make_room",
            name=Literal(definition.name),
            names=_texts(definition.call.all_names),
            types=_texts(definition.call.all_types),
        ),
        *_function(definition),
        _filled("keep_grants", name=Literal(definition.name)),
        _filled("pin_settings", name=Literal(definition.name)),
        _filled(
            "record_definition",
            name=Literal(definition.name),
            dataset=Literal(definition.dataset),
            sql=Literal(definition.sql),
            shape=Literal(definition.shape),
            least_epsilon=Literal(definition.least_epsilon),
            repeats=Literal(definition.repeats),
            edition=Literal(edition()),
        ),
        _filled(
            "record_unit", dataset=Literal(definition.dataset), unit=Literal(_unit(definition))
        ),
        _text("lock_down"),
        *(
            _filled("grant_execute", role=Identifier(role), function=Identifier(definition.name))
            for role in grants.roles
        ),
        *_budgets(definition, grants),
    ]
    return "\n\n".join([*parts, "COMMIT;"]) + "\n"


def drop_query_script(name: str) -> str:
    """The statements that remove one function and keep the ledger."""
    return _filled("drop_query", function=Identifier(name), name=Literal(name))


def _upgrade() -> str:
    """The steps from whatever version the tables have to the newest."""
    steps = (
        _filled("step", version=Literal(version), statements=SQL(_text(f"migrations/{name}")))
        for version, name in enumerate(MIGRATIONS, start=1)
    )
    return _filled(
        "upgrade",
        newest=Literal(len(MIGRATIONS)),
        steps=SQL("\n".join(steps)),
        edition=Literal(edition()),
    )


def _function(definition: AnyDefinition) -> Iterable[str]:
    """The function; for the keys of a table there is a view while PostgreSQL reads their types."""
    common: dict[str, Composable] = {
        "function": Identifier(definition.name),
        "guards": SQL(_text("guards")),
        "takes": SQL(definition.call.takes),
        "written": SQL(definition.call.written),
        "check_arguments": _arguments(definition.call),
        "facts_at": SQL(definition.call.after),
        "arguments": SQL(definition.call.arguments),
        "name": Literal(definition.name),
        "dataset": Literal(definition.dataset),
        "query": Literal(definition.canonical),
        "mechanism": Literal(definition.mechanism),
        "least_epsilon": Literal(definition.least_epsilon),
        "repeats": Literal(definition.repeats),
        "edition": Literal(edition()),
        "facts": Literal(definition.facts),
        "measure": _measure(definition),
    }
    if isinstance(definition, Definition):
        yield _quoted(_filled("count", **common | _count_parts(definition)))
        return
    if definition.typed is not None:
        yield _filled("key_types", keys=SQL(definition.typed.sql(dialect="postgres")))
    if isinstance(definition, TableDefinition):
        own = table_parts(definition)
    else:
        own = unit_parts(definition)
    yield _quoted(_filled("table", **common, **own))
    if definition.typed is not None:
        yield "DROP VIEW sqlrs.key_types;"


def _count_parts(definition: Definition) -> dict[str, Composable]:
    programs = definition.programs
    values = SQL(", ").join(map(_product, definition.values))
    if definition.constant:
        noisy = _part(
            "constant_noise",
            answers=integers(programs.answers),
            length=Literal(len(programs.answers)),
            last=Literal(len(definition.values) + 1),
            values=values,
        )
        return {"noisy": noisy, "prepared": SQL(""), "tried": SQL("")}
    else:
        noisy = _part(
            "smooth_noise",
            shape=Literal(definition.shape),
            steps=integers(programs.steps),
            starts=integers(programs.starts),
            answers=integers(programs.answers),
            monomials=integers(programs.monomials),
            ceilings=integers(programs.ceilings),
            degrees=integers(programs.degrees),
            values=values,
        )
    shape = Literal(definition.shape)
    parts: dict[str, Composable] = {
        "noisy": noisy,
        "prepared": _part("ratio", shape=shape),
        "tried": SQL(""),
    }
    if definition.in_rounds:
        parts["measure"] = staged_measure(definition)
        parts["tried"] = SQL(", CASE WHEN asked >= {} THEN ratio END").format(
            Literal(definition.quick_epsilon)
        )
    return parts


def _measure(definition: AnyDefinition) -> Composable:
    return SQL(definition.measure.sql(dialect="postgres", pretty=True))


def _quoted(created: str) -> str:
    """The text of a query must not be able to end the quotes that it stands in."""
    if any(created.count(quote) not in (0, 2) for quote in _QUOTES):
        message = f"the query holds the text {' or '.join(_QUOTES)}"
        raise refusal("unsupported", message, hint="leave it out")
    return created


def _types(definition: AnyDefinition) -> Iterable[str]:
    """PostgreSQL reads the statement of what takes parameters, or is not made of plain counts."""
    parameters = definition.call.parameters
    if parameters or isinstance(definition, UnitDefinition):
        types = f" ({', '.join(parameters)})" if parameters else ""
        yield _filled("check_types", types=SQL(types), measure=_measure(definition))


def _unit(definition: AnyDefinition) -> str:
    return definition.unit.name if isinstance(definition, UnitDefinition) else ROW


def _arguments(call: Call) -> Composable:
    """Nothing for a function without parameters."""
    if not call.parameters:
        return SQL("")
    return _part("check_arguments", lengths=SQL(call.lengths))


def _checked(name: str, definition: AnyDefinition, grants: Grants, **parts: Composable) -> str:
    """A check of roles: nobody who is served, or not meant, has a way to the private tables."""
    private = [table for table in definition.tables if table.private]
    return _filled(
        name,
        **parts,
        owner_text=Literal(grants.owner),
        schemas=_texts(table.schema or "public" for table in private),
        tables=_texts(table.name for table in private),
    )


def _budgets(definition: AnyDefinition, grants: Grants) -> Iterable[str]:
    caps = [(Kind.ANALYST, role, grants.budget) for role in grants.roles]
    caps.append((Kind.DATASET, definition.dataset, grants.dataset_budget))
    for kind, name, cap in caps:
        if cap is not None:
            yield _filled(
                "set_budget", kind=Literal(str(kind)), name=Literal(name), cap=Literal(cap)
            )


def _texts(texts: Iterable[str]) -> Composable:
    return SQL("ARRAY[{}]::text[]").format(SQL(", ").join(map(Literal, texts)))


def _product(places: Iterable[int]) -> Composable:
    """The product of some of the measured numbers."""
    return SQL(" * ").join(SQL("measured[{}]").format(Literal(place)) for place in places)


def _part(name: str, /, **parts: Composable) -> Composable:
    """Some lines of a function."""
    return SQL(template(f"procedures/{name}.sql")).format(**parts)


def _filled(name: str, /, **parts: Composable) -> str:
    filled = SQL(_text(name)).format(**parts)
    return filled.as_string()


def _text(name: str) -> str:
    return template(f"procedures/{name}.sql").strip()
