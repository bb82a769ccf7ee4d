"""Whole request and response frames without what a trace must not keep: records, and secrets of SASL.

Knows which messages have such fields; how a place is cut is `cutting`'s. Must never know who recorded a frame.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey, Codec, codec
from kafkaproto.errors import EncodeError, ProtocolError
from kafkaproto.flat import uvarint
from kafkaproto.frame import LeftOut
from kafkaproto.header import RequestHeader, decode_request_header, decode_response_header
from kafkaproto.records.headers import HEADER_BYTES, LENGTH_AND_MAGIC, MAGIC, PREFIX_BYTES
from kafkaproto.trace.cutting import batch_heads, cut
from kafkaproto.trace.format import Buffer

_SECRET = (ApiKey.SASL_AUTHENTICATE,)
"""Both messages have `auth_bytes`, which may be a password."""
_RECORDS_IN_RESPONSE = (ApiKey.FETCH, ApiKey.SHARE_FETCH)

_LENGTH = Struct(">i")
_NO_TAGS = bytes(3)
"""Of a partition, of its topic and of the request, all empty."""
_LENGTH_AND_HEAD_BYTES = _LENGTH.size + HEADER_BYTES
_ONE_HEAD_FLEXIBLE = uvarint(HEADER_BYTES + 1)
"""How long a records field is that has the header of one batch."""
_length_and_magic, _put_length = LENGTH_AND_MAGIC.unpack_from, _LENGTH.pack_into

START_BYTES = 8
"""Key, version and correlation id, which every request begins with."""


class Cut(NamedTuple):
    """What is kept of a frame. records: how long each records field was that was not null, in order. message: None: it cannot be read.

    message: as it was, its records are views of the frame.
    """

    frame: bytes
    records: tuple[int, ...]
    message: Any


def cut_request(frame: Buffer) -> tuple[RequestHeader, Cut]:
    """A request as a trace keeps it. Raises DecodeError for a frame without a header that can be read.

    Of a message with records that cannot be decoded only the header is kept.
    """
    view = memoryview(frame)
    header, at = decode_request_header(view, 0, len(view))
    if header.api_key != ApiKey.PRODUCE and header.api_key not in _SECRET:
        return header, Cut(bytes(view), (), None)
    try:
        api = codec(header.api_key, header.api_version)
        message, end = api.decode_request(view, at, len(view))
        if header.api_key in _SECRET:
            return header, _without_secret(view[:at], api.encode_request, message)
        kept, records = cut_produce(api, view, at, end, message)
        return header, Cut(bytes(kept), records, message)
    except ProtocolError:
        return header, Cut(bytes(view[:at]), (), None)


def is_silent(header: RequestHeader, cut: Cut) -> bool:
    """Nobody answers this request: a produce with acks=0."""
    return header.api_key == ApiKey.PRODUCE and cut.message is not None and cut.message.acks == 0


def cut_unhandled(frame: Buffer) -> tuple[bytes, tuple[int, ...]]:
    """What a trace keeps of a request that no handler is given, and how long its records were. Raises nothing.

    Of one that cannot be decoded only the header: nobody knows what the rest is. Of one without that only how every header begins.
    """
    view = memoryview(frame)
    try:
        header, at = decode_request_header(view, 0, len(view))
    except ProtocolError:
        return bytes(view[:START_BYTES]), ()
    try:
        _, end = codec(header.api_key, header.api_version).decode_request(view, at, len(view))
        _, cut = cut_request(view[:end])
    except ProtocolError:
        return bytes(view[:at]), ()
    return cut.frame, cut.records


def cut_response(api_key: int, api_version: int, frame: Buffer) -> Cut:
    """The answer to a request of that API and version as a trace keeps it. Raises nothing: of one with records that cannot be decoded as
    much is kept as stands in front of them: its header."""
    view = memoryview(frame)
    if api_key not in _RECORDS_IN_RESPONSE and api_key not in _SECRET:
        return Cut(bytes(view), (), None)
    at = min(4, len(view))
    try:
        _, at = decode_response_header(api_key, api_version, view, 0, len(view))
        api = codec(api_key, api_version)
        message, _ = api.decode_response(view, at, len(view))
        if api_key in _SECRET:
            return _without_secret(view[:at], api.encode_response, message)
        out = bytearray(view[:at])
        splices: list[tuple[int, Any]] = []
        with without_records([p for t in message.responses for p in t.partitions if p.records is not None]):
            api.encode_response(message, out, splices)
        return Cut(*_cut(out, splices, api.flexible), message)
    except ProtocolError:
        return Cut(bytes(view[:at]), (), None)


def cut_produce(api: Codec, frame: memoryview, body_at: int, end: int, request: Any) -> tuple[Buffer, tuple[int, ...]]:
    """A produce request without its records, and how long they were. body_at: where its header ends. end: where the message does.

    Nearly all have one batch, which nothing follows, or nothing but empty tags: those are not written anew, and in line. What can be read
    cannot always be written (a text that is no UTF-8 grows): of that only the header is kept.
    """
    topics = request.topic_data
    if len(topics) == 1 and len(partitions := topics[0].partition_data) == 1:
        records = partitions[0].records
        # `batch_bytes` in line: every recorded produce request asks
        if (
            records is not None
            and (length := len(records)) >= HEADER_BYTES
            and _length_and_magic(records) == (length - PREFIX_BYTES, MAGIC)
        ):
            if not api.flexible:
                kept = bytearray(frame[: end - length + HEADER_BYTES])
                _put_length(kept, len(kept) - _LENGTH_AND_HEAD_BYTES, HEADER_BYTES)
                return kept, (length,)
            announced = uvarint(length + 1)
            behind = end - len(_NO_TAGS)
            begin = behind - length - len(announced)
            tags = partitions[0].unknown_tagged_fields or topics[0].unknown_tagged_fields
            if (
                not (tags or request.unknown_tagged_fields)
                and frame[begin : behind - length] == announced
                and frame[behind:end] == _NO_TAGS
            ):
                parts = frame[:begin], _ONE_HEAD_FLEXIBLE, records[:HEADER_BYTES], _NO_TAGS
                return b"".join(parts), (length,)
    out = bytearray(frame[:body_at])
    splices: list[tuple[int, Any]] = []
    try:
        with without_records([p for topic in topics for p in topic.partition_data if p.records is not None]):
            api.encode_request(request, out, splices)
    except EncodeError:
        return bytes(frame[:body_at]), ()
    return _cut(out, splices, api.flexible)


@contextmanager
def without_records(partitions: Sequence[Any]) -> Iterator[None]:
    """The encoder leaves the records of these out, and tells their places: as `LeftOut` among its splices."""
    for partition in partitions:
        partition.records = LeftOut(partition.records)
    try:
        yield
    finally:
        for partition in partitions:
            partition.records = partition.records.records


def _cut(out: bytearray, splices: Sequence[tuple[int, Any]], flexible: bool) -> tuple[bytes, tuple[int, ...]]:
    places = [(at, len(value), batch_heads(value.records)) for at, value in splices]
    return cut(out, places, flexible), tuple(length for _, length, _ in places)


def _without_secret(header: memoryview, encode: Any, message: Any) -> Cut:
    message.auth_bytes = b""
    out = bytearray(header)
    encode(message, out, None)
    return Cut(bytes(out), (), message)
