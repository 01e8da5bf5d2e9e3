"""``sqlrs install``, ``installed``, ``uninstall``, ``hide-statistics``: inside PostgreSQL."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sqlrs.cli import options
from sqlrs.cli.counting import read_sql
from sqlrs.errors import UsageError
from sqlrs.ledger.base import parse_cap
from sqlrs.noise import DEFAULT_SHAPE
from sqlrs.units import ROW

Name = Annotated[str, typer.Option(metavar="NAME", help="The function is called sqlrs.NAME.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the script only.")]
Server = Annotated[str, typer.Option("--db", metavar="URL", help="postgresql://…")]


def install(
    sql: options.Sql,
    name: Name,
    grant: Annotated[
        list[str] | None,
        typer.Option(metavar="ROLE", help="A role that may call the function. Repeatable."),
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="E", help="The cap of each role's budget, over all time.")
    ] = None,
    dataset_budget: Annotated[
        str | None, typer.Option(metavar="E", help="The cap of the dataset's budget.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose budget every caller shares.")
    ] = None,
    shape: Annotated[
        int, typer.Option(metavar="A", help="The shape of the polylaplace noise.")
    ] = DEFAULT_SHAPE,
    parameter: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="The type of $1, then of $2, and so on. Repeatable."),
    ] = None,
    repeats: Annotated[bool, typer.Option(help="Give a recorded answer again at no cost.")] = True,
    owner: Annotated[
        str, typer.Option(metavar="ROLE", help="Owns all functions; made where missing.")
    ] = "sqlrs_owner",
    dry_run: DryRun = False,
    db: options.Db = None,
    private: options.Private = None,
    public: options.Public = None,
    key: options.Key = None,
    unit: options.Units = None,
    domain: options.Domain = None,
    bounds: options.Bounds = None,
    config: options.ConfigFile = None,
    plan: options.Plan = None,
    neighbours: options.Neighbours = None,
    max_groups: options.MaxGroups = None,
) -> None:
    """Write a private count into PostgreSQL as a function that analysts call from any client."""
    from sqlrs.procedures import Grants, UnitDefinition, install_script, installable
    from sqlrs.procedures.calls import shown_call
    from sqlrs.procedures.install import install as run

    gathered = options.gather(
        config=config,
        db=db,
        table=None,
        private=private,
        public=public,
        key=key,
        unit=unit,
        domain=domain,
        bounds=bounds,
        plan=plan,
        neighbours=neighbours,
        max_groups=max_groups,
    )
    server = _postgres(gathered.db)
    with gathered.open() as database:
        definition = installable(
            read_sql(sql),
            database.catalog,
            name=name,
            dataset=dataset or gathered.dataset,
            shape=shape,
            repeats=repeats,
            settings=database.settings,
            declared_keys=gathered.keys,
            parameters=parameter or (),
        )
    grants = Grants(
        owner=owner,
        roles=tuple(grant or ()),
        budget=None if budget is None else parse_cap(budget),
        dataset_budget=None if dataset_budget is None else parse_cap(dataset_budget),
    )
    if dry_run:
        print(install_script(definition, grants), end="")
        return
    run(server, definition, grants)
    print(f"installed: {shown_call(name, definition.call.names)}")
    print(f"epsilon from {definition.least_epsilon:f}, charged to dataset {definition.dataset}")
    if isinstance(definition, UnitDefinition):
        print(f"it protects units of {definition.unit.name}: {definition.mechanism}")
    _warn(server)


def installed(db: Server) -> None:
    """List the installed functions, who may call them, and the budgets."""
    from sqlrs.procedures.install import balances
    from sqlrs.procedures.install import installed as listed
    from sqlrs.procedures.schema_parts import edition

    _postgres(db)
    functions = listed(db)
    if not functions:
        # Budgets may be left from functions that were removed.
        print("no function is installed in this database: see sqlrs install", file=sys.stderr)
    for one in functions:
        print(
            f"{one.name}  dataset {one.dataset}  {_noise(one.shape)}  epsilon from "
            f"{one.least_epsilon:f}  {'repeats are free' if one.repeats else 'no repeats'}  "
            f"for {', '.join(one.roles) or 'nobody'}  {_protects(one.unit)}\n    {one.sql}"
        )
        if one.edition != edition():
            print("    installed by another version of sqlrs: install it again")
    for balance in balances(db):
        spent = "unknown (see sqlrs.restore_spent)" if balance.spent is None else balance.spent
        print(
            f"{balance.kind} {balance.name}: cap {balance.cap:f}, spent {spent}, "
            f"of that {balance.recorded:f} on recorded answers"
        )
    _warn(db)


def uninstall(
    db: Server,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="One function.")] = None,
    everything: Annotated[
        bool, typer.Option("--everything", help="All functions and the ledger with its budgets.")
    ] = False,
) -> None:
    """Remove a function and keep the ledger, or remove everything."""
    from sqlrs.procedures.install import uninstall as drop
    from sqlrs.procedures.install import uninstall_everything

    _postgres(db)
    if (name is None) == (not everything):
        raise UsageError("say what to remove", hint="give either --name NAME or --everything")
    if name is None:
        uninstall_everything(db)
        print("removed all functions and the ledger")
    else:
        drop(db, name)
        print(f"removed {name}; what was spent stays spent")


def hide_statistics(db: Server, dry_run: DryRun = False) -> None:
    """Take PostgreSQL's counters, sizes and row estimates from everybody: for superusers.

    They tell about private rows. Members of pg_monitor keep them.
    """
    from sqlrs.procedures.server_statistics import hide, hide_script

    if dry_run:
        print(hide_script(), end="")
        return
    hide(db)
    print("hidden: the statistics are for superusers and members of pg_monitor")
    _warn(db)


def _protects(unit: str) -> str:
    return "protects one row" if unit == ROW else f"protects units of {unit}"


def _noise(shape: int) -> str:
    """A table has Laplace noise, which has no shape."""
    return f"shape {shape}" if shape else "laplace noise"


def _warn(db: str) -> None:
    from sqlrs.procedures.server_statistics import warnings

    for warning in warnings(db):
        print(f"warning: {warning}", file=sys.stderr)


def _postgres(url: str | None) -> str:
    if url is None or not url.startswith("postgres"):
        raise UsageError("functions are installed into PostgreSQL", hint="--db postgresql://…")
    return url
