"""Exceptions of the codec.

`DecodeError` and `EncodeError` are the only exceptions that the codec raises for invalid bytes and invalid values. Kafka's
error *codes*, the numbers in responses, are in `kafkaproto.error_codes.ErrorCode`; this module does not depend on them.
"""

from __future__ import annotations

from construct import ConstructError

LONGEST_SHOWN = 200


def safe_repr(value: object) -> str:
    """Return a value as error texts show it: the beginning of its `repr`, or its type if `repr` fails (as for an int of 5000 digits)."""
    if isinstance(value, str | bytes | bytearray):
        value = value[:LONGEST_SHOWN]
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - `repr` of a user's class may raise anything
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


class ProtocolError(ConstructError):  # type: ignore[misc]  # construct ships no annotations
    """Base of all exceptions of the codec. Derived from the construct library's `ConstructError`, so that handlers of that error catch it."""


class DecodeError(ProtocolError):
    """Raised for bytes that are not a valid message.

    ``path`` names the field (``FetchRequest.topics[0].partitions``), ``offset`` counts bytes from the start of the
    buffer passed to the decoder, ``reason`` says what is wrong at this offset.
    """

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path} at byte {offset}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


class EncodeError(ProtocolError):
    """Raised for a value that cannot be encoded.

    ``path`` names the field (``FetchRequest.topics[0].topic``), ``reason`` says what is wrong with its value. ``versions`` are the versions that
    share the layout of the message, for example ``"5-6"``; empty outside a message.
    """

    def __init__(self, path: str, reason: str, versions: str = "") -> None:
        super().__init__(f"{path}{f' in v{versions}' if versions else ''}: {reason}")
        self.path = path
        self.reason = reason
        self.versions = versions


class UnsupportedVersion(ProtocolError):
    """Raised for an API key, or a version of an API, that the codec has no message for.

    ``api_key`` and ``api_version`` are the key and the version that were looked up. The version is None if the key is unknown. The key is None if the
    message was looked up by its class.
    """

    def __init__(self, api_key: int | None, api_version: int | None = None, known: str = "", name: str = "") -> None:
        subject = name or f"API key {api_key}"
        problem = f"{subject} is unknown" if api_version is None else f"{subject} has no v{api_version}"
        super().__init__(f"{problem}{f', only {known}' if known else ''}")
        self.api_key = api_key
        self.api_version = api_version
