"""SCRAM-SHA-256 and SCRAM-SHA-256-PLUS: stored verifiers and the server's side, without I/O."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
import stringprep
import unicodedata
from collections.abc import Callable

from sqlrs.records import dataclass

ITERATIONS = 15_000
_VERIFIER = re.compile(r"SCRAM-SHA-256\$(\d{4,7}):([\w+/=]+)\$([\w+/=]+):([\w+/=]+)", re.ASCII)
_FIRST = re.compile(rb"(n|y|p=([A-Za-z0-9.-]+)),,(n=[^,]*,r=([!-+\--~]{8,128}))")
_FINAL = re.compile(rb"(c=([A-Za-z0-9+/=]+),r=([!-+\--~]+)),p=([A-Za-z0-9+/=]+)")
_CHANNEL_BINDING = b"tls-server-end-point"


class ScramFailure(Exception):
    """The exchange is malformed or the proof is wrong. Deliberately without a reason."""


@dataclass(frozen=True, repr=False)
class Verifier:
    """What is stored in place of a password: PostgreSQL's format."""

    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes

    @classmethod
    def of_password(cls, password: str, *, iterations: int = ITERATIONS) -> Verifier:
        """A new verifier with a random salt."""
        return cls._derive(prepared(password), secrets.token_bytes(16), iterations)

    @classmethod
    def decoy(cls, secret: bytes, user: str) -> Verifier:
        """A verifier that no password fits, with a lasting salt: unknown users look known."""
        salt = hmac.digest(secret, b"salt" + user.encode("utf-8", "replace"), "sha256")[:16]
        return cls(ITERATIONS, salt, secrets.token_bytes(32), secrets.token_bytes(32))

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """A verifier from its stored text."""
        match = _VERIFIER.fullmatch(text)
        if match is None:
            raise ValueError("not a SCRAM-SHA-256 verifier")
        salt, stored, server = (
            base64.b64decode(part, validate=True) for part in match.groups()[1:]
        )
        if len(stored) != 32 or len(server) != 32:
            raise ValueError("not a SCRAM-SHA-256 verifier")
        return cls(int(match[1]), salt, stored, server)

    def text(self) -> str:
        """The text to store."""
        salt, stored, server = (
            base64.b64encode(part).decode("ascii")
            for part in (self.salt, self.stored_key, self.server_key)
        )
        return f"SCRAM-SHA-256${self.iterations}:{salt}${stored}:{server}"

    def fits(self, password: str) -> bool:
        """Whether this is the password; as long whatever it is."""
        derived = self._derive(prepared(password), self.salt, self.iterations)
        same = hmac.compare_digest(derived.stored_key, self.stored_key)
        return same & hmac.compare_digest(derived.server_key, self.server_key)

    @classmethod
    def _derive(cls, password: bytes, salt: bytes, iterations: int) -> Verifier:
        salted = hashlib.pbkdf2_hmac("sha256", password, salt, iterations)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        server_key = hmac.digest(salted, b"Server Key", "sha256")
        return cls(iterations, salt, hashlib.sha256(client_key).digest(), server_key)


def prepared(password: str) -> bytes:
    """The password as SASLprep (RFC 4013) has it, or as it is where that is not defined."""
    mapped = "".join(
        " " if stringprep.in_table_c12(c) else c for c in password if not stringprep.in_table_b1(c)
    )
    normal = unicodedata.normalize("NFKC", mapped)
    prohibited = (
        stringprep.in_table_c12,
        stringprep.in_table_c21_c22,
        stringprep.in_table_c3,
        stringprep.in_table_c4,
        stringprep.in_table_c5,
        stringprep.in_table_c6,
        stringprep.in_table_c7,
        stringprep.in_table_c8,
        stringprep.in_table_c9,
        stringprep.in_table_a1,
    )
    refused = any(test(c) for c in normal for test in prohibited)
    rightward = [c for c in normal if stringprep.in_table_d1(c)]
    mixed = bool(rightward) and (
        any(stringprep.in_table_d2(c) for c in normal)
        or normal[0] not in rightward
        or normal[-1] not in rightward
    )
    return (password if refused or mixed or not normal else normal).encode("utf-8")


class ScramServer:
    """One authentication exchange: first message, then final message."""

    def __init__(
        self,
        verifier: Verifier,
        known: bool,
        end_point: bytes | None,
        nonce: bytes | None = None,
        *,
        admit: Callable[[], None] = lambda: None,
    ) -> None:
        self._admit = admit
        self._verifier = verifier
        self._known = known
        self._end_point = end_point
        self._own_nonce = nonce or base64.b64encode(secrets.token_bytes(18))
        self._header = b""
        self._bare = b""
        self._first = b""
        self._nonce = b""
        self._bound = False

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """What to offer: channel binding only where there is a channel to bind to."""
        plain = ("SCRAM-SHA-256",)
        return plain if self._end_point is None else ("SCRAM-SHA-256-PLUS", *plain)

    def first(self, mechanism: str, message: bytes) -> bytes:
        """Answer the client's first message with the salt and the nonce."""
        match = _FIRST.fullmatch(message)
        if mechanism not in self.mechanisms or match is None:
            raise ScramFailure
        self._bound = mechanism.endswith("-PLUS")
        flag, binding_name = match[1], match[2]
        if self._bound != flag.startswith(b"p=") or (
            self._bound and binding_name != _CHANNEL_BINDING
        ):
            raise ScramFailure
        if flag == b"y" and self._end_point is not None:
            # The client could bind and was told that the server cannot: someone is in between.
            raise ScramFailure
        self._header, self._bare = flag + b",,", match[3]
        self._nonce = match[4] + self._own_nonce
        salt = base64.b64encode(self._verifier.salt)
        self._first = b"r=%s,s=%s,i=%d" % (self._nonce, salt, self._verifier.iterations)
        return self._first

    def final(self, message: bytes) -> bytes:
        """Check the client's proof and return the server's own."""
        match = _FINAL.fullmatch(message)
        if match is None:
            raise ScramFailure
        # Here too and not only at the start: many exchanges can be under way at once.
        self._admit()
        without_proof, nonce = match[1], match[3]
        try:
            binding = base64.b64decode(match[2], validate=True)
            proof = base64.b64decode(match[4], validate=True)
        except binascii.Error:
            raise ScramFailure from None
        if len(proof) != 32:
            raise ScramFailure
        expected = self._header + ((self._end_point or b"") if self._bound else b"")
        signed = b",".join((self._bare, self._first, without_proof))
        signature = hmac.digest(self._verifier.stored_key, signed, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
        # Every test is made, whatever the others say, so that failures take the same time.
        passed = hmac.compare_digest(hashlib.sha256(client_key).digest(), self._verifier.stored_key)
        passed &= hmac.compare_digest(binding, expected)
        passed &= hmac.compare_digest(nonce, self._nonce)
        passed &= self._known
        answer = hmac.digest(self._verifier.server_key, signed, "sha256")
        if not passed:
            raise ScramFailure
        return b"v=" + base64.b64encode(answer)
