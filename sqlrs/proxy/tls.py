"""TLS: the server's certificate, made here if none is given, and what SCRAM binds to."""

from __future__ import annotations

import os
import socket
import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sqlrs.errors import UsageError

_DAYS = 3650


@dataclass(frozen=True)
class Tls:
    """A server context and the hash of its certificate (``tls-server-end-point``)."""

    context: ssl.SSLContext
    end_point: bytes | None


def load(certificate: Path, key: Path) -> Tls:
    """TLS 1.2 or newer with this certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
        parsed = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError, ssl.SSLError):
        raise UsageError(f"{certificate} and {key} are not a certificate and its key") from None
    return Tls(context, _end_point(parsed))


def self_signed(directory: Path) -> Tls:
    """A certificate for this machine, made once and kept in the directory."""
    certificate, key = directory / "server.crt", directory / "server.key"
    if not (certificate.exists() and key.exists()):
        _create(certificate, key)
    return load(certificate, key)


def _end_point(certificate: x509.Certificate) -> bytes | None:
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None:
        # RFC 5929 defines no binding for signatures without a hash of their own.
        return None
    if algorithm.name in ("md5", "sha1"):
        algorithm = hashes.SHA256()
    return certificate.fingerprint(algorithm)


def _create(certificate: Path, key: Path) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    host = socket.gethostname()
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64] or "sqlrs")])
    now = datetime.now(UTC)
    names = [x509.DNSName(entry) for entry in dict.fromkeys(("localhost", host)) if entry]
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(private, hashes.SHA256())
    )
    secret = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    descriptor = os.open(key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(secret)
    certificate.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
