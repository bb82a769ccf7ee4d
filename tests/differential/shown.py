"""Responses as plain values that are equal on each subject: names and ids of one subject are replaced by what they stand for."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass
from typing import Any

LEFT_OUT = {"throttle_time_ms", "error_message", "unknown_tagged_fields"}
"""Fields that are not compared: time, texts, and tagged fields, of which none are known."""
GENERATED_ID = re.compile(r".*-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""A member id that a broker generated."""
LONG = 100


class Shown:
    """The names and ids of one subject, and what is shown in their place."""

    def __init__(self) -> None:
        self._instead: dict[str | bytes, str] = {}

    def add(self, value: str | bytes, instead: str) -> None:
        """Show `instead` for a value from now on, unless something else is shown for it already."""
        self._instead.setdefault(value, instead)

    def plain(self, value: Any) -> Any:
        """Return a message as dicts, lists and values."""
        if is_dataclass(value):
            return {f.name: self.plain(getattr(value, f.name)) for f in fields(value) if f.name not in LEFT_OUT}
        if isinstance(value, list | tuple):
            return type(value)(self.plain(item) for item in value)
        if isinstance(value, bytes | bytearray | memoryview):
            return self._bytes(bytes(value))
        return self._text(value) if isinstance(value, str) else value

    def _bytes(self, value: bytes) -> Any:
        """Return what is shown for bytes. Those that contain a name are shown by their size, because brokers choose the partitions by member ids."""
        if value in self._instead:
            return self._instead[value]
        for name, instead in self._instead.items():
            if isinstance(name, str) and name.encode() in value:
                return f"{len(value) - len(name)} bytes beside {instead}"
        return value

    def _text(self, value: str) -> str:
        if value in self._instead:
            return self._instead[value]
        if GENERATED_ID.fullmatch(value):
            return "an id"
        return value if len(value) <= LONG else f"{value[0]!r} and {len(value) - 1} more"
