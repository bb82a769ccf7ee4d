"""SCRAM: a user and a broker prove to each other that they know a password, without sending it (RFC 5802, RFC 7677).

There is one `Scram` object for each login; it takes and returns messages as bytes. Names and passwords must be ASCII, because SASLprep (RFC 4013) is
not implemented here and Kafka does not apply it. This module does not depend on sockets or on how the messages are sent.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from base64 import b64decode, b64encode

HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
LEAST_ITERATIONS, MOST_ITERATIONS = 4096, 1_000_000
"""The lowest and the highest accepted iteration count, the number of times that the client must hash its password.

With fewer iterations than the lowest, a stolen password file is too easy to crack (RFC 7677); Kafka also rejects them. With more than the highest, a
malicious peer could use much CPU time of the client.
"""
_NONCE_BYTES = 24
_CHALLENGE = re.compile(r"r=([!-+\--~]+),s=([A-Za-z0-9+/]+=*),i=([1-9][0-9]{0,8})(?:,[A-Za-z]=.*)?", re.DOTALL)
"""Matches the broker's first message: the fields of RFC 5802, section 7, in this order, with extensions after them.

A mandatory extension (m=) would come first, and does not match.
"""
_SHOWN_CHARS = 80
_NO_CHANNEL_BINDING = "n,,"


class ScramError(ValueError):
    """Raised if the broker's message is invalid, or does not prove that the broker knows the password."""


def is_prepared(text: str) -> bool:
    """Return whether SASLprep (RFC 4013) would leave a name or a password unchanged."""
    return bool(text) and text.isascii() and text.isprintable()


class Scram:
    """One login: call `first`, `final` and `check` in this order. `final` and `check` take the broker's response to the message sent before.

    mechanism: "SCRAM-SHA-256" or "SCRAM-SHA-512". nonce: the client's nonce, set only by tests; None for a random one.
    """

    def __init__(self, mechanism: str, user: str, password: str, nonce: str | None = None) -> None:
        self._hash = HASHES[mechanism]
        self._password = password.encode("ascii")
        self._nonce = nonce or b64encode(secrets.token_bytes(_NONCE_BYTES)).decode()
        name = user.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """Return the client's first message of the login, which contains the user's name."""
        return f"{_NO_CHANNEL_BINDING}{self._bare}".encode()

    def final(self, server_first: bytes) -> bytes:
        """Return the client's last message, the proof that it knows the password.

        server_first: the broker's challenge, which is the response to the message of `first`. Raises ScramError if the challenge is malformed,
        belongs to another login, or has an iteration count that is not accepted.
        """
        challenge = _text(server_first)
        fields = _CHALLENGE.fullmatch(challenge)
        salt = _base64(fields[2]) if fields else b""
        if fields is None or not salt:
            raise ScramError(
                f"the broker sent {challenge[:_SHOWN_CHARS]!r}, which is not a SCRAM challenge "
                "(check the address of the broker)"
            )
        nonce, iterations = fields[1], int(fields[3])
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError(
                "the nonce in the broker's SCRAM challenge does not belong to this login (check the address of the broker)"
            )
        if not LEAST_ITERATIONS <= iterations <= MOST_ITERATIONS:
            raise ScramError(
                f"the broker stores the password with {iterations} iterations, but {LEAST_ITERATIONS} to {MOST_ITERATIONS} are supported: "
                "set the user's credentials again with a supported number"
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
        """Verify the server signature in the broker's last message.

        server_final: the broker's last message, which is the response to the message that `final` returned. Raises ScramError if the broker rejects
        the login, or does not know the password.
        """
        attributes = _attributes(_text(server_final))
        if "e" in attributes:
            scram_error = attributes["e"]
            raise ScramError(f"the broker rejected the login: {scram_error} (check the user name and the password)")
        if not self._signature or not hmac.compare_digest(_base64(attributes.get("v", "")), self._signature):
            raise ScramError(
                "the broker did not prove that it knows the password, so it may be another server than the one "
                "you want to reach (check the address of the broker)"
            )

    def _hmac(self, key: bytes, data: bytes) -> bytes:
        return hmac.digest(key, data, self._hash)


def _text(data: bytes) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise ScramError(
            f"the broker's SCRAM message must be UTF-8 text (got {bytes(data[:_SHOWN_CHARS])!r}; "
            "check the address of the broker)"
        ) from None


def _attributes(text: str) -> dict[str, str]:
    return {part[:1]: part[2:] for part in text.split(",") if part[1:2] == "="}


def _base64(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        return b""
