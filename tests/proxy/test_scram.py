from __future__ import annotations

import base64
import hashlib
import hmac
from pathlib import Path

import pytest

from sqlrs.proxy.protocol.scram import ScramFailure, ScramServer, Verifier, prepared
from sqlrs.proxy.users import Users, add_user

NAMES = ("alice", "nobody", "mallory")

# The example of RFC 7677, section 3.
_SALT = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = b"%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)


def standard_verifier(password: str = "pencil") -> Verifier:
    return Verifier._derive(prepared(password), _SALT, 4096)


def _server(
    known: bool = True, end_point: bytes | None = None, password: str = "pencil"
) -> ScramServer:
    return ScramServer(standard_verifier(password), known, end_point, nonce=SERVER_NONCE)


def _client_final(
    server: ScramServer, header: bytes, mechanism: str, binding: bytes, tail: bytes = b""
) -> bytes:
    """An independent client, for channel binding: the proof for password pencil."""
    bare = b"n=,r=clientnonce"
    first = server.first(mechanism, header + bare)
    nonce = first.split(b",")[0][2:] + tail
    without = b"c=" + base64.b64encode(header + binding) + b",r=" + nonce
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", _SALT, 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    message = b",".join((bare, first, without))
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return without + b",p=" + base64.b64encode(proof)


def test_the_example_of_the_standard() -> None:
    server = _server()
    assert server.first("SCRAM-SHA-256", FIRST) == (
        b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    )
    assert server.final(FINAL) == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_a_wrong_password_fails() -> None:
    server = _server(password="pencils")
    server.first("SCRAM-SHA-256", FIRST)
    with pytest.raises(ScramFailure):
        server.final(FINAL)


def test_an_unknown_user_fails_even_with_the_right_proof() -> None:
    server = _server(known=False)
    server.first("SCRAM-SHA-256", FIRST)
    with pytest.raises(ScramFailure):
        server.final(FINAL)


def test_channel_binding_accepts_the_right_certificate_only() -> None:
    header, name = b"p=tls-server-end-point,,", "SCRAM-SHA-256-PLUS"
    good = _server(end_point=b"hash of the certificate")
    assert good.final(_client_final(good, header, name, b"hash of the certificate"))
    bad = _server(end_point=b"hash of the certificate")
    with pytest.raises(ScramFailure):
        bad.final(_client_final(bad, header, name, b"hash of another certificate"))


def test_a_right_proof_for_another_nonce_fails() -> None:
    server = _server()
    assert server.final(_client_final(server, b"n,,", "SCRAM-SHA-256", b""))
    server = _server()
    with pytest.raises(ScramFailure):
        server.final(_client_final(server, b"n,,", "SCRAM-SHA-256", b"", tail=b"more"))


@pytest.mark.parametrize(
    ("mechanism", "message", "end_point"),
    [
        ("SCRAM-SHA-256-PLUS", b"p=tls-server-end-point,,n=,r=nonce678", None),
        ("SCRAM-SHA-256-PLUS", b"n,,n=,r=nonce678", b"x"),
        ("SCRAM-SHA-256-PLUS", b"p=tls-unique,,n=,r=nonce678", b"x"),
        ("SCRAM-SHA-256", b"p=tls-server-end-point,,n=,r=nonce678", b"x"),
        ("SCRAM-SHA-256", b"y,,n=,r=nonce678", b"x"),
        ("SCRAM-SHA-1", b"n,,n=,r=nonce678", None),
        ("SCRAM-SHA-256", b"n,a=other,n=,r=nonce678", None),
        ("SCRAM-SHA-256", b"n,,n=,r=", None),
        ("SCRAM-SHA-256", b"n,,m=x,n=,r=nonce678", None),
        ("SCRAM-SHA-256", b"n,,n=,r=nonce678,x=1", None),
    ],
)
def test_first_messages_that_are_refused(
    mechanism: str, message: bytes, end_point: bytes | None
) -> None:
    with pytest.raises(ScramFailure):
        _server(end_point=end_point).first(mechanism, message)


def test_y_is_fine_where_no_binding_is_offered() -> None:
    assert _server().first("SCRAM-SHA-256", b"y,,n=,r=nonce678")


@pytest.mark.parametrize(
    "change",
    [
        (b"c=biws", b"c=eSws"),
        (b"k0,p=", b"k1,p="),
        (b"p=dHzb", b"p=eHzb"),
        (b",p=", b",q="),
        (b"VQ=", b"VQ"),
        (b"c=biws", b"c=!!!"),
    ],
)
def test_every_part_of_the_final_message_counts(change: tuple[bytes, bytes]) -> None:
    server = _server()
    server.first("SCRAM-SHA-256", FIRST)
    altered = FINAL.replace(*change)
    assert altered != FINAL
    with pytest.raises(ScramFailure):
        server.final(altered)


def test_verifiers_are_stored_as_text_and_never_hold_the_password() -> None:
    verifier = Verifier.of_password("pencil and paper")
    assert Verifier.parse(verifier.text()) == verifier
    assert "pencil" not in verifier.text() + repr(verifier)
    assert Verifier.of_password("pencil and paper").salt != verifier.salt


@pytest.mark.parametrize(
    "text",
    ["", "pencil", "SCRAM-SHA-256$4096:c2FsdA==$c2hvcnQ=:c2hvcnQ=", "SCRAM-SHA-1$4096:a$b:c"],
)
def test_other_texts_are_no_verifiers(text: str) -> None:
    with pytest.raises(ValueError, match="verifier"):
        Verifier.parse(text)


def test_decoys_have_one_salt_per_name_and_no_password() -> None:
    one, again = Verifier.decoy(b"secret", "eve"), Verifier.decoy(b"secret", "eve")
    assert one.salt == again.salt != Verifier.decoy(b"secret", "mallory").salt
    assert one.stored_key != again.stored_key
    assert len(one.salt) == len(Verifier.of_password("12345678").salt)
    assert one.iterations == Verifier.of_password("12345678").iterations


@pytest.mark.parametrize(
    ("password", "expected"),
    [
        ("I\u00adX", b"IX"),
        ("user", b"user"),
        ("\u00aa", b"a"),
        ("\u2168", b"IX"),
        ("a\u00a0b", b"a b"),
        ("\u0007", b"\x07"),
        ("\u0627\u0031", "\u0627\u0031".encode()),
    ],
)
def test_passwords_are_prepared_as_the_standard_says(password: str, expected: bytes) -> None:
    """The examples of RFC 4013; where it prohibits, PostgreSQL takes the password as it is."""
    assert prepared(password) == expected


def test_a_restart_does_not_tell_who_is_unknown(tmp_path: Path) -> None:
    file = tmp_path / "users.toml"
    add_user(file, "alice", "a long password")

    def salts() -> list[bytes]:
        users = Users(file)
        first = b"n,,n=,r=abcdefgh"
        answers = [users.exchange(name, None).first("SCRAM-SHA-256", first) for name in NAMES]
        return [answer.split(b",")[1] for answer in answers]

    before = salts()
    assert salts() == before
    assert len(set(before)) == len(NAMES)
