"""Frames in the bytes of one direction of a connection, found by their length prefixes.

After missing bytes, or if the capture starts in mid-stream, the module searches for the start of the next frame. A `Finder` provides the functions
that recognise requests or responses, so this module does not match responses with requests.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from struct import Struct
from typing import NamedTuple

from kafkaproto.api import APIS, codec
from kafkaproto.errors import ProtocolError
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.header import RequestHeader, decode_request_header, decode_response_header, response_version
from kafkaproto.pipeline.capture.stream import Hole, Piece, Stamp

LARGEST_FRAME_BYTES = 100 * 1024 * 1024
"""Largest plausible length of a frame, without its prefix: the default of Kafka's `socket.request.max.bytes`."""
SEARCHED_BYTES = 256 * 1024
MAX_CLIENT_ID_BYTES = 1024
NEWER_VERSIONS = 16
"""How far the API version in a plausible request header may be above the highest version that this project knows."""
MAX_CORRELATION_ID_STEP = 1 << 20
"""The largest plausible difference between the correlation ids of two successive requests of a connection.

Bytes whose correlation id differs by more cannot be the next request. The difference may exceed 1, because some clients number the requests of all
their connections in one sequence.
"""

_REQUEST_START = Struct(">ihhih")
_RESPONSE_START = Struct(">ii")
_LOOKS_LIKE_A_REQUEST = re.compile(rb"(?s)(?=[\x00-\x06]...\x00[\x00-\x7f]\x00[\x00-\x3f]....[\x00-\x04\xff].)")


class Frame(NamedTuple):
    """A captured frame, possibly incomplete.

    data: the frame without its length prefix, up to the first missing byte. length: the value of the length prefix. first_ns: time of its first byte
    in ns since the epoch. last: number and time of the packet with its last byte. problem: why the frame is incomplete, or empty.
    """

    data: bytes
    length: int
    first_ns: int
    last: Stamp
    problem: str


class Lost(NamedTuple):
    """A report that a length prefix is implausible, so that the frames after it cannot be found by their lengths.

    why: the problem as text, which contains the implausible length.
    """

    why: str
    stamp: Stamp


class Finder(NamedTuple):
    """Two functions that recognise where a frame starts in captured bytes.

    at_start: returns True if a segment looks like the start of a frame. anywhere: returns the byte position of the first frame that can be decoded
    completely, or None.
    """

    at_start: Callable[[bytes], bool]
    anywhere: Callable[[bytearray], int | None]


class Cutter:
    """A splitter of the bytes of one direction of a connection into frames.

    in_step: True if the first byte is the start of a frame. finder: functions that find the next frame after missing bytes, or if the capture starts
    in mid-stream.
    """

    def __init__(self, finder: Finder, in_step: bool) -> None:
        self._finder = finder
        self.in_step = in_step
        """True while it is known where frames begin and end. False while the start of the next frame must be searched for."""
        self._bytes = bytearray()
        self._first_ns = 0
        self._skip = 0
        """How many bytes must still be skipped to reach the end of a frame in which bytes are missing."""
        self._announced = 0
        self._why = ""

    def take(self, piece: Piece) -> Iterator[Frame | Lost]:
        if isinstance(piece, Hole):
            yield from self._hole(piece)
            return
        data = piece.data
        if self._skip:
            skipped = min(self._skip, len(data))
            yield from self._skipped(skipped, piece.stamp)
            data = data[skipped:]
        if not data:
            return
        if not self.in_step:
            data = self._find(data)
            if not data:
                return
        if not self._bytes:
            self._first_ns = piece.stamp.ts_ns
        self._bytes += data
        yield from self._whole(piece.stamp)

    def _whole(self, stamp: Stamp) -> Iterator[Frame | Lost]:
        view, at = self._bytes, 0
        while len(view) - at >= LENGTH_BYTES:
            length = int.from_bytes(view[at : at + LENGTH_BYTES], "big")
            if length > LARGEST_FRAME_BYTES:
                self.in_step = False
                view.clear()
                yield Lost(f"a frame has a length of {length} bytes", stamp)
                return
            end = at + LENGTH_BYTES + length
            if end > len(view):
                break
            yield Frame(bytes(view[at + LENGTH_BYTES : end]), length, self._first_ns, stamp, "")
            self._first_ns = stamp.ts_ns
            at = end
        del view[:at]

    def _hole(self, hole: Hole) -> Iterator[Frame]:
        remaining = hole.length
        if self._skip and remaining >= 0:
            skipped = min(self._skip, remaining)
            yield from self._skipped(skipped, hole.stamp)
            remaining -= skipped
        elif len(self._bytes) >= LENGTH_BYTES and self.in_step:
            self._announced = int.from_bytes(self._bytes[:LENGTH_BYTES], "big")
            self._skip = LENGTH_BYTES + self._announced - len(self._bytes)
            self._why = hole.why
            skipped = self._skip if remaining < 0 else min(self._skip, remaining)
            yield from self._skipped(skipped, hole.stamp)
            remaining = remaining if remaining < 0 else remaining - skipped
        if remaining:
            self._skip = 0
            self._bytes.clear()
            self.in_step = False

    def _skipped(self, skipped: int, stamp: Stamp) -> Iterator[Frame]:
        """Skip bytes of a frame that has a gap. When the end of the frame is reached, yield the frame with only its bytes before the gap.

        skipped: number of bytes to skip. stamp: number and time of the packet with the last of these bytes.
        """
        self._skip -= skipped
        if not self._skip:
            yield self._damaged(stamp)

    def _damaged(self, stamp: Stamp) -> Frame:
        head = bytes(self._bytes[LENGTH_BYTES:])
        self._bytes.clear()
        why = f"{len(head)} of {self._announced} bytes can be decoded: {self._why}"
        return Frame(head, self._announced, self._first_ns, stamp, why)

    def end(self, stamp: Stamp, why: str) -> Iterator[Frame]:
        """Yield the incomplete last frame, if there is one, at the end of the connection.

        stamp: number and time of the connection's last packet. why: the reason why the connection ends.
        """
        if self.in_step and len(self._bytes) > LENGTH_BYTES:
            if not self._skip:
                self._announced, self._why = int.from_bytes(self._bytes[:LENGTH_BYTES], "big"), why
            yield self._damaged(stamp)
        self._bytes.clear()

    def _find(self, data: bytes) -> bytes:
        """Search for the start of a frame, and return the bytes from there on; b"" if no frame is recognised.

        data: new bytes. If they do not begin with the start of a frame, the method searches them together with the last bytes of earlier calls that
        recognised no frame.
        """
        searched = self._bytes
        if self._finder.at_start(data):
            searched.clear()
            self.in_step = True
            return data
        searched += data
        at = self._finder.anywhere(searched)
        if at is None:
            del searched[:-SEARCHED_BYTES]
            return b""
        frame_onwards = bytes(searched[at:])
        searched.clear()
        self.in_step = True
        return frame_onwards


