"""All routes in one list: the path, who may use it, and what answers it."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from sqlrs.console import analyst_pages, login_pages, owner_pages
from sqlrs.console.desk import Desk
from sqlrs.console.guard import Armour, Handler, Role, guarded

STATIC = Path(__file__).parent / "static"


class Page(NamedTuple):
    """A route."""

    method: str
    path: str
    role: Role
    handler: Handler


PAGES = (
    Page("GET", "/", "anybody", login_pages.start),
    Page("GET", "/login", "anybody", login_pages.login),
    Page("POST", "/login", "anybody", login_pages.logging_in),
    Page("POST", "/logout", "anybody", login_pages.logging_out),
    Page("GET", "/ask", "analyst", analyst_pages.ask),
    Page("POST", "/check", "analyst", analyst_pages.check),
    Page("POST", "/confirm", "analyst", analyst_pages.confirm),
    Page("POST", "/run", "analyst", analyst_pages.run),
    Page("GET", "/answers/{name}.{form}", "analyst", analyst_pages.download),
    Page("GET", "/history", "analyst", analyst_pages.history),
    Page("GET", "/budget", "analyst", analyst_pages.budget),
    Page("POST", "/requests", "analyst", analyst_pages.request),
    Page("GET", "/owner", "owner", owner_pages.overview),
    Page("GET", "/owner/releases", "owner", owner_pages.releases),
    Page("GET", "/owner/releases.csv", "owner", owner_pages.releases_csv),
    Page("GET", "/owner/tables", "owner", owner_pages.tables),
    Page("GET", "/owner/budgets", "owner", owner_pages.budgets),
    Page("POST", "/owner/grant", "owner", owner_pages.grant),
    Page("POST", "/owner/revoke", "owner", owner_pages.revoke),
    Page("POST", "/owner/requests/{number:int}", "owner", owner_pages.decide),
)


def console_app(desk: Desk) -> Starlette:
    """The application; every response passes the armour."""
    routes = [
        Route(one.path, guarded(desk, one.role, one.handler), methods=[one.method]) for one in PAGES
    ]
    return Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))],
        middleware=[Middleware(Armour, desk=desk)],
        exception_handlers={404: _nothing, 405: _nothing},
    )


async def _nothing(request: Request, problem: Exception) -> Response:
    status = getattr(problem, "status_code", 404)
    return PlainTextResponse("there is no such page\n", status)
