"""Removal of records and SASL secrets, which a trace must not contain, from whole request and response frames.

This module knows which messages have such fields; `cutting` shortens them. It does not depend on the recorder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from struct import Struct
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey, Codec, codec
from kafkaproto.errors import EncodeError, ProtocolError
from kafkaproto.flat import uvarint
from kafkaproto.frame import LeftOut
from kafkaproto.header import RequestHeader, decode_request_header, decode_response_header
from kafkaproto.records.headers import HEADER_BYTES, LENGTH_AND_MAGIC, MAGIC, PREFIX_BYTES
from kafkaproto.trace.cutting import batch_heads, batch_heads_and_markers, cut
from kafkaproto.trace.format import Buffer

SECRET = (ApiKey.SASL_AUTHENTICATE, ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
"""The APIs whose messages may contain passwords, or secrets that can be used like a password."""
_RECORDS_IN_RESPONSE = (ApiKey.FETCH, ApiKey.SHARE_FETCH)

_LENGTH = Struct(">i")
_NO_TAGS = bytes(3)
"""The encoding of the empty tag sections at the end of a Produce request: of the partition, its topic and the request."""
_LENGTH_AND_HEAD_BYTES = _LENGTH.size + HEADER_BYTES
_ONE_HEAD_FLEXIBLE = uvarint(HEADER_BYTES + 1)
"""The encoded length of a compact records field that contains only the header of one batch."""
_length_and_magic, _put_length = LENGTH_AND_MAGIC.unpack_from, _LENGTH.pack_into

START_BYTES = 8
"""The size in bytes of the first three fields of every request: API key, version and correlation id."""


class Cut(NamedTuple):
    """A frame as a trace stores it: without records and secrets.

    records: the original length in bytes of each non-null records field, in order. message: the decoded original, with its records as views of the
    original frame, but without secrets; None if it was not decoded.
    """

    frame: bytes
    records: tuple[int, ...]
    message: Any


def cut_request(frame: Buffer) -> tuple[RequestHeader, Cut]:
    """Return the header of a request and the frame to store in a trace. Raises DecodeError if the header cannot be decoded.

    If a message that may contain records or secrets cannot be decoded, only the header is stored.
    """
    view = memoryview(frame)
    header, at = decode_request_header(view, 0, len(view))
    if header.api_key != ApiKey.PRODUCE and header.api_key not in SECRET:
        return header, Cut(bytes(view), (), None)
    try:
        api = codec(header.api_key, header.api_version)
        message, end = api.decode_request(view, at, len(view))
        if header.api_key in SECRET:
            return header, _without_secret(view[:at], api.encode_request, message)
        cut_frame, records = cut_produce(api, view, at, end, message)
        return header, Cut(bytes(cut_frame), records, message)
    except ProtocolError:
        return header, Cut(bytes(view[:at]), (), None)


def is_silent(header: RequestHeader, cut: Cut) -> bool:
    """Return whether the request expects no response: a Produce request with acks=0.

    cut: the stored request. The result is False if the request was not decoded.
    """
    return header.api_key == ApiKey.PRODUCE and cut.message is not None and cut.message.acks == 0


def cut_unhandled(frame: Buffer) -> tuple[bytes, tuple[int, ...]]:
    """Return (frame to store, original lengths in bytes of its records fields) for a request that was not passed to a handler.

    The frame is stored without its records and secrets, as by `cut_request`. If the body cannot be decoded, only the header is stored; if the header
    cannot be decoded either, only API key, version and correlation id. No error is raised.
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
    """Return the frame of a response to this API and version as a trace stores it.

    It never raises an error: if a message that may contain records or secrets cannot be decoded, only its header is stored.
    """
    view = memoryview(frame)
    if api_key not in _RECORDS_IN_RESPONSE and api_key not in SECRET:
        return Cut(bytes(view), (), None)
    at = min(4, len(view))
    try:
        _, at = decode_response_header(api_key, api_version, view, 0, len(view))
        api = codec(api_key, api_version)
        message, _ = api.decode_response(view, at, len(view))
        if api_key in SECRET:
            return _without_secret(view[:at], api.encode_response, message)
        out = bytearray(view[:at])
        splices: list[tuple[int, Any]] = []
        with without_records([p for t in message.responses for p in t.partitions if p.records is not None]):
            api.encode_response(message, out, splices)
        return Cut(*_cut(out, splices, api.flexible, batch_heads_and_markers), message)
    except ProtocolError:
        return Cut(bytes(view[:at]), (), None)


def cut_produce(api: Codec, frame: memoryview, body_at: int, end: int, request: Any) -> tuple[Buffer, tuple[int, ...]]:
    """Return (a Produce request without its records, the original length in bytes of each non-null records field).

    api: the codec of the request's version. frame: the bytes with the request. body_at: the position in `frame` at which the header ends. end: the
    position at which the whole request ends. request: the decoded message.

    Each batch is replaced by its header. Most requests have one batch and only empty tag sections after it. From such a request, the records are cut
    out without encoding it again. Any other request is encoded again. If this fails, only the header of the request is returned, and no lengths.
    Encoding fails if a text with invalid UTF-8 has become too long: decoding has replaced invalid bytes by U+FFFD, which takes three bytes.
    """
    topics = request.topic_data
    if len(topics) == 1 and len(partitions := topics[0].partition_data) == 1:
        records = partitions[0].records
        # `batch_bytes` inlined, because this runs for every recorded produce request
        if (
            records is not None
            and (length := len(records)) >= HEADER_BYTES
            and _length_and_magic(records) == (length - PREFIX_BYTES, MAGIC)
        ):
            if not api.flexible:
                cut_frame = bytearray(frame[: end - length + HEADER_BYTES])
                _put_length(cut_frame, len(cut_frame) - _LENGTH_AND_HEAD_BYTES, HEADER_BYTES)
                return cut_frame, (length,)
            prefix = uvarint(length + 1)
            records_end = end - len(_NO_TAGS)
            begin = records_end - length - len(prefix)
            tags = partitions[0].unknown_tagged_fields or topics[0].unknown_tagged_fields
            if (
                not (tags or request.unknown_tagged_fields)
                and frame[begin : records_end - length] == prefix
                and frame[records_end:end] == _NO_TAGS
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
    return _cut(out, splices, api.flexible, batch_heads)


@contextmanager
def without_records(partitions: Sequence[Any]) -> Iterator[None]:
    """Return a context manager in which the records of these partitions are `LeftOut` objects, placeholders that the encoder does not copy.

    For each placeholder, the encoder appends (position in the output at which the records are missing, placeholder) to its argument `splices`.
    When the context ends, the partitions have their records again.
    """
    for partition in partitions:
        partition.records = LeftOut(partition.records)
    try:
        yield
    finally:
        for partition in partitions:
            partition.records = partition.records.records


def _cut(
    out: bytearray, splices: Sequence[tuple[int, Any]], flexible: bool, heads: Callable[[Buffer], bytes]
) -> tuple[bytes, tuple[int, ...]]:
    places = [(at, len(value), heads(value.records)) for at, value in splices]
    return cut(out, places, flexible), tuple(length for _, length, _ in places)


def _without_secret(header: memoryview, encode: Any, message: Any) -> Cut:
    if hasattr(message, "auth_bytes"):
        message.auth_bytes = b""
    for upsertion in getattr(message, "upsertions", ()):
        upsertion.salted_password = b""
    out = bytearray(header)
    encode(message, out, None)
    return Cut(bytes(out), (), message)
