"""Reading the file of a trace, of this version or an earlier one. A file may end anywhere: what is whole is read.

Must never know where entries come from, nor what they are read for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from struct import Struct
from typing import Any, BinaryIO

from kafkaproto.trace.format import (
    ANSWERED,
    BEGINS,
    CLOSES,
    EVENT,
    EXCHANGE,
    EXCHANGE_FIELDS,
    HELD,
    LENGTH_AND_KIND,
    MAGIC,
    POSITIONS_FIELDS,
    STATE,
    STATE_FIELDS,
    SUFFIX,
    UNKNOWN_WAIT_NS,
    VERSION,
    VERSION_AND_LENGTH,
    Entry,
    Event,
    Exchange,
    Positions,
    State,
    TraceError,
)

LARGEST_ENTRY_BYTES = 1 << 30

_EXCHANGE_2 = Struct(">QiQqqqqqiBIIIIHHq")
"""The fields of an exchange in version 2: how long it was parked is missing, and the counts are narrower."""


class Trace:
    """One file: `meta`, then `entries()` once. `torn` tells afterwards what was left at its end.

    Raises TraceError for what is no trace, and for one of a version that this program does not read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = ""
        self._at = 0
        self._read: dict[int, Callable[[bytes], Entry]] = {}
        with path.open("rb") as file:
            self.meta = self._read_header(file)

    @property
    def run(self) -> str:
        """Which recording it is of."""
        return str(self.meta.get("run", self.path.stem))

    @property
    def read_bytes(self) -> int:
        """How far `entries` is."""
        return self._at

    def entries(self, begins: int = 0, ends: int = sys.maxsize) -> Iterator[Entry]:
        """Every whole entry. An end in the middle of one is noted in `torn`; what cannot be an entry raises TraceError.

        begins: a byte behind a whole entry, from which to go on. ends: a byte from which on the file is as if it were not there.
        """
        self._at = max(self._at, begins)
        with self.path.open("rb") as file:
            file.seek(self._at)
            while True:
                head = file.read(min(LENGTH_AND_KIND.size, ends - self._at))
                if not head:
                    return
                if len(head) < LENGTH_AND_KIND.size:
                    self.torn = self._torn(len(head))
                    return
                size, kind = LENGTH_AND_KIND.unpack(head)
                read = self._read.get(kind)
                if read is None or size > LARGEST_ENTRY_BYTES:
                    raise TraceError(f"{self.path}: no entry begins at byte {self._at}")
                body = file.read(min(size, ends - self._at - len(head)))
                if len(body) < size:
                    self.torn = self._torn(len(head) + len(body))
                    return
                try:
                    entry = read(body)
                except (ValueError, KeyError, RecursionError) as error:
                    raise TraceError(f"{self.path}: the entry at byte {self._at} cannot be read: {error}") from None
                self._at += len(head) + size
                yield entry

    def _torn(self, left: int) -> str:
        return f"{self.path}: {left} bytes at byte {self._at} are no whole entry, and are left out"

    def _read_header(self, file: BinaryIO) -> dict[str, Any]:
        start = file.read(len(MAGIC) + VERSION_AND_LENGTH.size)
        if not start.startswith(MAGIC) or len(start) < len(MAGIC) + VERSION_AND_LENGTH.size:
            raise TraceError(f"{self.path} is no trace: it does not begin with {MAGIC!r}")
        version, length = VERSION_AND_LENGTH.unpack_from(start, len(MAGIC))
        if version not in READERS:
            readable = " and ".join(map(str, READERS))
            raise TraceError(f"{self.path} is a trace of version {version}, and this program reads versions {readable}")
        self._read = READERS[version]
        told = file.read(length)
        try:
            if len(told) < length:
                raise ValueError(f"{length - len(told)} bytes of it are not there")
            meta = json.loads(told)
            if not isinstance(meta, dict):
                raise ValueError("not an object")
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: its header cannot be read: {error}") from None
        self._at = len(start) + length
        return meta


def files_of(path: Path) -> list[Path]:
    """The files of a trace: of a folder in order, or the one file. Raises TraceError where there is none."""
    if path.is_file():
        return [path]
    found = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    if not found:
        raise TraceError(f"{path} holds no trace: no file *{SUFFIX} is there")
    return found


@cache
def _lengths(count: int) -> Struct:
    return Struct(f">{count}I")


def _exchange(body: bytes, layout: Struct = EXCHANGE_FIELDS, untold: tuple[int, ...] = ()) -> Exchange:
    """untold: the last fields, of a version that has them not."""
    if len(body) < layout.size:
        raise ValueError(f"{len(body)} bytes are too few")
    fields: tuple[int, ...] = (*layout.unpack_from(body), *untold)
    (
        *before,
        flags,
        in_bytes,
        out_bytes,
        request_left,
        response_left,
        request_fields,
        response_fields,
        handled_ms,
        wait_ns,
    ) = fields
    count = request_fields + response_fields
    at = layout.size + 4 * count
    if at + request_left + response_left != len(body):
        raise ValueError("its lengths do not add up")
    lengths: Sequence[int] = _lengths(count).unpack_from(body, layout.size)
    return Exchange._make(
        (
            *before,
            bool(flags & ANSWERED),
            bool(flags & HELD),
            bool(flags & CLOSES),
            in_bytes,
            out_bytes,
            body[at : at + request_left],
            body[at + request_left :],
            tuple(lengths[:request_fields]),
            tuple(lengths[request_fields:]),
            handled_ms,
            wait_ns,
        )
    )


def _state(body: bytes) -> State:
    if len(body) < STATE_FIELDS.size:
        raise ValueError(f"{len(body)} bytes are too few")
    seq, broker, clock_ms, at_ns, count = STATE_FIELDS.unpack_from(body)
    logs, at = [], STATE_FIELDS.size
    for _ in range(count):
        if at + POSITIONS_FIELDS.size > len(body):
            raise ValueError("its lengths do not add up")
        name_bytes, partition, flags, *offsets = POSITIONS_FIELDS.unpack_from(body, at)
        at += POSITIONS_FIELDS.size + name_bytes
        logs.append(Positions(body[at - name_bytes : at].decode(), partition, bool(flags & BEGINS), *offsets))
    if at != len(body):
        raise ValueError("its lengths do not add up")
    return State(seq, broker, clock_ms, at_ns, tuple(logs))


def _event(body: bytes) -> Event:
    facts = json.loads(body)
    if not isinstance(facts, dict) or not isinstance(facts.get("kind"), str):
        raise ValueError("it has no kind")
    return Event(facts.pop("kind"), facts)


READERS: dict[int, dict[int, Callable[[bytes], Entry]]] = {
    2: {EXCHANGE: partial(_exchange, layout=_EXCHANGE_2, untold=(UNKNOWN_WAIT_NS,)), EVENT: _event},
    VERSION: {EXCHANGE: _exchange, EVENT: _event, STATE: _state},
}
"""Of each version that can be read how each kind of its entries is. Version 2 has no states, and does not tell how long an exchange was
parked."""
