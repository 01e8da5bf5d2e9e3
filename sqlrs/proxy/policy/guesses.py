"""How many wrong passwords are looked at: of one user from one address, of an address, in all."""

from __future__ import annotations

import hashlib
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable

from sqlrs.proxy.policy.gates import RateGate, TooMany

_ALL = "all"
_MAX_KNOWN = 10_000


class GuessGate:
    """Counts failures, not attempts: whoever knows the password is never slowed by an own success.

    One user's failures close the door for that user from that address alone. An address has many
    times as many, since a whole office may stand behind it. When the failures in all are used up,
    only those pairs of address and user are let in that were right before. A user that does not
    exist is counted like one that does.
    """

    def __init__(
        self,
        each_per_minute: int,
        address_per_minute: int,
        all_per_minute: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pairs = RateGate(each_per_minute / 60, each_per_minute, clock)
        self._addresses = RateGate(address_per_minute / 60, address_per_minute, clock)
        self._all = RateGate(all_per_minute / 60, all_per_minute, clock)
        self._known: OrderedDict[str, None] = OrderedDict()

    def check(self, peer: str, user: str) -> None:
        """Raise TooMany if this user's password is not looked at now."""
        pair = _pair(peer, user)
        known = self.known(peer, user)
        closed = self._pairs.level(pair) < 1
        closed |= not known and self._addresses.level(network(peer)) < 1
        closed |= not known and self._all.level(_ALL) < 1
        if closed:
            raise TooMany("too many failed authentications", sqlstate="28000")

    def known(self, peer: str, user: str) -> bool:
        """Whether this user's password was right from this address before."""
        return _pair(peer, user) in self._known

    def failed(self, peer: str, user: str) -> None:
        """A password was wrong."""
        self._pairs.take(_pair(peer, user))
        self._addresses.take(network(peer))
        self._all.take(_ALL)

    def succeeded(self, peer: str, user: str) -> None:
        """A password was right."""
        self._known[pair := _pair(peer, user)] = None
        self._known.move_to_end(pair)
        if len(self._known) > _MAX_KNOWN:
            self._known.popitem(last=False)


def network(peer: str) -> str:
    """What counts as one address: of IPv6 the first half, because who has one has all of it."""
    try:
        address = ipaddress.ip_address(peer.partition("%")[0])
    except ValueError:
        return peer
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.IPv6Network((address, 64), strict=False))
    return str(address)


def _pair(peer: str, user: str) -> str:
    # A digest: whoever sends long names must not fill the memory with them.
    return hashlib.blake2b(f"{network(peer)}\0{user}".encode(), digest_size=16).hexdigest()
