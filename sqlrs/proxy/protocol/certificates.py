"""Certificates, by the package cryptography: what SCRAM binds to, and one made here."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAYS = 3650


def end_point(pem: bytes) -> bytes | None:
    """The hash of a certificate (``tls-server-end-point``)."""
    certificate = x509.load_pem_x509_certificate(pem)
    algorithm = certificate.signature_hash_algorithm
    if algorithm is None:
        # RFC 5929 defines no binding for signatures without a hash of their own.
        return None
    if algorithm.name in ("md5", "sha1"):
        algorithm = hashes.SHA256()
    return certificate.fingerprint(algorithm)


def create(certificate: Path, key: Path) -> None:
    """Write a self-signed certificate and its key, which only this user may read."""
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
