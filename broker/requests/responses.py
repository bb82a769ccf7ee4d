"""Encodes responses. Records in the files of a log are not copied: the encoded response refers to ranges of these files.

Values known only after encoding, such as the throttle time, are written into the encoded bytes.
"""

from __future__ import annotations

from struct import Struct
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests import fetch_versions
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.frame import LENGTH_BYTES, LeftOut, finish_frame, spliced_parts
from kafkaproto.header import start_response

Frame = tuple[bytearray, list[tuple[int, Any]], int]
"""An encoded response: (bytes, splices, size in bytes without the length field).

The bytes begin with the length field. A splice is (position in the bytes, records to insert there: bytes, or a range of a log's file).
"""

_THROTTLE_TIME = Struct(">i")
_ERROR_AND_SESSION = Struct(">hi")
_FLEXIBLE_HEADER_BYTES, _HEADER_BYTES = 5, 4
_NO_TOPICS = bytes(4)
_NO_TOPICS_FLEXIBLE = b"\x01\x00"
"""The encoding of an empty compact array of topics, followed by an empty section of tagged fields."""


def encode(exchange: Exchange, message: Any) -> Frame:
    """Return the encoded frame of a response message. Raises EncodeError if the message has a value that cannot be encoded."""
    codec = exchange.codec
    events = exchange.node.events
    out = start_response(exchange.correlation_id, codec.response_header_version)
    splices: list[tuple[int, Any]] = []
    if exchange.api_key == ApiKey.FETCH and events.wants_records_apart:
        if events.response_built is not None:
            events.response_built(exchange, message)  # before the message loses its records
        _leave_records_out(message)
        codec.encode_response(message, out, splices)
        splices = [(at, value.records if type(value) is LeftOut else value) for at, value in splices]
    else:
        codec.encode_response(message, out, splices)
        if events.response_built is not None:
            events.response_built(exchange, message)
    return out, splices, finish_frame(out, splices)


def _leave_records_out(message: Any) -> None:
    """Mark the records of a fetch response, so that the encoder leaves them out and returns the positions where they belong.

    Without this, the encoder would copy the records that are in memory.
    """
    for topic in message.responses:
        for partition in topic.partitions:
            if type(partition.records) is bytes:
                partition.records = LeftOut(partition.records)


def without_data(exchange: Exchange, frame: Frame) -> Frame:
    """Replace the topics of an encoded fetch response, and the fields after them, by an empty list of topics (T-4).

    Returns the new frame. The bytes of `frame` are changed in place, so `frame` must not be used afterwards.
    """
    out, version = frame[0], exchange.api_version
    del out[_body_at(exchange) + _fetch_head_bytes(version) :]
    out += _NO_TOPICS_FLEXIBLE if version >= fetch_versions.FIRST_FLEXIBLE else _NO_TOPICS
    return out, [], finish_frame(out, [])


def _fetch_head_bytes(version: int) -> int:
    """Return how many bytes of a fetch response come before its topics: throttle time, error code and session id."""
    if version >= fetch_versions.FIRST_WITH_SESSIONS:
        return _THROTTLE_TIME.size + _ERROR_AND_SESSION.size
    return _THROTTLE_TIME.size if version >= fetch_versions.FIRST_WITH_THROTTLE_TIME else 0


def _body_at(exchange: Exchange) -> int:
    return LENGTH_BYTES + _header_bytes(exchange)


def _header_bytes(exchange: Exchange) -> int:
    return _FLEXIBLE_HEADER_BYTES if exchange.codec.response_header_version else _HEADER_BYTES


def charged_bytes(exchange: Exchange, frame: Frame) -> int:
    """Return the bytes that a consumer is charged for a response: the size of its body plus 4 (Q-12). frame: the encoded response."""
    return LENGTH_BYTES + frame[2] - _header_bytes(exchange)


def complete_fetch(exchange: Exchange, frame: Frame, throttle_ms: int, error_code: int, session_id: int) -> None:
    """Write the values that were unknown during encoding into an encoded fetch response.

    frame: the encoded response, which is changed in place. throttle_ms: the throttle time to report; 0 leaves the encoded one unchanged.
    error_code: the error of the whole response. session_id: the id of the fetch session. A value whose field the version lacks is not written.
    """
    body_at = _body_at(exchange)
    if throttle_ms and exchange.api_version >= fetch_versions.FIRST_WITH_THROTTLE_TIME:
        _THROTTLE_TIME.pack_into(frame[0], body_at, throttle_ms)
    if exchange.api_version >= fetch_versions.FIRST_WITH_SESSIONS:
        _ERROR_AND_SESSION.pack_into(frame[0], body_at + _THROTTLE_TIME.size, error_code, session_id)


def send(exchange: Exchange, frame: Frame, throttle_ms: int, held: bool) -> None:
    """Pass an encoded response (`frame`) to the connection of its request, which sends it.

    held: True if the response was already delayed by `throttle_ms` (releases before 2.0); otherwise the connection is muted for that time.
    """
    out, splices, size = frame
    buffers = tuple(spliced_parts(out, splices)) if splices else (out,)
    events = exchange.node.events
    if events.response_ready is not None:
        events.response_ready(exchange, out, splices, size, throttle_ms, held)
    exchange.peer.respond(buffers, 0 if held else throttle_ms, False, exchange.now_ms)


def send_nothing(exchange: Exchange, close: bool, throttle_ms: int, held: bool) -> None:
    """Complete a Produce request with acks=0 on its connection, without a response.

    close: whether to close the connection. held: True if the request was already delayed by `throttle_ms` (releases before 2.0); otherwise the
    connection is muted for that time.
    """
    events = exchange.node.events
    if events.request_unanswered is not None:
        events.request_unanswered(exchange, throttle_ms, close, held and throttle_ms > 0)
    exchange.peer.respond(None, 0 if held else throttle_ms, close, exchange.now_ms)
