"""TLS: the server's certificate, made here if none is given, and what SCRAM binds to."""

from __future__ import annotations

import ssl
from pathlib import Path
from types import ModuleType

from sqlrs.errors import UsageError
from sqlrs.records import dataclass


@dataclass(frozen=True)
class Tls:
    """A server context and the hash of its certificate (``tls-server-end-point``)."""

    context: ssl.SSLContext
    end_point: bytes | None
    certificate: Path
    key: Path


def load(certificate: Path, key: Path) -> Tls:
    """TLS 1.2 or newer with this certificate."""
    certificates = _certificates()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        end_point = certificates.end_point(certificate.read_bytes())
    except (OSError, ValueError, ssl.SSLError):
        raise UsageError(f"{certificate} and {key} are not a certificate and its key") from None
    return Tls(context, end_point, certificate, key)


def self_signed(directory: Path) -> Tls:
    """A certificate for this machine, made once and kept in the directory."""
    certificate, key = directory / "server.crt", directory / "server.key"
    if not (certificate.exists() and key.exists()):
        _certificates().create(certificate, key)
    return load(certificate, key)


def _certificates() -> ModuleType:
    """The module that needs the package; without it TLS is an error that says what to install."""
    try:
        from sqlrs.proxy.protocol import certificates
    except ModuleNotFoundError:
        raise UsageError(
            "TLS needs the package cryptography, which is not installed",
            hint="pip install 'sqlrs[proxy]'",
        ) from None
    return certificates
