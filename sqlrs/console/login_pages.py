"""Logging in and out: the proxy's users and passwords, its limits on guesses."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from sqlrs.console.guard import Visit, cookie_name
from sqlrs.proxy.logs import log

# Every failed login takes this long, whatever made it fail.
_FAILURE_SECONDS = 0.5
_LONGEST_PASSWORD = 1024


async def start(visit: Visit) -> Response:
    """To the page that is meant for whoever comes."""
    if visit.session is None:
        return visit.to("/login")
    return visit.to("/owner" if visit.desk.is_owner(visit.user) else "/ask")


async def login(visit: Visit) -> Response:
    """The form."""
    if visit.session is not None:
        return visit.to("/")
    return visit.page("login.html", problem="", name="")


async def logging_in(visit: Visit) -> Response:
    """Check the password as the proxy does, slowly where it is wrong."""
    service, desk = visit.desk.service, visit.desk
    client = visit.request.client
    peer = "" if client is None else client.host
    name, password = visit.fields.get("name", ""), visit.fields.get("password", "")
    began = asyncio.get_running_loop().time()
    service.guesses.check(peer, name)
    usable = len(password) <= _LONGEST_PASSWORD
    fits = usable and await asyncio.to_thread(service.users.fits, name, password)
    # Once more: of many that were let in at once, no more are told than one after the other.
    service.guesses.check(peer, name)
    if not fits:
        service.guesses.failed(peer, name)
        service.metrics.count("sqlrs_authentication_failures_total")
        log("authentication_failed", "warning", peer=peer)
        elapsed = asyncio.get_running_loop().time() - began
        await asyncio.sleep(max(0.0, _FAILURE_SECONDS - elapsed))
        words = "The name or the password is wrong."
        return visit.page("login.html", 401, problem=words, name=name[:63])
    service.guesses.succeeded(peer, name)
    token, _ = desk.sessions.begin(name)
    log("session_opened", "debug", analyst=name)
    response = visit.to("/")
    response.set_cookie(
        cookie_name(desk), token, httponly=True, secure=desk.secure, samesite="strict", path="/"
    )
    return response


async def logging_out(visit: Visit) -> Response:
    """End the session."""
    visit.desk.sessions.end(visit.request.cookies.get(cookie_name(visit.desk), ""))
    response = visit.to("/login")
    response.delete_cookie(cookie_name(visit.desk), path="/", secure=visit.desk.secure)
    return response