# ---- recognition of frames ---------------------------------------------------------------------------------------------------


def request_begins(data: bytes | bytearray | memoryview, at: int, after: int | None, client_id: str | None) -> bool:
    """Return True if the bytes from byte position `at` on look like a length prefix and a request header; False for fewer than 14 bytes.

    after: correlation id of the last request. The correlation id in the header must be higher, by at most `MAX_CORRELATION_ID_STEP` (about a
    million). client_id: the client id that the header must have. With None, any correlation id or any client id is accepted.
    """
    if len(data) - at < _REQUEST_START.size:
        return False
    length, key, version, correlation_id, name_bytes = _REQUEST_START.unpack_from(data, at)
    info = APIS.get(key)
    if info is None or not 10 <= length <= LARGEST_FRAME_BYTES or not 0 <= version <= info.max_version + NEWER_VERSIONS:
        return False
    if after is not None and not 0 < correlation_id - after <= MAX_CORRELATION_ID_STEP:
        return False
    if not -1 <= name_bytes <= min(length - 10, MAX_CLIENT_ID_BYTES):
        return False
    name = bytes(data[at + _REQUEST_START.size : at + _REQUEST_START.size + max(0, name_bytes)])
    if client_id is not None:
        return name == client_id.encode()[: len(name)] and name_bytes == len(client_id.encode())
    return name.isascii() or _is_text(name)


def _is_text(name: bytes) -> bool:
    try:
        return name.decode().isprintable()
    except UnicodeDecodeError:
        return False


def header_of(data: bytes) -> RequestHeader | None:
    """Return the request header at the start of the bytes, after the length prefix; None if the bytes do not look like a request."""
    if not request_begins(data, 0, None, None):
        return None
    try:
        header, _ = decode_request_header(memoryview(data), LENGTH_BYTES, len(data))
    except ProtocolError:
        return None
    return header


def find_request(data: bytearray, after: int | None, client_id: str | None) -> int | None:
    """Return the byte position of the first request that can be decoded completely, or None.

    after: correlation id of the last request. The correlation id of the found request must be higher, by at most `MAX_CORRELATION_ID_STEP` (about a
    million). client_id: the client id that the request must have. With None, any correlation id or any client id is accepted.
    """
    for match in _LOOKS_LIKE_A_REQUEST.finditer(data):
        at = match.start()
        if request_begins(data, at, after, client_id) and _is_request(data, at):
            return at
    return None


def _is_request(data: bytearray, at: int) -> bool:
    frame = _whole_frame(data, at)
    if frame is None:
        return False
    try:
        header, body = decode_request_header(frame, 0, len(frame))
        _, end = codec(header.api_key, header.api_version).decode_request(frame, body, len(frame))
    except ProtocolError:
        return False
    return end == len(frame)


def response_begins(data: bytes, expected: set[int]) -> bool:
    """Return True if the bytes start with the length prefix of a response and one of the expected correlation ids."""
    if len(data) < _RESPONSE_START.size:
        return False
    length, correlation_id = _RESPONSE_START.unpack_from(data)
    return 4 <= length <= LARGEST_FRAME_BYTES and correlation_id in expected


def find_response(data: bytearray, expected: dict[int, tuple[int, int]]) -> int | None:
    """Return the byte position of the first response that can be decoded completely, or None.

    expected: maps a correlation id to (API key, version) of its request.
    """
    offsets = []
    for correlation_id, (key, version) in expected.items():
        id_bytes = correlation_id.to_bytes(4, "big", signed=True)
        id_at = data.find(id_bytes, LENGTH_BYTES)
        while id_at >= 0:
            if _is_response(data, id_at - LENGTH_BYTES, key, version):
                offsets.append(id_at - LENGTH_BYTES)
                break
            id_at = data.find(id_bytes, id_at + 1)
    return min(offsets, default=None)


def _is_response(data: bytearray, at: int, key: int, version: int) -> bool:
    frame = _whole_frame(data, at)
    if frame is None:
        return False
    try:
        _, body = decode_response_header(key, version, frame, 0, len(frame))
        _, end = codec(key, response_version(key, version, frame)).decode_response(frame, body, len(frame))
    except ProtocolError:
        return False
    return end == len(frame)


def _whole_frame(data: bytearray, at: int) -> memoryview | None:
    length = int.from_bytes(data[at : at + LENGTH_BYTES], "big")
    end = at + LENGTH_BYTES + length
    return (
        memoryview(bytes(data[at + LENGTH_BYTES : end])) if length <= LARGEST_FRAME_BYTES and end <= len(data) else None
    )
