"""The analyst's pages: ask, see the price, run, look back, ask for more budget."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

from starlette.responses import Response

from sqlrs.answer import Answer
from sqlrs.console.charts import charts, interval
from sqlrs.console.guard import Visit, problem_page
from sqlrs.console.lines import shown_lines
from sqlrs.errors import SqlrsError, UsageError
from sqlrs.ledger.export import table_text
from sqlrs.ledger.overview import Wanted
from sqlrs.table_answer import TableAnswer

_SHOWN_ROWS = 500
_HISTORY = 100


async def ask(visit: Visit) -> Response:
    """The editor with the schema beside it, empty or with an earlier question of one's own."""
    ticket = visit.request.query_params.get("ticket", "")
    sql, dataset = "", visit.request.query_params.get("dataset", "")
    if ticket.isascii() and ticket.isdigit() and len(ticket) < 18:
        sql = await asyncio.to_thread(_earlier, visit, int(ticket))
    return await _editor(visit, {"sql": sql, "dataset": dataset})


async def check(visit: Visit) -> Response:
    """Whether the text would be answered, what it would cost, how large its error is; free."""
    return await _judged(visit, "_checked.html")


async def confirm(visit: Visit) -> Response:
    """The price, before it is paid."""
    return await _judged(visit, "_confirm.html")


async def run(visit: Visit) -> Response:
    """Charge and answer. The price that was confirmed is the most that is charged."""
    desk = visit.desk
    try:
        question = desk.question(visit.user, visit.fields)
        checked = await desk.check(visit.user, question)
        if f"{checked.price:f}" != visit.fields.get("price", ""):
            # Another window, or another browser, came first: what was agreed to is not so any more.
            values = {"checked": checked, "fields": visit.fields, "changed": True}
            return await _shown(visit, "_confirm.html", **values)
        answer = await desk.run(visit.user, question)
    except SqlrsError as problem:
        return await _refused(visit, problem)
    name = visit.session.keep(answer) if visit.session is not None else ""
    remaining = await asyncio.to_thread(
        desk.offered(question.dataset).backend.remaining, visit.user
    )
    values = {
        "answer": answer,
        "name": name,
        "remaining": remaining,
        "question": question,
        "single": isinstance(answer, Answer),
        "drawings": [interval(answer)] if isinstance(answer, Answer) else charts(answer),
        "rows": () if isinstance(answer, Answer) else answer.rows[:_SHOWN_ROWS],
        "fields": visit.fields,
    }
    return await _shown(visit, "_answer.html", **values)


async def download(visit: Visit) -> Response:
    """An answer of this very session, as CSV or JSON."""
    name, form = visit.request.path_params["name"], visit.request.path_params["form"]
    answer = None if visit.session is None else visit.session.answers.get(name)
    if answer is None or form not in ("csv", "json"):
        raise UsageError(
            "this answer is not kept any more", hint="ask again: a repeat costs nothing"
        )
    text = answer.to_json() if form == "json" else _csv(answer)
    kind = "application/json" if form == "json" else "text/csv; charset=utf-8"
    disposition = f'attachment; filename="answer.{form}"'
    return Response(text, media_type=kind, headers={"Content-Disposition": disposition})


async def history(visit: Visit) -> Response:
    """One's own charges, newest first."""
    text = visit.request.query_params.get("q", "")[:200]
    wanted = Wanted(analyst=visit.user, text=text or None, most=_HISTORY)
    # As in the proxy: a long journal keeps a thread busy, and all pages share a few of them.
    async with visit.desk.service.journal(visit.user):
        lines = await asyncio.to_thread(visit.desk.ledger.lines, wanted)
    return visit.page("history.html", lines=shown_lines(lines), q=text, most=_HISTORY)


async def budget(visit: Visit) -> Response:
    """One's own budget and requests."""
    desk, user = visit.desk, visit.user
    own = await asyncio.to_thread(lambda: desk.ledger.budget(analyst=user))
    requests = await asyncio.to_thread(desk.ledger.requests, user)
    left = {
        name: await asyncio.to_thread(one.backend.remaining, user)
        for name, one in desk.service.datasets.items()
    }
    return visit.page("budget.html", budget=own, requests=requests[:50], left=left)


async def request(visit: Visit) -> Response:
    """Ask the owner for more."""
    desk, fields = visit.desk, visit.fields
    name = fields.get("dataset", "") or desk.service.first.name
    desk.offered(name)
    dataset, epsilon = desk.databases[name].dataset, fields.get("epsilon", "").strip()
    why = fields.get("why", "")
    await asyncio.to_thread(
        lambda: desk.ledger.ask(analyst=visit.user, dataset=dataset, epsilon=epsilon, why=why)
    )
    return visit.to("/budget")


async def _judged(visit: Visit, template: str) -> Response:
    try:
        question = visit.desk.question(visit.user, visit.fields)
        checked = await visit.desk.check(visit.user, question)
    except SqlrsError as problem:
        return await _refused(visit, problem)
    values = {"checked": checked, "fields": visit.fields, "changed": False}
    return await _shown(visit, template, **values)


async def _refused(visit: Visit, problem: SqlrsError) -> Response:
    name = visit.fields.get("dataset", "") or visit.desk.service.first.name
    if name in visit.desk.service.datasets:
        visit.desk.service.refused(name, problem.code)
    if visit.partial:
        return problem_page(visit, problem)
    return await _editor(visit, visit.fields, "_problem.html", 400, problem=problem)


async def _shown(visit: Visit, template: str, **values: Any) -> Response:
    if visit.partial:
        return visit.page(template, partial=True, **values)
    fields = values.pop("fields")
    return await _editor(visit, fields, template, 200, **values)


async def _editor(
    visit: Visit,
    fields: dict[str, str],
    part: str | None = None,
    status: int = 200,
    **values: Any,
) -> Response:
    desk = visit.desk
    name = fields.get("dataset", "") or desk.service.first.name
    offered = desk.offered(name)
    remaining = await asyncio.to_thread(offered.backend.remaining, visit.user)
    return visit.page(
        "ask.html",
        status,
        part=part,
        fields=fields,
        dataset=name,
        schema=offered.backend.schema(),
        left=remaining,
        limits=desk.service.config.analyst(visit.user),
        text=fields.get("sql", ""),
        **values,
    )


def _earlier(visit: Visit, ticket: int) -> str:
    """The text of one of the analyst's own lines."""
    most = visit.desk.service.config.limits.statement_characters
    wanted = Wanted(analyst=visit.user, before=ticket + 1, most=1, characters=most)
    found = visit.desk.ledger.lines(wanted)
    return found[0].charge.query if found and found[0].ticket == ticket else ""


def _csv(answer: Answer | TableAnswer) -> str:
    if isinstance(answer, TableAnswer):
        return table_text(answer.names, [[_text(value) for value in row] for row in answer.rows])
    bars = answer.error_bars
    ends = ("", "", "") if bars is None else (bars.low, bars.high, str(bars.coverage))
    head = ("answer", "low", "high", "coverage", "epsilon", "mechanism")
    row = (answer.value, *ends, f"{answer.epsilon:f}", answer.mechanism)
    return table_text(head, [row])


def _text(value: object) -> object:
    if value is None:
        return ""
    return value.isoformat() if isinstance(value, datetime) else value
