"""An append-only log of facts: length, CRC-32C and JSON of each, written whole before anybody hears of what it says.

Must never know what facts mean.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.records import checksum

MetadataRecord = dict[str, Any]
_HEAD = struct.Struct(">II")
_BEGINNING = b'{"'
"""Of the JSON of every fact."""


class WriteAheadLog:
    """`found` is what was there when it was opened; `cut_bytes` of a torn end, which is cut with the first write.

    Raises ValueError where a fact is damaged and others follow: no write that was cut short leaves that.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        data = path.read_bytes() if path.exists() else b""
        self.found, self.size_bytes = _read(data)
        if _is_fact_behind(data, self.size_bytes):
            raise ValueError(f"damaged at byte {self.size_bytes} of {len(data)}")
        self.cut_bytes = len(data) - self.size_bytes
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def append(self, fact: MetadataRecord) -> None:
        """One unbuffered write. Raises StorageError; then the fact is not there."""
        data = _framed(fact)
        try:
            written = os.pwrite(self._fd, data, self.size_bytes)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes were written")
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self.size_bytes)
            raise StorageError(f"cannot write a fact of {len(data)} bytes: {error}") from error
        self.size_bytes += len(data)

    def replace(self, facts: Iterable[MetadataRecord]) -> None:
        """Be these facts instead, all at once. Raises StorageError; then the old ones hold on."""
        new = self.path.with_name("facts.new")
        try:
            with new.open("wb") as file:
                for fact in facts:
                    file.write(_framed(fact))
            new.rename(self.path)
            fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            with suppress(OSError):
                new.unlink()
            raise StorageError(f"cannot write the facts anew: {error}") from error
        self.close()
        self._fd, self.size_bytes = fd, os.fstat(fd).st_size

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _framed(fact: MetadataRecord) -> bytes:
    data = json.dumps(fact, separators=(",", ":")).encode()
    return _HEAD.pack(len(data), checksum.crc32c(data)) + data


def _read(data: bytes) -> tuple[list[MetadataRecord], int]:
    """The facts up to the first that is not whole, and where they end."""
    facts: list[MetadataRecord] = []
    at = 0
    while at + _HEAD.size <= len(data):
        payload = _payload(data, at)
        if payload is None:
            break
        facts.append(json.loads(bytes(payload)))
        at += _HEAD.size + len(payload)
    return facts, at


def _payload(data: bytes, at: int) -> memoryview | None:
    """The JSON of the fact that begins at `at`, None if it is not whole."""
    length, crc = _HEAD.unpack_from(data, at)
    payload = memoryview(data)[at + _HEAD.size : at + _HEAD.size + length]
    return payload if len(payload) == length and checksum.crc32c(payload) == crc else None


def _is_fact_behind(data: bytes, at: int) -> bool:
    """Whether a whole fact begins anywhere behind `at`."""
    payload_at = data.find(_BEGINNING, at + _HEAD.size + 1)
    while payload_at >= 0:
        if _payload(data, payload_at - _HEAD.size):
            return True
        payload_at = data.find(_BEGINNING, payload_at + 1)
    return False
