"""A write-ahead log: a file of records, each written completely before the change that it describes is made.

The file is never forced to the disk: records survive the death of the process, but not always a power failure.
A record is written as its length, its CRC-32C and its JSON. This module does not depend on the meaning of records.
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
"""The bytes with which the JSON of every record begins. The broker searches for these bytes to find complete records behind damaged bytes."""


class WriteAheadLog:
    """An open file of records. `records`: the records that the file had when it was opened.

    `cut_bytes`: the size of an incomplete record at the end of the file. Such a record is ignored, and `replace` removes it. Raises ValueError if
    complete records follow a damaged record: no interrupted write can cause this.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        data = path.read_bytes() if path.exists() else b""
        self.records, self.size_bytes = _read(data)
        if _is_fact_behind(data, self.size_bytes):
            raise ValueError(
                f"the metadata record at byte {self.size_bytes} of {path} is damaged, "
                "and complete records follow it, so the broker does not remove it; restore the file from a backup"
            )
        self.cut_bytes = len(data) - self.size_bytes
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def append(self, fact: MetadataRecord) -> None:
        """Append the record `fact` with one unbuffered write. If this method raises StorageError, the record is not in the file."""
        data = _framed(fact)
        try:
            written_bytes = os.pwrite(self._fd, data, self.size_bytes)
            if written_bytes != len(data):
                raise OSError(
                    f"only {written_bytes} of the {len(data)} bytes were written to {self.path}, "
                    "probably because its disk is full"
                )
        except OSError as error:
            with suppress(OSError):
                os.ftruncate(self._fd, self.size_bytes)
            raise StorageError(
                f"cannot append a record of {len(data)} bytes to the metadata log {self.path}: {error}; "
                "check that its disk has free space"
            ) from error
        self.size_bytes += len(data)

    def replace(self, facts: Iterable[MetadataRecord]) -> None:
        """Replace all records of the file by `facts`, atomically. If this method raises StorageError, the file still has the old records."""
        new_path, fd = self.path.with_name("facts.new"), -1
        try:
            with new_path.open("wb") as file:
                for fact in facts:
                    file.write(_framed(fact))
            # Opened before the rename, because after the rename an error would come too late: the old records are gone then.
            fd = os.open(new_path, os.O_RDWR | os.O_CLOEXEC)
            new_path.rename(self.path)
        except OSError as error:
            if fd >= 0:
                os.close(fd)
            with suppress(OSError):
                new_path.unlink()
            raise StorageError(
                f"cannot rewrite the metadata log {self.path}: {error}; check that its disk has free space and its folder is writable"
            ) from error
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
    """Return (records before the first damaged or incomplete record, byte position at which they end). data: the content of the file."""
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
    """Return the JSON of the record that begins at index `at` of the file's content `data`, None if it is damaged or incomplete."""
    length, crc = _HEAD.unpack_from(data, at)
    payload = memoryview(data)[at + _HEAD.size : at + _HEAD.size + length]
    return payload if len(payload) == length and checksum.crc32c(payload) == crc else None


def _is_fact_behind(data: bytes, at: int) -> bool:
    """Return whether a complete record (a fact) follows the damaged one, which begins at index `at` of the file's content `data`.

    If so, the damage does not come from an interrupted write: after an interrupted write, the process writes no further record.
    """
    payload_at = data.find(_BEGINNING, at + _HEAD.size + 1)
    while payload_at >= 0:
        if _payload(data, payload_at - _HEAD.size):
            return True
        payload_at = data.find(_BEGINNING, payload_at + 1)
    return False
