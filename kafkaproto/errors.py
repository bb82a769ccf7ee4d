"""What can go wrong between bytes and objects.

`DecodeError` and `EncodeError` are the only exceptions that leave the codec for bad bytes and bad values. Kafka's
error *codes*, the numbers in responses, are `kafkaproto.error_codes.ErrorCode`; this module must never know them.
"""

from __future__ import annotations

from construct import ConstructError

LONGEST_SHOWN = 200


def shown(value: object) -> str:
    """A value as error texts show it: its beginning, or its type if Python has no text for it (an int of 5000 digits)."""
    if isinstance(value, str | bytes | bytearray):
        value = value[:LONGEST_SHOWN]
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - anybody's value, anybody's text
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}..."


class ProtocolError(ConstructError):  # type: ignore[misc]  # construct ships no annotations
    """Base of everything that the codec raises; a ConstructError, so that code written for construct catches it."""


class DecodeError(ProtocolError):
    """Bytes that are no message.

    ``path`` names the field (``FetchRequest.topics[0].partitions``), ``offset`` counts bytes from the start of the
    buffer that was given, ``reason`` says what is wrong there.
    """

    def __init__(self, path: str, offset: int, reason: str) -> None:
        super().__init__(f"{path} at byte {offset}: {reason}")
        self.path = path
        self.offset = offset
        self.reason = reason


class EncodeError(ProtocolError):
    """A value that has no bytes.

    ``path`` names the field (``FetchRequest.topics[0].topic``), ``reason`` says what is wrong with its value.
    ``versions`` are those of the message that was to be written, ``"5-6"`` where two share a layout; empty where there
    is no message.
    """

    def __init__(self, path: str, reason: str, versions: str = "") -> None:
        super().__init__(f"{path}{f' in v{versions}' if versions else ''}: {reason}")
        self.path = path
        self.reason = reason
        self.versions = versions


class UnsupportedVersion(ProtocolError):
    """An API key or a version of it that there is no message for.

    ``api_version`` is None when the key is unknown, ``api_key`` is None where a message was asked for by its class.
    """

    def __init__(self, api_key: int | None, api_version: int | None = None, known: str = "", name: str = "") -> None:
        who = name or f"API key {api_key}"
        what = f"{who} is unknown" if api_version is None else f"{who} has no v{api_version}"
        super().__init__(f"{what}{f', only {known}' if known else ''}")
        self.api_key = api_key
        self.api_version = api_version
