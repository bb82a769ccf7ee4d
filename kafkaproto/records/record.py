"""Records as clients see them, independent of the magic in which they are encoded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

NO_TIMESTAMP = -1

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """A record as a consumer sees it. ``timestamp`` in ms, -1 for none. Header keys are text, header values may be None."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class NewRecord(NamedTuple):
    """A record to append, which has no offset yet."""

    value: bytes | None
    """The value; None for a tombstone."""
    key: bytes | None = None
    """The key; None if the record has none."""
    timestamp: int = 0
    """The timestamp in milliseconds since the epoch."""
    headers: Sequence[Header] = ()
    """The headers as (name, value) pairs, in the order in which the record stores them."""
