"""Frames of Kafka's protocol: an int32 length, then that many bytes. Plain functions over buffers, without sockets.

An outgoing frame is built in place: `start_frame` reserves the length, header and message are appended, `finish_frame` fills the length in. Ranges of
records that are stored elsewhere, such as in a file, are not in the buffer, but count towards the length. A list of such ranges is called splices.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise

from kafkaproto.errors import DecodeError
from kafkaproto.primitives import ByteRange, Splices

LENGTH_BYTES = 4
PIECE_BYTES = 1 << 20
"""The maximum number of bytes by which `read_frame` extends its buffer at once, so that a false length costs little memory if no data follows."""
_LENGTH = struct.Struct(">i")


def start_frame() -> bytearray:
    """Return a new output buffer with 4 bytes for the length, which `finish_frame` fills in."""
    return bytearray(LENGTH_BYTES)


def finish_frame(out: bytearray, splices: Splices | None = None) -> int:
    """Write the length of the frame into the first 4 bytes of ``out``, and return the length.

    The length does not count these 4 bytes. It counts the ranges in ``splices``, which are sent with the frame although they are not in ``out``.
    """
    length = len(out) - LENGTH_BYTES
    for _, piece in splices or ():
        length += len(piece)
    _LENGTH.pack_into(out, 0, length)
    return length


def frame(payload: bytes | bytearray | memoryview) -> bytes:
    """Return a complete frame: a length prefix, then ``payload``, which contains header and message."""
    return _LENGTH.pack(len(payload)) + payload


def frame_length(buffer: bytes | bytearray | memoryview, pos: int = 0) -> int | None:
    """Return the length in the length prefix of the frame at ``pos``, or None if the buffer has fewer than the 4 bytes of the prefix.

    Raises DecodeError if the length is negative. Callers check for lengths that are too large.
    """
    if len(buffer) - pos < LENGTH_BYTES:
        return None
    (length,) = _LENGTH.unpack_from(buffer, pos)
    if length < 0:
        raise DecodeError("frame", pos, f"the length must not be negative (got {length})")
    return int(length)


def take_frame(received: bytearray) -> bytes | None:
    """Remove the first frame from ``received`` and return it without its length prefix. Raises DecodeError for a negative length.

    Returns None, and removes nothing, if the frame is incomplete.
    """
    length = frame_length(received)
    if length is None or len(received) < LENGTH_BYTES + length:
        return None
    payload = bytes(memoryview(received)[LENGTH_BYTES : LENGTH_BYTES + length])
    del received[: LENGTH_BYTES + length]
    return payload


def read_frame(receive_into: Callable[[memoryview], int], buffer: memoryview | None = None) -> memoryview:
    """Read exactly one frame from a stream and return it without its length.

    receive_into: fills a view with received bytes and returns their number, as `recv_into` of a socket does. buffer: where to store the frame; it
    must be at least as long as the frame. None for a new buffer. Raises EOFError if the stream ends before the frame does, DecodeError for a negative
    length.
    """
    head = memoryview(bytearray(LENGTH_BYTES))
    _fill(head, receive_into, 0, LENGTH_BYTES, "a frame's length")
    length = frame_length(head) or 0
    if buffer is not None:
        _fill(buffer[:length], receive_into, 0, length, "a frame")
        return buffer[:length]
    payload = bytearray()
    while bytes_left := length - len(payload):  # allocate memory only as bytes arrive, not for the announced length
        piece = memoryview(bytearray(min(bytes_left, PIECE_BYTES)))
        _fill(piece, receive_into, len(payload), length, "a frame")
        payload += piece
    return memoryview(payload)


def _fill(view: memoryview, receive_into: Callable[[memoryview], int], done: int, total: int, name: str) -> None:
    """Fill `view` with bytes from `receive_into`. Raises EOFError if the stream ends before the view is full.

    The other arguments are for the error text. name: the part of the frame that `view` belongs to. total: the size of this part in bytes. done: how
    many bytes of this part were received before the call.
    """
    while view:
        count = receive_into(view)
        if not count:
            raise EOFError(f"the connection was closed after {done} of {total} bytes of {name}")
        done += count
        view = view[count:]


def split_frames(view: memoryview) -> Iterator[memoryview]:
    """Yield the payloads of the complete frames at the start of a buffer. An incomplete frame at the end is ignored."""
    pos = 0
    while (length := frame_length(view, pos)) is not None and length <= len(view) - pos - LENGTH_BYTES:
        pos += LENGTH_BYTES
        yield view[pos : pos + length]
        pos += length


def spliced_parts(out: bytearray, splices: Splices) -> Iterator[memoryview | ByteRange]:
    """Yield the parts of a frame in the order in which they are sent: slices of ``out``, and between them the ranges of records in ``splices``."""
    view = memoryview(out)
    if not splices:
        yield view
        return
    yield view[: splices[0][0]]
    for (position, piece), (next_position, _) in pairwise([*splices, (len(out), b"")]):
        yield piece
        if next_position > position:
            yield view[position:next_position]


class LeftOut:
    """A placeholder for the records in a message: the encoder writes the length of the records, but not their bytes.

    For each placeholder, the encoder appends (position in the output at which the bytes are missing, placeholder) to its argument `splices`.
    """

    __slots__ = ("records",)

    def __init__(self, records: bytes | bytearray | memoryview) -> None:
        self.records = records

    def __len__(self) -> int:
        return len(self.records)
