"""Records as people see them, whatever magic they lie in.

This module must never know how they lie.
"""

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
    """A record that is yet to get an offset. ``timestamp`` in ms."""

    value: bytes | None
    key: bytes | None = None
    timestamp: int = 0
    headers: Sequence[Header] = ()
