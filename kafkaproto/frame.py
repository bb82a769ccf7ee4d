"""Frames: an int32 length, then that many bytes. Plain functions over buffers; who reads and writes them is not known.

A frame that is sent is built in place: `start_frame` keeps room for the length, header and message are appended,
`finish_frame` fills the length in. Ranges that were spliced count although their bytes are not there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

from kafkaproto.errors import DecodeError
from kafkaproto.primitives import ByteRange, Splices

LENGTH_BYTES = 4
PIECE_BYTES = 1 << 20
"""How much of a frame `read_frame` makes room for at a time."""
_LENGTH = struct.Struct(">i")


def start_frame() -> bytearray:
    """An output with room for the length in front."""
    return bytearray(LENGTH_BYTES)


def finish_frame(out: bytearray, splices: Splices | None = None) -> int:
    """Fill in the length of the frame that starts at the beginning of ``out``; returns it, its own 4 bytes left out."""
    length = len(out) - LENGTH_BYTES
    for _, spliced in splices or ():
        length += len(spliced)
    _LENGTH.pack_into(out, 0, length)
    return length


def frame(payload: bytes | bytearray | memoryview) -> bytes:
    """A whole frame around header and message."""
    return _LENGTH.pack(len(payload)) + payload


def frame_length(buffer: bytes | bytearray | memoryview, pos: int = 0) -> int | None:
    """The length that a frame at ``pos`` announces, its own 4 bytes left out; None if fewer than 4 bytes are there.

    Raises DecodeError if it is negative. What is too long is for the caller to say.
    """
    if len(buffer) - pos < LENGTH_BYTES:
        return None
    (length,) = _LENGTH.unpack_from(buffer, pos)
    if length < 0:
        raise DecodeError("frame", pos, f"a length of {length}")
    return int(length)


def take_frame(received: bytearray) -> bytes | None:
    """Remove the first frame of a buffer and return it without its length; None if it is not whole yet. Raises DecodeError."""
    length = frame_length(received)
    if length is None or len(received) < LENGTH_BYTES + length:
        return None
    payload = bytes(memoryview(received)[LENGTH_BYTES : LENGTH_BYTES + length])
    del received[: LENGTH_BYTES + length]
    return payload


def read_frame(receive_into: Callable[[memoryview], int], buffer: memoryview | None = None) -> memoryview:
    """Read exactly one frame of a stream and return it without its length.

    receive_into: `recv_into` of a socket. buffer: where the frame goes instead of a new buffer; it must be long enough.
    Raises EOFError if the stream ends before the frame does, DecodeError for a negative length.
    """
    head = memoryview(bytearray(LENGTH_BYTES))
    _fill(head, receive_into)
    length = frame_length(head) or 0
    if buffer is not None:
        _fill(buffer[:length], receive_into)
        return buffer[:length]
    payload = bytearray()
    while left := length - len(payload):  # so that memory is taken for bytes that came, not for those announced
        piece = memoryview(bytearray(min(left, PIECE_BYTES)))
        _fill(piece, receive_into)
        payload += piece
    return memoryview(payload)


def _fill(view: memoryview, receive_into: Callable[[memoryview], int]) -> None:
    wanted = len(view)
    while view:
        count = receive_into(view)
        if not count:
            raise EOFError(f"the connection was closed after {wanted - len(view)} of {wanted} bytes")
        view = view[count:]


def split_frames(view: memoryview) -> Iterator[memoryview]:
    """The payloads of the complete frames at the start of a buffer; what is left behind them is not told."""
    pos = 0
    while (length := frame_length(view, pos)) is not None and length <= len(view) - pos - LENGTH_BYTES:
        pos += LENGTH_BYTES
        yield view[pos : pos + length]
        pos += length


def spliced_parts(out: bytearray, splices: Splices) -> Iterator[memoryview | ByteRange]:
    """The frame as it goes out: slices of ``out`` and, between them, the ranges in their places."""
    view = memoryview(out)
    if not splices:
        yield view
        return
    yield view[: splices[0][0]]
    for (position, spliced), (next_position, _) in pairwise([*splices, (len(out), b"")]):
        yield spliced
        if next_position > position:
            yield view[position:next_position]


class LeftOut:
    """Records that the encoder leaves out and reports among its splices: as bytes of their own it would write them."""

    __slots__ = ("records",)

    def __init__(self, records: bytes | bytearray | memoryview) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)
