"""A response as it goes out: encoded once, with its records as ranges, completed in place, and handed to the connection."""

from __future__ import annotations

from struct import Struct
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests import fetch_versions
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.frame import LENGTH_BYTES, LeftOut, finish_frame, spliced_parts
from kafkaproto.header import start_response

Frame = tuple[bytearray, list[tuple[int, Any]], int]
"""(bytes with the length in front, records to splice in as (position, range), length of the frame without its own 4 bytes)"""

_THROTTLE_TIME = Struct(">i")
_ERROR_AND_SESSION = Struct(">hi")
_FLEXIBLE_HEADER_BYTES, _HEADER_BYTES = 5, 4
_NO_TOPICS = bytes(4)
_NO_TOPICS_FLEXIBLE = b"\x01\x00"
"""A compact list of no topics, and no tagged fields."""


def encode(exchange: Exchange, message: Any) -> Frame:
    """Return the frame of a response message. Raises EncodeError."""
    codec = exchange.codec
    out = start_response(exchange.correlation_id, codec.response_header_version)
    splices: list[tuple[int, Any]] = []
    if exchange.api_key == ApiKey.FETCH and exchange.node.events.wants_records_apart:
        _leave_records_out(message)
        codec.encode_response(message, out, splices)
        splices = [(at, value.records if type(value) is LeftOut else value) for at, value in splices]
    else:
        codec.encode_response(message, out, splices)
    return out, splices, finish_frame(out, splices)


def _leave_records_out(message: Any) -> None:
    """Let the encoder report the place of all records of a fetch response, also of those that it would write itself."""
    for topic in message.responses:
        for partition in topic.partitions:
            if type(partition.records) is bytes:
                partition.records = LeftOut(partition.records)


def without_data(exchange: Exchange, frame: Frame) -> Frame:
    """Return an encoded fetch response without its topics and what follows them: its head, and an empty list of topics (T-4)."""
    out, version = frame[0], exchange.api_version
    del out[_body_at(exchange) + _fetch_head_bytes(version) :]
    out += _NO_TOPICS_FLEXIBLE if version >= fetch_versions.FIRST_FLEXIBLE else _NO_TOPICS
    return out, [], finish_frame(out, [])


def _fetch_head_bytes(version: int) -> int:
    """Return how many bytes of a fetch response come before its topics: throttle time, then error code and session id."""
    if version >= fetch_versions.FIRST_WITH_SESSIONS:
        return _THROTTLE_TIME.size + _ERROR_AND_SESSION.size
    return _THROTTLE_TIME.size if version >= fetch_versions.FIRST_WITH_THROTTLE_TIME else 0


def _body_at(exchange: Exchange) -> int:
    return LENGTH_BYTES + _header_bytes(exchange)


def _header_bytes(exchange: Exchange) -> int:
    return _FLEXIBLE_HEADER_BYTES if exchange.codec.response_header_version else _HEADER_BYTES


def charged_bytes(exchange: Exchange, frame: Frame) -> int:
    """Return what a consumer pays for a response: its body and 4 bytes (Q-12)."""
    return LENGTH_BYTES + frame[2] - _header_bytes(exchange)


def complete_fetch(exchange: Exchange, frame: Frame, throttle_ms: int, error_code: int, session_id: int) -> None:
    """Write what is known last into an encoded fetch response: all of it lies at its beginning, and has a fixed width."""
    body_at = _body_at(exchange)
    if throttle_ms and exchange.api_version >= fetch_versions.FIRST_WITH_THROTTLE_TIME:
        _THROTTLE_TIME.pack_into(frame[0], body_at, throttle_ms)
    if exchange.api_version >= fetch_versions.FIRST_WITH_SESSIONS:
        _ERROR_AND_SESSION.pack_into(frame[0], body_at + _THROTTLE_TIME.size, error_code, session_id)


def send(exchange: Exchange, frame: Frame, throttle_ms: int, held: bool) -> None:
    """Hand a response to its connection.

    held: the response was kept back for `throttle_ms`, as before release 2.0; else the connection is muted for that time.
    """
    out, splices, size = frame
    buffers = tuple(spliced_parts(out, splices)) if splices else (out,)
    events = exchange.node.events
    if events.response_ready is not None:
        events.response_ready(exchange, out, splices, size, throttle_ms, held)
    exchange.peer.answer(buffers, 0 if held else throttle_ms, False, exchange.now_ms)


def send_nothing(exchange: Exchange, close: bool, throttle_ms: int, held: bool) -> None:
    """Tell the connection of a produce with acks=0 that it is done."""
    events = exchange.node.events
    if events.request_unanswered is not None:
        events.request_unanswered(exchange, throttle_ms, close, held and throttle_ms > 0)
    exchange.peer.answer(None, 0 if held else throttle_ms, close, exchange.now_ms)
