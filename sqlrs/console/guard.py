"""What stands before every page: headers, the host, the session, the role, the form's token."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import field
from typing import Any, Literal
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sqlrs.console.config import LOCAL
from sqlrs.console.desk import Desk
from sqlrs.console.form_body import read_form
from sqlrs.console.rendering import rendered
from sqlrs.console.sessions import BrowserSession
from sqlrs.errors import EngineFailed, Interrupted, SqlrsError
from sqlrs.proxy.logs import log
from sqlrs.proxy.policy.gates import TooMany
from sqlrs.records import dataclass

Role = Literal["anybody", "analyst", "owner"]

_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": _POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Without any, browsers say of the page's own forms that they come from nowhere.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}


class Armour:
    """Gives every response its headers, and on this machine's own address takes its names alone.

    A name of somebody else's that leads here would let that page talk to this one.
    """

    def __init__(self, app: ASGIApp, desk: Desk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def armoured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if self._desk.secure:
                    headers["Strict-Transport-Security"] = "max-age=31536000"
            await send(message)

        if self._desk.config.listen in LOCAL and _host(Headers(scope=scope)) not in LOCAL:
            await Response("unknown host\n", 421)(scope, receive, armoured)
            return
        await self._app(scope, receive, armoured)


@dataclass
class Visit:
    """One request of somebody who may make it."""

    desk: Desk
    request: Request
    session: BrowserSession | None
    fields: dict[str, str] = field(default_factory=dict)

    @property
    def user(self) -> str:
        """Who is logged in."""
        if self.session is None:
            raise RuntimeError("nobody is logged in")
        return self.session.user

    @property
    def partial(self) -> bool:
        """Whether the page itself asks for a part of it."""
        return self.request.headers.get("hx-request") == "true"

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        """A page with what all of them show."""
        user = None if self.session is None else self.session.user
        return rendered(
            template,
            status,
            user=user,
            owner=user is not None and self.desk.is_owner(user),
            csrf="" if self.session is None else self.session.csrf,
            here=self.request.url.path,
            datasets=list(self.desk.service.datasets),
            **values,
        )

    def to(self, path: str) -> Response:
        """Go on to another page."""
        return RedirectResponse(path, 303)


Handler = Callable[[Visit], Awaitable[Response]]
Endpoint = Callable[[Request], Awaitable[Response]]


def cookie_name(desk: Desk) -> str:
    """With TLS the browser itself keeps it to this host and path."""
    return "__Host-sqlrs" if desk.secure else "sqlrs"


def guarded(desk: Desk, role: Role, handler: Handler) -> Endpoint:
    """The handler for those who may ask for it; what it raises becomes a page."""

    async def endpoint(request: Request) -> Response:
        token = request.cookies.get(cookie_name(desk), "")
        visit = Visit(desk, request, desk.sessions.find(token) if token else None)
        try:
            refused = await _refusal(visit, role)
            return refused if refused is not None else await handler(visit)
        except SqlrsError as problem:
            return problem_page(visit, problem)
        except asyncio.CancelledError:
            raise
        except Exception as problem:
            log("console_failed", "error", reason=type(problem).__name__)
        # Outside of the handler: what it quoted stays there.
        return problem_page(visit, EngineFailed("the page could not be made"))

    return endpoint


async def _refusal(visit: Visit, role: Role) -> Response | None:
    desk, request = visit.desk, visit.request
    if role != "anybody" and visit.session is None:
        if visit.partial:
            return Response(status_code=401, headers={"HX-Redirect": "/login"})
        return visit.to("/login")
    if visit.session is not None:
        desk.admit(visit.session.user)
    if role == "owner" and not desk.is_owner(visit.user):
        log("forbidden", "warning", analyst=visit.user)
        return _forbidden(visit, "this page is for the owner of the data")
    if role == "analyst" and desk.is_owner(visit.user):
        return _forbidden(visit, "an owner has no questions to ask here: log in as an analyst")
    if request.method not in ("GET", "HEAD"):
        if not _same_origin(request.headers):
            return _forbidden(visit, "the form comes from another site")
        limits = desk.service.config.limits
        visit.fields = await read_form(
            request.headers.get("content-type", ""),
            request.stream(),
            limits.message_bytes,
            limits.message_seconds,
        )
        token = visit.fields.pop("csrf", "")
        if visit.session is not None and not visit.session.allows(token):
            return _forbidden(visit, "the form is not one of this session: load the page again")
    return None


def problem_page(visit: Visit, problem: SqlrsError) -> Response:
    """What went wrong and what to do, as a page or as a part of one."""
    status = 400
    if isinstance(problem, TooMany):
        status = 429
    elif isinstance(problem, EngineFailed | Interrupted):
        status = 503
    template = "_problem.html" if visit.partial else "problem.html"
    return visit.page(template, status, problem=problem, text=visit.fields.get("sql", ""))


def _forbidden(visit: Visit, words: str) -> Response:
    template = "_problem.html" if visit.partial else "problem.html"
    problem = SqlrsError(words, code="forbidden", hint="go back to a page of your own")
    return visit.page(template, 403, problem=problem, text="")


def _same_origin(headers: Headers) -> bool:
    """Browsers say where a form comes from; a form of this page says this host."""
    site = headers.get("sec-fetch-site")
    if site not in (None, "same-origin", "none"):
        return False
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc == headers.get("host", "")


def _host(headers: Headers) -> str:
    try:
        return urlsplit(f"//{headers.get('host', '')}").hostname or ""
    except ValueError:
        return ""
