"""Decoder of trace files, of the current and of earlier versions of the format.

A file may end inside an entry: the complete entries before it are decoded. This module imports neither the recorders nor the programs that evaluate
traces.
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
"""The fields of fixed size in the entry of an exchange (a request and its response) in a trace file of format version 2.

In contrast to `EXCHANGE_FIELDS`, it has no time in purgatory, and the numbers of records fields in request and response are 16-bit integers.
"""


class Trace:
    """A trace file: its format's `version`, its header `meta`, and `entries()`, which can be iterated once.

    After the iteration, `torn` describes an incomplete entry at the end of the file; it is empty if there is none. Raises TraceError for a file that
    is not a trace or has an unsupported version.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.torn = ""
        self.version = 0
        self._at = 0
        self._read: dict[int, Callable[[bytes], Entry]] = {}
        with path.open("rb") as file:
            self.meta = self._read_header(file)

    @property
    def run(self) -> str:
        """Return the name of the recording in the file's header. If the header has no name, return the name of the file without its suffix."""
        return str(self.meta.get("run", self.path.stem))

    @property
    def read_bytes(self) -> int:
        """Return the byte position in the file up to which `entries` has read."""
        return self._at

    def entries(self, begins: int = 0, ends: int = sys.maxsize) -> Iterator[Entry]:
        """Yield the complete entries of the file, or of a part of it. An incomplete last entry is described in `torn`.

        begins: the byte position at which the first entry of the part begins; 0 for the first entry of the file. ends: the byte position at which to
        stop, as if the file ended there. Raises TraceError for invalid bytes.
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
                    raise TraceError(
                        f"{self.path}: no entry of a trace begins at byte {self._at}: kind {kind} or size {size} is invalid; the file is damaged"
                    )
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
        return f"{self.path}: {left} bytes at byte {self._at} are an incomplete entry, which is ignored"

    def _read_header(self, file: BinaryIO) -> dict[str, Any]:
        start = file.read(len(MAGIC) + VERSION_AND_LENGTH.size)
        if not start.startswith(MAGIC) or len(start) < len(MAGIC) + VERSION_AND_LENGTH.size:
            raise TraceError(f"{self.path} is not a trace: it does not begin with {MAGIC!r}")
        version, length = VERSION_AND_LENGTH.unpack_from(start, len(MAGIC))
        if version not in READERS:
            readable = ", ".join(map(str, READERS))
            raise TraceError(f"{self.path} is a trace of version {version}, and this program reads versions {readable}")
        self.version, self._read = version, READERS[version]
        text = file.read(length)
        try:
            if len(text) < length:
                raise ValueError(f"the file ends inside its header: {length - len(text)} of {length} bytes are missing")
            meta = json.loads(text)
            if not isinstance(meta, dict):
                raise ValueError(f"the header of a trace must be a JSON object (got {str(meta)[:80]})")
        except (ValueError, RecursionError) as error:
            raise TraceError(f"{self.path}: its header cannot be read: {error}") from None
        self._at = len(start) + length
        return meta


def files_of(path: Path) -> list[Path]:
    """Return the files of a trace: the files of a folder, sorted by name, or the given file. Raises TraceError if there is none."""
    if path.is_file():
        return [path]
    files = sorted(path.glob(f"*{SUFFIX}")) if path.is_dir() else []
    if not files:
        raise TraceError(f"{path} contains no trace; give a trace file, or a folder that contains files *{SUFFIX}")
    return files


@cache
def _lengths(count: int) -> Struct:
    return Struct(f">{count}I")


def _exchange(body: bytes, layout: Struct = EXCHANGE_FIELDS, defaults: tuple[int, ...] = ()) -> Exchange:
    """Decode the body of a trace entry that contains an exchange (a request and its response).

    layout: the fields of fixed size of an exchange in the file's version of the trace format. defaults: the values of the last fields of
    `EXCHANGE_FIELDS`, if this version lacks them.
    """
    if len(body) < layout.size:
        raise ValueError(
            f"a trace entry with a request and its response takes at least {layout.size} bytes (got {len(body)})"
        )
    fields: tuple[int, ...] = (*layout.unpack_from(body), *defaults)
    (
        *leading_fields,
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
        announced = at + request_left + response_left
        raise ValueError(
            f"a trace entry with a request and its response has {len(body)} bytes, but its fields take {announced}"
        )
    lengths: Sequence[int] = _lengths(count).unpack_from(body, layout.size)
    return Exchange._make(
        (
            *leading_fields,
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
        raise ValueError(
            f"a trace entry with offsets of replicas takes at least {STATE_FIELDS.size} bytes (got {len(body)})"
        )
    seq, broker, clock_ms, at_ns, count = STATE_FIELDS.unpack_from(body)
    logs, at = [], STATE_FIELDS.size
    for _ in range(count):
        if at + POSITIONS_FIELDS.size > len(body):
            raise ValueError(
                f"a trace entry with offsets of replicas announces {count} replicas, but its {len(body)} bytes end before the last of them"
            )
        name_bytes, partition, flags, *offsets = POSITIONS_FIELDS.unpack_from(body, at)
        at += POSITIONS_FIELDS.size + name_bytes
        logs.append(Positions(body[at - name_bytes : at].decode(), partition, bool(flags & BEGINS), *offsets))
    if at != len(body):
        raise ValueError(
            f"a trace entry with offsets of replicas has {len(body)} bytes, but its {count} replicas end at byte {at}"
        )
    return State(seq, broker, clock_ms, at_ns, tuple(logs))


def _event(body: bytes) -> Event:
    facts = json.loads(body)
    if not isinstance(facts, dict) or not isinstance(facts.get("kind"), str):
        raise ValueError(
            f"a trace entry with an event must be a JSON object with a string 'kind' (got {str(facts)[:80]})"
        )
    return Event(facts.pop("kind"), facts)


def _earlier_event(body: bytes) -> Event:
    """Decode the body of a trace entry with an event of format version 2 or 3. The kind "trouble" of these versions becomes "problem"."""
    event = _event(body)
    return event._replace(kind="problem") if event.kind == "trouble" else event


READERS: dict[int, dict[int, Callable[[bytes], Entry]]] = {
    2: {EXCHANGE: partial(_exchange, layout=_EXCHANGE_2, defaults=(UNKNOWN_WAIT_NS,)), EVENT: _earlier_event},
    3: {EXCHANGE: _exchange, EVENT: _earlier_event, STATE: _state},
    4: {EXCHANGE: _exchange, EVENT: _event, STATE: _state},
    VERSION: {EXCHANGE: _exchange, EVENT: _event, STATE: _state},
}
"""Maps each supported version of the trace format to a dict of entry kinds to their decoders.

The earlier versions differ from the current version as follows. Traces of version 2 contain no entries with the offsets of logs (`State`), and no
times in purgatory. In versions 2 and 3, events of kind "problem" have the kind "trouble", and the JSON of some events has other fields. Up to version
4, a control batch is stored only as its header, without its record.
"""
