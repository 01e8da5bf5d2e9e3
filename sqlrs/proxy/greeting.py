"""The handshake of one client over its socket: TLS, authentication and their limits."""

from __future__ import annotations

import asyncio
import shlex
from functools import partial

from sqlrs.errors import SqlrsError
from sqlrs.proxy.logs import log
from sqlrs.proxy.policy.allowlist import BUDGET, HISTORY, RELEASE_SETTINGS
from sqlrs.proxy.policy.gates import Handshaking
from sqlrs.proxy.policy.guesses import network
from sqlrs.proxy.policy.price import AnalystLimits
from sqlrs.proxy.policy.utility import check_setting
from sqlrs.proxy.protocol.codec import ProtocolViolation
from sqlrs.proxy.protocol.handshake import (
    Authenticated,
    Cancel,
    Handshake,
    Rejected,
    Send,
    StartTls,
)
from sqlrs.proxy.protocol.scram import ScramServer
from sqlrs.proxy.protocol.wire import Wire
from sqlrs.proxy.service import Service

# Every failed authentication takes this long, whatever made it fail.
_FAILURE_SECONDS = 0.5


class Greeting:
    """Drives the handshake machine; its result is the client, or None if it is gone."""

    def __init__(self, service: Service, wire: Wire) -> None:
        self._service = service
        self._wire = wire
        self._started = asyncio.get_running_loop().time()
        self._user = ""
        self._place: Handshaking | None = None
        self._machine = Handshake(
            self._exchange,
            offer_tls=service.tls is not None,
            require_tls=service.config.tls == "require",
        )

    async def run(self) -> Authenticated | None:
        """Greet the client within the time for it."""
        peer = self._wire.peer
        self._service.metrics.count("sqlrs_connections_total")
        time = asyncio.timeout(self._service.config.limits.authentication_seconds)
        async with time:
            with self._service.handshakes.enter(network(peer), partial(_over, time)) as place:
                self._place = place
                while True:
                    data = await self._wire.read(3600)
                    if not data:
                        return None
                    for step in self._machine.receive(data):
                        match step:
                            case Authenticated():
                                self._expect_silence()
                                self._service.guesses.succeeded(peer, step.user)
                                return step
                            case Rejected():
                                await self._reject(step, peer)
                                return None
                            case Cancel(process, secret):
                                target = self._service.running.get(process)
                                if target is not None:
                                    target.cancel(secret)
                                return None
                            case Send(reply):
                                self._wire.write(reply)
                            case StartTls():
                                await self._start_tls()

    def _exchange(self, user: str) -> ScramServer:
        self._user = user
        self._check_guesses()
        if self._place is not None and self._service.guesses.known(self._wire.peer, user):
            self._place.shield(user)
        tls = self._service.tls if self._machine.encrypted else None
        end_point = None if tls is None else tls.end_point
        return self._service.users.exchange(user, end_point, self._check_guesses)

    def _check_guesses(self) -> None:
        self._service.guesses.check(self._wire.peer, self._user)

    async def _start_tls(self) -> None:
        if self._service.tls is None or self._wire.pending:
            # Bytes in clear behind the request would pass as if they came through TLS.
            raise ProtocolViolation("data follows the encryption request")
        seconds = self._service.config.limits.authentication_seconds
        await self._wire.start_tls(self._service.tls.context, seconds)
        self._machine.tls_started()

    async def _reject(self, step: Rejected, peer: str) -> None:
        if step.authentication:
            self._service.guesses.failed(peer, self._user)
            self._service.metrics.count("sqlrs_authentication_failures_total")
            log("authentication_failed", "warning", peer=peer)
            elapsed = asyncio.get_running_loop().time() - self._started
            await asyncio.sleep(max(0.0, _FAILURE_SECONDS - elapsed))
        self._wire.write(step.report.encode())

    def _expect_silence(self) -> None:
        # A client waits for ReadyForQuery before it sends anything.
        if self._machine.leftover():
            raise ProtocolViolation("data follows the authentication")


def _over(time: asyncio.Timeout) -> None:
    """End a handshake as if its time were over."""
    if not time.expired():
        time.reschedule(0)


def shadow_settings(client: Authenticated, limits: AnalystLimits) -> dict[str, str]:
    """The settings that a session starts with: the analyst's and those of the startup packet."""
    asked = dict(client.settings)
    asked |= _options(asked.pop("options", ""))
    # Both exist from the start; their values are written before they are read.
    chosen = {**limits.settings(), BUDGET: "", HISTORY: ""}
    for name, value in asked.items():
        key = name.lower()
        check_setting(key, value)
        if key in RELEASE_SETTINGS:
            limits.validate(key, value)
        if key != "client_encoding":
            chosen[key] = value
    return chosen


def _options(text: str) -> dict[str, str]:
    """The settings in ``-c name=value`` and ``--name=value`` options."""
    found: dict[str, str] = {}
    try:
        words = shlex.split(text)
    except ValueError:
        words = [text]
    while words:
        word = words.pop(0)
        if word == "-c" and words:
            word = words.pop(0)
        elif word.startswith(("-c", "--")):
            word = word[2:]
        else:
            word = ""
        name, equals, value = word.partition("=")
        if not equals:
            raise SqlrsError("these startup options are not supported", sqlstate="0A000")
        found[name.replace("-", "_")] = value
    return found
