"""Encoding of the entries of a recorded trace: requests and responses without their Kafka records, and changes of a log's offsets.

Many entries are encoded together, on the broker's event loop.
"""

from __future__ import annotations

import logging
import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from kafkaproto.api import codec
from kafkaproto.broker.log.files import FileRange
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.records.headers import walk_headers
from kafkaproto.trace.cutting import batch_heads_and_markers, cut, kept_bytes
from kafkaproto.trace.format import (
    EXCHANGE,
    LENGTH_AND_KIND,
    STATE,
    Buffer,
    exchange_layout,
)
from kafkaproto.trace.frames import cut_request, is_silent

if TYPE_CHECKING:
    from kafkaproto.broker.log.replica_log import ReplicaLog
    from kafkaproto.broker.requests.exchange import Exchange

logger = logging.getLogger("kafkaproto.trace")

LARGE_BYTES = 64 * 1024
"""The size in bytes above which a trace entry is not collected with others, but encoded and passed to the trace writer at once and alone.

This bounds the memory of collected entries. If the queue of the trace writer is full, only this entry is lost, not others with it.
"""


class Traced:
    """What the trace contains about one request and its response, collected from the arrival of the request until the response is sent.

    - kept_frame: (the request's frame without records and secrets, the length in bytes of each records field in the request).
    - wait_ns: for how many ns the request waited in purgatory, 0 if it did not. While it waits, the field holds the negative of the time at which the
      wait began, in ns of the monotonic clock.
    - ready_ns: when the response was encoded, or when a request without a response was complete, in ns of the monotonic clock; 0 before that.
    - flags: the sum of 1 if the request got a response, 2 if the broker delayed the response, and 4 if the broker closes the connection.
    - out: the response with its length prefix, without records.
    - splices: (position in `out`, records) of each records field of the response.
    """

    __slots__ = (
        "exchange",
        "flags",
        "handled_ms",
        "handled_ns",
        "kept_frame",
        "out",
        "ready_ns",
        "received_ns",
        "recorder",
        "sent_ns",
        "seq",
        "splices",
        "throttle_ms",
        "wait_ns",
    )
    exchange: Exchange
    recorder: object
    seq: int
    received_ns: int
    handled_ns: int
    handled_ms: int
    kept_frame: tuple[Buffer, tuple[int, ...]]
    wait_ns: int
    ready_ns: int
    sent_ns: int
    throttle_ms: int
    flags: int
    out: Buffer
    splices: Sequence[tuple[int, Any]]

    @property
    def is_silent(self) -> bool:
        """Return whether the request is a Produce with acks=0, which gets no response. Decodes the recorded part of the request."""
        return is_silent(*cut_request(self.kept_frame[0]))


_ONE_LOG = struct.Struct(">HHi")
"""Encodes three adjacent fields of a trace entry about the offsets of one log: the number of logs (1), the topic name's length, the partition.
"""

Waiting = bytes | Traced | tuple[Callable[..., bytes], tuple[Any, ...]]
"""A trace entry that has been collected, in one of three forms.

Bytes are an entry that is encoded already. `Traced` is a request with its response, which is encoded later. A tuple (encoding function,
arguments of that function) is a change of a log's offsets, which is encoded later, too. The second of these arguments is the entry's sequence number.
"""


class StateOfOne(NamedTuple):
    """An encoder of the trace entries about the offsets of one log: the function `pack`, and those of its arguments that never change.

    - pack: returns the bytes of one entry, as `kafkaproto.trace.format.encoded` does for a `State`, but faster. Its arguments, in order: head, the
      entry's sequence number, broker id, time of the cluster's clock in ms, time of the monotonic clock in ns, log, flags, high watermark, last
      stable offset, log start offset, log end offset, name.
    - head: the encoded length and kind of the entry.
    - log: the encoded number of logs (1), length of the topic name, and partition.
    - name: the encoded topic name.
    """

    pack: Callable[..., bytes]
    head: bytes
    log: bytes
    name: bytes


