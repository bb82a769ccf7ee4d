"""SCRAM: a user and a broker prove to each other that they know a password, without sending it (RFC 5802, RFC 7677).

Text in, text out: one `Scram` for each login. Names and passwords are ASCII: what SASLprep (RFC 4013) would make of other letters is not
known here, and Kafka does not ask for it. Must never know sockets, nor how tokens travel.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 1_000_000
"""Below, a stolen password file is too easily tried out (RFC 7677; Kafka refuses it too); above, somebody wants to keep us busy."""
_NONCE_BYTES = 24
_CHALLENGE = re.compile(r"r=([!-+\--~]+),s=([A-Za-z0-9+/]+=*),i=([1-9][0-9]{0,8})(?:,[A-Za-z]=.*)?", re.DOTALL)
"""RFC 5802, section 7: in this order, extensions behind. What must be understood (m=) stands in front, and is not."""
_SHOWN_CHARS = 80
_NO_CHANNEL_BINDING = "n,,"


class ScramError(ValueError):
    """What the other side said cannot be, or proves nothing: the text says what."""


def is_prepared(text: str) -> bool:
    """Whether a name or a password is what SASLprep would make of it."""
    return bool(text) and text.isascii() and text.isprintable()


class Scram:
    """`first()`, `final(answer)` and `check(answer)`, in this order. mechanism: one of `HASHES`. nonce: for tests."""

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode("ascii")
        self._nonce = nonce or b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """Who is there."""
        return f"{_NO_CHANNEL_BINDING}{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """The proof, to the broker's challenge. Raises ScramError."""
        challenge = _text(server_first)
        told = _CHALLENGE.fullmatch(challenge)
        salt = _base64(told[2]) if told else b""
        if told is None or not salt:
            raise ScramError(f"{challenge[:_SHOWN_CHARS]!r} is no challenge of SCRAM")
        nonce, iterations = told[1], int(told[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError("its challenge is not an answer to this login")
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ScramError(
                f"its password is stored with {iterations} iterations, {LEAST_ITERATIONS} to {MOST_ITERATIONS} are taken: "
                "set the user's credentials anew with a number in between"
            )
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        without_proof = f"c={b64encode(_NO_CHANNEL_BINDING.encode()).decode()},r={nonce}"
        signed = f"{self._bare},{challenge},{without_proof}".encode()
        client_signature = self._hmac(hashlib.new(self._hash, client_key).digest(), signed)
        proof = bytes(a ^ b for a, b in zip(client_key, client_signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={b64encode(proof).decode()}".encode()

    def check(self, server_final: bytes) -> None:
        """Whether the broker knows the password too. Raises ScramError."""
        told = _attributes(_text(server_final))
        if "e" in told:
            raise ScramError(f"it says {told['e']}")
        if not self._signature or not hmac.compare_digest(_base64(told.get("v", "")), self._signature):
            raise ScramError("it does not prove that it knows the password: it may be somebody else's")

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _text(data: bytes) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise ScramError("what it says is no text") from None


def _attributes(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""
