"""Responses as plain values that are equal on each subject: names and ids of one subject are replaced by what they stand for."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

from tests.differential.texts import id_in_texts, shown

LEFT_OUT = {"throttle_time_ms", "unknown_tagged_fields"}
"""Fields that are not compared: time, and tagged fields, of which none are known."""
ID_BYTES = 16
LONG = 100


class Shown:
    """The names and ids of one subject, and what is shown in their place."""

    def __init__(self) -> None:
        self._instead: dict[str | bytes, str] = {}
        self._in_texts: dict[str, str] = {}

    def add(self, value: str | bytes, instead: str) -> None:
        """Show `instead` for a value from now on, unless something else is shown for it already."""
        self._instead.setdefault(value, instead)
        if isinstance(value, str):
            self._in_texts.setdefault(value, instead)
        elif len(value) == ID_BYTES:
            self._in_texts.setdefault(id_in_texts(value), instead)

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
        if len(value) > LONG and len(set(value)) == 1:
            return f"{value[0]!r} and {len(value) - 1} more"
        return shown(value, self._in_texts)
