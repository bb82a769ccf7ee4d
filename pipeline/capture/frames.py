"""From the bytes of one direction to frames, by the length in front of each; after a hole, or in mid-stream, the next one is looked for.

Must never know which request an answer belongs to: who looks for a beginning is given a `Finder`.
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
"""socket.request.max.bytes of Kafka."""
SEARCHED_BYTES = 256 * 1024
LONGEST_CLIENT_ID = 1024
NEWER_VERSIONS = 16
"""So many versions above the known ones may a plausible header ask for."""
LARGEST_STEP = 1 << 20
"""Correlation ids are counted by a client over all its connections: so far may one be ahead of the last."""

_REQUEST_START = Struct(">ihhih")
_RESPONSE_START = Struct(">ii")
_LOOKS_LIKE_A_REQUEST = re.compile(rb"(?s)(?=[\x00-\x06]...\x00[\x00-\x7f]\x00[\x00-\x3f]....[\x00-\x04\xff].)")


class Frame(NamedTuple):
    """data: without its length; of one with `trouble` only its beginning. length: as announced. first_ns, last: when it began and was
    there."""

    data: bytes
    length: int
    first_ns: int
    last: Stamp
    trouble: str


class Lost(NamedTuple):
    """What was taken for a frame is none: from here on nobody knows where frames begin, until one is found again."""

    why: str
    stamp: Stamp


class Finder(NamedTuple):
    """at_start: whether a frame begins with these bytes, by its looks: for the beginning of a segment. anywhere: the first place where one
    begins that can be read to its end."""

    at_start: Callable[[bytes], bool]
    anywhere: Callable[[bytearray], int | None]


class Cutter:
    """The frames of one direction. in_step: the first byte that comes is that of a frame."""

    def __init__(self, finder: Finder, in_step: bool) -> None:
        self._finder = finder
        self.in_step = in_step
        """Whether it is known where the next frame begins, so that none is passed over."""
        self._bytes = bytearray()
        self._first_ns = 0
        self._skip = 0
        """So many bytes of a frame with a hole are still to come."""
        self._announced = 0
        self._why = ""

    def take(self, piece: Piece) -> Iterator[Frame | Lost]:
        if isinstance(piece, Hole):
            yield from self._hole(piece)
            return
        data = piece.data
        if self._skip:
            passed = min(self._skip, len(data))
            yield from self._skipped(passed, piece.stamp)
            data = data[passed:]
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
                yield Lost(f"a frame of {length} bytes is announced", stamp)
                return
            end = at + LENGTH_BYTES + length
            if end > len(view):
                break
            yield Frame(bytes(view[at + LENGTH_BYTES : end]), length, self._first_ns, stamp, "")
            self._first_ns = stamp.ts_ns
            at = end
        del view[:at]

    def _hole(self, hole: Hole) -> Iterator[Frame]:
        left = hole.length
        if self._skip and left >= 0:
            passed = min(self._skip, left)
            yield from self._skipped(passed, hole.stamp)
            left -= passed
        elif len(self._bytes) >= LENGTH_BYTES and self.in_step:
            self._announced = int.from_bytes(self._bytes[:LENGTH_BYTES], "big")
            self._skip = LENGTH_BYTES + self._announced - len(self._bytes)
            self._why = hole.why
            passed = self._skip if left < 0 else min(self._skip, left)
            yield from self._skipped(passed, hole.stamp)
            left = left if left < 0 else left - passed
        if left:
            self._skip = 0
            self._bytes.clear()
            self.in_step = False

    def _skipped(self, passed: int, stamp: Stamp) -> Iterator[Frame]:
        """`passed` bytes of a frame that has a hole are behind us; at its end its beginning comes out."""
        self._skip -= passed
        if not self._skip:
            yield self._damaged(stamp)

    def _damaged(self, stamp: Stamp) -> Frame:
        head = bytes(self._bytes[LENGTH_BYTES:])
        self._bytes.clear()
        why = f"{len(head)} of its {self._announced} bytes can be read: {self._why}"
        return Frame(head, self._announced, self._first_ns, stamp, why)

    def end(self, stamp: Stamp, why: str) -> Iterator[Frame]:
        """Nothing more comes: what began, as far as it got."""
        if self.in_step and len(self._bytes) > LENGTH_BYTES:
            if not self._skip:
                self._announced, self._why = int.from_bytes(self._bytes[:LENGTH_BYTES], "big"), why
            yield self._damaged(stamp)
        self._bytes.clear()

    def _find(self, data: bytes) -> bytes:
        """What is known to begin with a frame, of the new bytes or of all that were looked through; else nothing."""
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
        found = bytes(searched[at:])
        searched.clear()
        self.in_step = True
        return found


# ---- what looks like a frame -------------------------------------------------------------------------------------------------


def request_begins(data: bytes | bytearray | memoryview, at: int, after: int | None, client_id: str | None) -> bool:
    """Whether the 14 bytes of a length and a request header at `at` look like some.

    after: the correlation id of the last one. client_id: the one that it must have, None: any.
    """
    if len(data) - at < _REQUEST_START.size:
        return False
    length, key, version, correlation_id, name_bytes = _REQUEST_START.unpack_from(data, at)
    info = APIS.get(key)
    if info is None or not 10 <= length <= LARGEST_FRAME_BYTES or not 0 <= version <= info.max_version + NEWER_VERSIONS:
        return False
    if after is not None and not 0 < correlation_id - after <= LARGEST_STEP:
        return False
    if not -1 <= name_bytes <= min(length - 10, LONGEST_CLIENT_ID):
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
    """Of the request that begins with these bytes, by its looks."""
    if not request_begins(data, 0, None, None):
        return None
    try:
        header, _ = decode_request_header(memoryview(data), LENGTH_BYTES, len(data))
    except ProtocolError:
        return None
    return header


def find_request(data: bytearray, after: int | None, client_id: str | None) -> int | None:
    """Where the first request begins that can be decoded to its very end."""
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
    """Whether these bytes begin with an answer to one of the expected correlation ids."""
    if len(data) < _RESPONSE_START.size:
        return False
    length, correlation_id = _RESPONSE_START.unpack_from(data)
    return 4 <= length <= LARGEST_FRAME_BYTES and correlation_id in expected


def find_response(data: bytearray, expected: dict[int, tuple[int, int]]) -> int | None:
    """The same where the first answer begins that can be decoded to its end. expected: correlation id to API key and version."""
    places = []
    for correlation_id, (key, version) in expected.items():
        wanted = correlation_id.to_bytes(4, "big", signed=True)
        found = data.find(wanted, LENGTH_BYTES)
        while found >= 0:
            if _is_response(data, found - LENGTH_BYTES, key, version):
                places.append(found - LENGTH_BYTES)
                break
            found = data.find(wanted, found + 1)
    return min(places, default=None)


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
