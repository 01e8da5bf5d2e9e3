"""``sqlrs budget``: see, grant and export budgets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlrs.cli import options
from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.units import ROW

if TYPE_CHECKING:
    from sqlrs.ledger.store import StoreLedger

app = typer.Typer(no_args_is_help=True, help="See, grant and export privacy budgets.")

Analyst = Annotated[str | None, typer.Option(metavar="NAME", help="The budget of one analyst.")]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="The budget of one dataset.")]


@app.command()
def show(config: options.ConfigFile = None, ledger: options.Ledger = None) -> None:
    """Print every budget: its cap, what is spent, what remains, and a unit other than the row."""
    budgets = _store(config, ledger, create=False).show()
    print(f"{'kind':<9}{'name':<24}{'cap':>14}{'spent':>14}{'remaining':>14}")
    for b in budgets:
        unit = "" if b.unit in (None, ROW) else f"  unit {b.unit}"
        print(f"{b.kind:<9}{b.name:<24}{b.cap:>14f}{b.spent:>14f}{b.remaining:>14f}{unit}")


@app.command()
def grant(
    epsilon: Annotated[str, typer.Argument(metavar="E", help="The cap over all time.")],
    analyst: Analyst = None,
    dataset: Dataset = None,
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Set the cap of one analyst or of one dataset."""
    if (analyst is None) == (dataset is None):
        raise UsageError("name one budget", hint="give either --analyst or --dataset")
    budget = _store(config, ledger, create=True).grant(
        epsilon=epsilon, analyst=analyst, dataset=dataset
    )
    print(f"{budget.kind} {budget.name}: cap {budget.cap:f}, remaining {budget.remaining:f}")


@app.command()
def history(
    analyst: Analyst = None, config: options.ConfigFile = None, ledger: options.Ledger = None
) -> None:
    """Print every release: when, who, how much, the outcome and the query."""
    for r in _store(config, ledger, create=False).history(analyst):
        charge = r.charge
        unit = "" if charge.unit == ROW else f"  unit {charge.unit}"
        print(
            f"{r.ticket}  {r.at:%Y-%m-%d %H:%M:%S}  {charge.analyst}  {charge.dataset}  "
            f"ε {charge.epsilon:f}{unit}  {r.outcome}  {r.answer or '-'}\n    {charge.query}"
        )


@app.command()
def export(
    form: Annotated[str, typer.Option("--format", metavar="jsonl|csv", help="The form.")] = "jsonl",
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Print the whole journal for other programs."""
    if form == "csv":
        print(_store(config, ledger, create=False).export("csv"), end="")
    elif form == "jsonl":
        print(_store(config, ledger, create=False).export("jsonl"), end="")
    else:
        raise UsageError(f"there is no format {form!r}", hint="use jsonl or csv")


def _store(config: Path | None, ledger: str | None, *, create: bool) -> StoreLedger:
    from sqlrs.ledger.store import StoreLedger

    file = config or (None if ledger else options.found())
    url = ledger or (Config.read(file).ledger if file else None)
    if url is None:
        raise UsageError(
            f"{file} names no ledger" if file else "no ledger was named",
            hint="give --ledger sqlite:///budget.db, or --config FILE with ledger = …",
        )
    return StoreLedger(url, create=create)
