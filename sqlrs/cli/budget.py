"""``sqlrs budget``: see, grant, revoke and export budgets, decide what analysts ask for."""

from __future__ import annotations

import sys
from getpass import getuser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sqlrs.cli import options
from sqlrs.config import Config
from sqlrs.errors import UsageError
from sqlrs.ledger.base import PrivacyBudget
from sqlrs.ledger.windows import NEVER, RENEWALS
from sqlrs.units import ROW

if TYPE_CHECKING:
    from sqlrs.ledger.store import StoreLedger

app = typer.Typer(no_args_is_help=True, help="See, grant and export privacy budgets.")

Analyst = Annotated[str | None, typer.Option(metavar="NAME", help="The budget of one analyst.")]
Dataset = Annotated[str | None, typer.Option(metavar="NAME", help="The budget of one dataset.")]
By = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who does it; else the user of this machine.")
]
Why = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the record and the analyst.")]
Expires = Annotated[
    str | None,
    typer.Option(metavar="WHEN", help="2026-12-31 (to its end, UTC), a moment, or never."),
]
Request = Annotated[int, typer.Argument(metavar="NUMBER", help="The request's number.")]


@app.command()
def show(config: options.ConfigFile = None, ledger: options.Ledger = None) -> None:
    """Print every budget: cap, spent, remaining, lifetime total, and its terms.

    Of a budget that is renewed, spent is that of the present window.
    """
    budgets = _store(config, ledger, create=False).show()
    heads = ("cap", "spent", "remaining", "lifetime")
    print(f"{'kind':<9}{'name':<24}" + "".join(f"{head:>14}" for head in heads))
    for b in budgets:
        numbers = (b.cap, b.counted, b.remaining, b.spent)
        cells = "".join(f"{number:>14f}" for number in numbers)
        print(f"{b.kind:<9}{b.name:<24}{cells}{_terms(b)}")


@app.command()
def grant(
    epsilon: Annotated[
        str, typer.Argument(metavar="E", help="The cap over all time, or of each window.")
    ],
    analyst: Analyst = None,
    dataset: Dataset = None,
    renew: Annotated[
        str | None,
        typer.Option(metavar="|".join((*RENEWALS, NEVER)), help="A new cap in each such window."),
    ] = None,
    expires: Expires = None,
    note: Annotated[str | None, typer.Option(metavar="TEXT", help="A note, such as why.")] = None,
    by: By = None,
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Set the cap of one analyst or of one dataset; terms that are not given stay as they are."""
    _one_budget(analyst, dataset)
    budget = _store(config, ledger, create=True).grant(
        epsilon=epsilon,
        analyst=analyst,
        dataset=dataset,
        note=note,
        expires=expires,
        renew=renew,
        by=by or _user(),
    )
    _say(budget)


@app.command()
def revoke(
    why: Why,
    analyst: Analyst = None,
    dataset: Dataset = None,
    by: By = None,
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Close a budget: a cap of 0. What is spent stays spent, and repeats stay free."""
    _one_budget(analyst, dataset)
    store = _store(config, ledger, create=False)
    _say(store.revoke(why=why, analyst=analyst, dataset=dataset, by=by or _user()))


@app.command()
def ask(
    epsilon: Annotated[str, typer.Argument(metavar="E", help="How much more.")],
    analyst: Annotated[str, typer.Option(metavar="NAME", help="Who asks.")],
    why: Why,
    dataset: Annotated[str, typer.Option(metavar="NAME", help="For which dataset.")] = "data",
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Record that an analyst asks for more; the number of the request is printed."""
    store = _store(config, ledger, create=False)
    print(store.ask(analyst=analyst, dataset=dataset, epsilon=epsilon, why=why))


@app.command()
def requests(
    every: Annotated[bool, typer.Option("--all", help="Those that are decided, too.")] = False,
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Print what analysts ask for, newest first."""
    store = _store(config, ledger, create=False)
    for one in store.requests(state=None if every else "open"):
        decided = "" if one.decision is None else f" by {one.decision.who}: {one.decision.why}"
        print(
            f"{one.number}  {one.at:%Y-%m-%d %H:%M:%S}  {one.analyst}  {one.dataset}  "
            f"ε {one.epsilon:f}  {one.state}{decided}\n    {one.why}"
        )


@app.command()
def approve(
    request: Request,
    epsilon: Annotated[
        str | None, typer.Option(metavar="E", help="How much more; else what was asked for.")
    ] = None,
    why: Why = "",
    expires: Expires = None,
    by: By = None,
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Grant a request: the analyst's cap rises by as much."""
    store = _store(config, ledger, create=False)
    budget = store.approve(request, by=by or _user(), why=why, epsilon=epsilon, expires=expires)
    _say(budget)
    if budget.renew:
        print(f"this is the cap of each {budget.renew} window from now on", file=sys.stderr)


@app.command()
def decline(
    request: Request,
    why: Why,
    by: By = None,
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Turn a request down."""
    _say(_store(config, ledger, create=False).decline(request, by=by or _user(), why=why))


@app.command()
def acts(config: options.ConfigFile = None, ledger: options.Ledger = None) -> None:
    """Print what was done to budgets, newest first: when, by whom, what and why."""
    for one in _store(config, ledger, create=False).acts():
        request = "" if one.request is None else f"  request {one.request}"
        print(
            f"{one.number}  {one.at:%Y-%m-%d %H:%M:%S}  {one.who}  {one.act}  {one.kind} "
            f"{one.name}  cap {one.cap:f}{request}  {one.why or '-'}"
        )


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
    form: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="jsonl|csv|answers",
            help="JSON lines; CSV, a row a release; or CSV, a row for each released value.",
        ),
    ] = "jsonl",
    config: options.ConfigFile = None,
    ledger: options.Ledger = None,
) -> None:
    """Print the whole journal for other programs."""
    if form not in ("jsonl", "csv", "answers"):
        raise UsageError(f"there is no format {form!r}", hint="use jsonl, csv or answers")
    print(_store(config, ledger, create=False).export(form), end="")  # type: ignore[arg-type]


def _one_budget(analyst: str | None, dataset: str | None) -> None:
    if (analyst is None) == (dataset is None):
        raise UsageError("name one budget", hint="give either --analyst or --dataset")


def _user() -> str:
    try:
        return getuser()
    except (OSError, KeyError):
        return "owner"


def _say(budget: PrivacyBudget) -> None:
    numbers = f"cap {budget.cap:f}, remaining {budget.remaining:f}"
    print(f"{budget.kind} {budget.name}: {numbers}{_terms(budget)}")


def _terms(budget: PrivacyBudget) -> str:
    """What there is to say of a budget besides its numbers."""
    words = [] if budget.unit in (None, ROW) else [f"unit {budget.unit}"]
    if budget.renew:
        words.append(f"{budget.renew}, lifetime {budget.spent:f}")
    if budget.expires is not None:
        over = "expired" if budget.expired else "until"
        words.append(f"{over} {budget.expires:%Y-%m-%d %H:%M} UTC")
    if budget.note:
        words.append(f"({budget.note})")
    return "".join(f"  {word}" for word in words)


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