def state_of_one(topic: str, partition: int) -> StateOfOne:
    """Return an encoder for the trace entries about the offsets of the log of one partition."""
    name = topic.encode()
    log = _ONE_LOG.pack(1, len(name), partition)
    layout = struct.Struct(f">{LENGTH_AND_KIND.size}sQiqq{len(log)}sBqqqq{len(name)}s")
    head = LENGTH_AND_KIND.pack(layout.size - LENGTH_AND_KIND.size, STATE)
    return StateOfOne(layout.pack, head, log, name)


class Moves:
    """An encoder of the trace entries about one replica's offsets. The trace gets such an entry for each change of the offsets.

    packing: the encoding function with its constant arguments. flags: 1 (`BEGINS`) if the next entry is the first one about this replica, otherwise
    0. log: a weak reference to the replica's log.
    """

    __slots__ = ("flags", "log", "packing")

    def __init__(self, packing: StateOfOne, flags: int, log: ref[ReplicaLog]) -> None:
        self.packing = packing
        self.flags = flags
        self.log = log


class MovesByLog:
    """Maps the log of each replica to the encoder of trace entries about its offsets (`Moves`). A log that is deleted is removed."""

    def __init__(self) -> None:
        self._moves: dict[
            int, Moves
        ] = {}  # keyed by `id`, because looking up a weak reference takes several times as long

    def of(self, log: ReplicaLog) -> Moves | None:
        """Return the encoder of trace entries about the offsets of `log`; None if `add` was not called for this log."""
        return self._moves.get(id(log))

    def add(self, log: ReplicaLog, topic: str, index: int, flags: int) -> Moves:
        """Add the log of partition `index` of a topic, and return the encoder of trace entries about its offsets.

        flags: the field `flags` of the first entry: 1 (`BEGINS`) if the trace has no earlier entry about the log, otherwise 0.
        """
        key, all_moves = id(log), self._moves
        log_ref = ref(log, lambda _: all_moves.pop(key, None))
        moves = all_moves[key] = Moves(state_of_one(topic, index), flags, log_ref)
        return moves

    def clear(self) -> None:
        """Remove all logs from this mapping. The logs themselves do not change."""
        self._moves.clear()


class Entries:
    """Collects trace entries in order, and encodes many of them at once.

    sink: a function that receives the encoded entries, joined into one byte string, and their number. together: how many entries to collect before
    encoding them. If it is above 1, adding an entry about changed offsets never starts the encoding, however many entries are collected: they are
    encoded with a later entry of another kind, or by `flush`.
    """

    def __init__(self, sink: Callable[[bytes, int], None], together: int) -> None:
        self._sink = sink
        self._together = together
        self._waiting: list[Waiting] = []
        # Offset changes do not count towards `together`: an exchange or a flush follows them.
        self.keep_move: Callable[[Waiting], None] = (
            partial(self.keep, size_bytes=0) if together == 1 else self._waiting.append
        )
        self.ended = False

    def keep(self, entry: Waiting, size_bytes: int) -> None:
        """Add a trace entry, to be encoded later with others, or at once if `size_bytes`, its approximate size, exceeds LARGE_BYTES (64 KiB)."""
        large = size_bytes > LARGE_BYTES
        if large:
            self.flush()
        waiting_entries = self._waiting
        waiting_entries.append(entry)
        if large or len(waiting_entries) >= self._together:
            self.flush()

    def keep_packed(self, entry: bytes) -> None:
        """Add a trace entry that is already encoded."""
        self.keep(entry, len(entry))

    def flush(self) -> None:
        """Encode the collected entries, and call the function `sink` with them."""
        if self._waiting:
            waiting_entries = self._waiting.copy()
            self._waiting.clear()  # in place, because `keep_move` refers to this list
            if self.ended:
                return
            try:
                pieces = [
                    _packed(entry)
                    if isinstance(entry, Traced)
                    else entry[0](*entry[1])
                    if isinstance(entry, tuple)
                    else entry
                    for entry in waiting_entries
                ]
            except struct.error:
                pieces = [_packed_or_empty(entry) for entry in waiting_entries]
            self._sink(b"".join(pieces), len(waiting_entries))

    def end(self) -> None:
        """Encode the collected entries, call the function `sink` with them, and drop all entries that are added later."""
        self.flush()
        self.ended = True


