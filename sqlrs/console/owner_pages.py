"""The owner's pages: how budgets are used, what was released, grants and requests, the tables."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from sqlrs.console.budgets import analyst_rows, dataset_gauges
from sqlrs.console.guard import Visit
from sqlrs.console.lines import shown_lines
from sqlrs.console.table_words import described_tables
from sqlrs.errors import UsageError
from sqlrs.ledger.export import answers_csv, csv_text
from sqlrs.ledger.granting import OPEN
from sqlrs.ledger.overview import FAILED, Wanted
from sqlrs.ledger.windows import NEVER, RENEWALS

_PAGE = 50
_EXPORTED = 100_000
_WHOLE = 10_000_000
_OUTCOMES = ("released", "reserved", FAILED)


async def overview(visit: Visit) -> Response:
    """A gauge for each dataset, the analysts, what waits, what was refused."""
    desk = visit.desk
    counted = desk.service.metrics.counted("sqlrs_refusals_total")
    refusals = sorted(
        ((dict(labels), times) for labels, times in counted.items()), key=lambda one: -one[1]
    )
    return visit.page(
        "owner.html",
        gauges=await asyncio.to_thread(dataset_gauges, desk),
        analysts=await asyncio.to_thread(analyst_rows, desk),
        waiting=await asyncio.to_thread(lambda: desk.ledger.requests(state=OPEN)),
        failed=shown_lines(
            await asyncio.to_thread(desk.ledger.lines, Wanted(outcome=FAILED, most=10))
        ),
        refusals=refusals[:50],
        started=desk.started,
    )


async def releases(visit: Visit) -> Response:
    """The journal with filters, a page at a time."""
    wanted, shown = _wanted(visit, _PAGE + 1)
    lines = await asyncio.to_thread(visit.desk.ledger.lines, wanted)
    older = lines[_PAGE - 1].ticket if len(lines) > _PAGE else None
    return visit.page(
        "releases.html",
        lines=shown_lines(lines[:_PAGE]),
        older=older,
        outcomes=_OUTCOMES,
        wanted=shown,
    )


async def releases_csv(visit: Visit) -> Response:
    """The same lines as CSV: one a release, or one for each released value."""
    wanted, _ = _wanted(visit, _EXPORTED, _WHOLE)
    values = visit.request.query_params.get("values") == "yes"
    write = answers_csv if values else csv_text
    text = await asyncio.to_thread(lambda: write(visit.desk.ledger.lines(wanted)))
    name = "answers.csv" if values else "releases.csv"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv; charset=utf-8", headers=headers)


async def tables(visit: Visit) -> Response:
    """What is exposed, and what is declared about it."""
    found = {name: described_tables(one) for name, one in visit.desk.databases.items()}
    return visit.page("tables.html", described=found)


async def budgets(visit: Visit) -> Response:
    """Every budget with its terms, requests, and what was done."""
    ledger = visit.desk.ledger
    return visit.page(
        "budgets.html",
        budgets=await asyncio.to_thread(ledger.show),
        waiting=await asyncio.to_thread(lambda: ledger.requests(state=OPEN)),
        acts=(await asyncio.to_thread(ledger.acts))[:100],
        names=visit.desk.service.users.names(),
        ledger_datasets=[one.dataset for one in visit.desk.databases.values()],
        renewals=(NEVER, *RENEWALS),
    )


async def grant(visit: Visit) -> Response:
    """Set a cap and its terms."""
    fields, ledger = visit.fields, visit.desk.ledger
    note, expires = fields.get("note", ""), fields.get("expires", "").strip()
    epsilon, renew = fields.get("epsilon", "").strip(), fields.get("renew", NEVER)
    await asyncio.to_thread(
        lambda: ledger.grant(
            **_whose(fields),
            epsilon=epsilon,
            note=note,
            expires=expires or NEVER,
            renew=renew,
            by=visit.user,
        )
    )
    return visit.to("/owner/budgets")


async def revoke(visit: Visit) -> Response:
    """Close a budget."""
    fields, ledger = visit.fields, visit.desk.ledger
    why = fields.get("why", "")
    await asyncio.to_thread(lambda: ledger.revoke(**_whose(fields), why=why, by=visit.user))
    return visit.to("/owner/budgets")


async def decide(visit: Visit) -> Response:
    """Grant or decline what an analyst asks for."""
    fields, ledger, by = visit.fields, visit.desk.ledger, visit.user
    number, why = visit.request.path_params["number"], fields.get("why", "")
    epsilon = fields.get("epsilon", "").strip() or None
    expires = fields.get("expires", "").strip() or None
    if fields.get("decision") == "grant":
        await asyncio.to_thread(
            lambda: ledger.approve(number, by=by, why=why, epsilon=epsilon, expires=expires)
        )
    elif fields.get("decision") == "decline":
        await asyncio.to_thread(lambda: ledger.decline(number, by=by, why=why))
    else:
        raise UsageError("a request is granted or declined")
    return visit.to("/owner/budgets")


def _whose(fields: dict[str, str]) -> dict[str, str]:
    kind, _, name = fields.get("budget", "").partition(":")
    if kind not in ("analyst", "dataset") or not name:
        raise UsageError("name one analyst or one dataset")
    return {kind: name}


def _wanted(visit: Visit, most: int, characters: int = 2000) -> tuple[Wanted, dict[str, str]]:
    given = visit.request.query_params
    shown = {
        name: given.get(name, "")[:200] for name in ("analyst", "dataset", "outcome", "q", "before")
    }
    if shown["outcome"] not in ("", *_OUTCOMES):
        raise UsageError("there is no such outcome")
    before = shown["before"]
    usable = before.isascii() and before.isdigit() and len(before) < 18
    wanted = Wanted(
        shown["analyst"] or None,
        shown["dataset"] or None,
        shown["outcome"] or None,
        shown["q"] or None,
        int(before) if usable else None,
        most,
        characters,
    )
    return wanted, shown