def _packed_or_empty(entry: Waiting) -> bytes:
    """Return a trace entry as encoded bytes, or b"" if a number does not fit its field.

    In that case an error is logged, and the trace lacks the entry.
    """
    if isinstance(entry, bytes):
        return entry
    try:
        return _packed(entry) if isinstance(entry, Traced) else entry[0](*entry[1])
    except struct.error as error:
        seq = entry.seq if isinstance(entry, Traced) else entry[1][1]
        logger.error(
            "trace entry %s was not written, because one of its numbers is too large or too small for its field: %s",
            seq,
            error,
        )
        return b""


def _packed(traced: Traced, response: Buffer | None = None, lengths: tuple[int, ...] = ()) -> bytes:
    """Return the encoded trace entry of an exchange (a request and its response): the bytes that `kafkaproto.trace.format.encoded` also returns.

    response: the response without its length prefix, and with batch headers in place of its records. It is None for a response without records; the
    function then takes the response from `traced`. lengths: the original length in bytes of each records field of the response.
    """
    exchange = traced.exchange
    request, records = traced.kept_frame
    request_left = len(request)
    response_left = response_bytes = len(traced.out) - LENGTH_BYTES
    if response is None:
        response = traced.out[LENGTH_BYTES:]
    else:
        response_left, response_bytes = len(response), response_bytes + sum(lengths)
    size, pack = exchange_layout(len(records) + len(lengths))
    fixed = pack(
        size + request_left + response_left,
        EXCHANGE,
        traced.seq,
        exchange.node.broker_id,
        exchange.peer.connection_id,
        exchange.now_ms,
        traced.received_ns,
        traced.handled_ns,
        traced.ready_ns,
        traced.sent_ns,
        traced.throttle_ms,
        traced.flags,
        exchange.size_bytes,
        response_bytes,
        request_left,
        response_left,
        len(records),
        len(lengths),
        traced.handled_ms,
        traced.wait_ns,
        *records,
        *lengths,
    )
    return b"".join((fixed, request, response))


def packed_with_records(traced: Traced) -> bytes:
    """Return the encoded trace entry of a request whose response has records. Of the records, the entry has only the batch headers."""
    flexible = codec(traced.exchange.api_key, traced.exchange.api_version).flexible
    return _packed(traced, *_cut_response(traced.out, traced.splices, flexible))


def _cut_response(out: Buffer, splices: Sequence[tuple[int, Any]], flexible: bool) -> tuple[Buffer, tuple[int, ...]]:
    """Return a response with batch headers in place of its records, and the original length in bytes of each of its records fields.

    out: the frame of the response without any records. splices: for each records field, (its position in `out`, its records). flexible: whether
    the response's version uses compact lengths. The returned response lacks the length prefix of the frame.
    """
    places = [(at, len(value), heads(value)) for at, value in splices]
    return memoryview(cut(out, places, flexible))[LENGTH_BYTES:], tuple([length for _, length, _ in places])


def heads(records: Any) -> bytes:
    """Return the headers of all batches in `records`, which are in memory or in a file. Small control batches are included whole."""
    return _file_heads(records) if type(records) is FileRange else batch_heads_and_markers(records)


def _file_heads(part: FileRange) -> bytes:
    """Return the headers of all batches in a range of a file, as `heads` does. Reads little more than these headers from the file."""
    fd, begin, end = part.file.fileno(), part.offset, part.offset + len(part)
    kept: list[Buffer] = []
    for position, size, buffer, at in walk_headers(
        lambda position, size_bytes: os.pread(fd, size_bytes, position), begin, end
    ):
        count = kept_bytes(buffer, at, size)
        kept.append(buffer[at : at + count] if at + count <= len(buffer) else os.pread(fd, count, position))
    return b"".join(kept)
