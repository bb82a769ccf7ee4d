"""Decodes the metrics that clients push: names, types, attributes and values in `MetricsData`, a protobuf message of OpenTelemetry."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
_DOUBLE, _INT64 = struct.Struct("<d"), struct.Struct("<q")
_KINDS = {5: "gauge", 7: "sum", 9: "histogram", 10: "exponential histogram", 11: "summary"}
_TEMPORALITY, _DELTA = 2, 1
"""The number of the protobuf field with the temporality of a sum or histogram, and the value that stands for deltas."""
_ATTRIBUTES = {"gauge": 7, "sum": 7, "histogram": 9, "exponential histogram": 1, "summary": 7}
"""Maps a kind of metric to the number of the protobuf field with the attributes of its data points."""


class MetricSeen(NamedTuple):
    """One data point of a metric that a client pushed.

    name: the metric's name. kind: "gauge", "sum", "histogram", "exponential histogram" or "summary". value: the number of a gauge or sum; None for
    other kinds. delta: whether the data point counts from the previous push, not from the client's start; False for gauges. attributes:
    maps the names of the data point's attributes to their values; attributes whose values are not strings are left out.
    """

    name: str
    kind: str
    value: float | int | None
    delta: bool
    attributes: dict[str, str]


def read_metrics(payload: bytes) -> list[MetricSeen]:
    """Return the data points in the payload of a push. Raises ValueError if the payload is not a `MetricsData` message."""
    try:
        return [
            point
            for resource in _messages(memoryview(payload), 1)
            for scope in _messages(resource, 2)
            for metric in _messages(scope, 2)
            for point in _points(metric)
        ]
    except (IndexError, struct.error, UnicodeDecodeError):
        raise ValueError(
            f"the payload of {len(payload)} bytes cannot be decoded; a client must push a `MetricsData` message of OpenTelemetry"
        ) from None


def _points(metric: memoryview) -> Iterator[MetricSeen]:
    name = b"".join(_messages(metric, 1)).decode()
    for number, kind in _KINDS.items():
        for data in _messages(metric, number):
            delta = kind != "gauge" and (_TEMPORALITY, _DELTA) in _fields(data)
            for point in _messages(data, 1):
                yield MetricSeen(name, kind, _value(kind, point), delta, dict(_attributes(point, _ATTRIBUTES[kind])))


def _value(kind: str, point: memoryview) -> float | int | None:
    """Return the number of a gauge or sum data point, from protobuf field 4 (a double) or 6 (an integer); None for other kinds of metric."""
    if kind not in ("gauge", "sum"):
        return None
    for number, value in _fields(point):
        if number in (4, 6) and isinstance(value, memoryview):
            unpacked: float | int = (_DOUBLE if number == 4 else _INT64).unpack(value)[0]
            return unpacked
    return None


def _attributes(point: memoryview, number: int) -> Iterator[tuple[str, str]]:
    for attribute in _messages(point, number):
        for value in _messages(attribute, 2):
            for text in _messages(value, 1):
                yield b"".join(_messages(attribute, 1)).decode(), bytes(text).decode()


def _messages(data: memoryview, number: int) -> Iterator[memoryview]:
    """Yield the bytes of each value of field `number` in the protobuf message `data`. The values must be strings or embedded messages."""
    return (value for at, value in _fields(data) if at == number and isinstance(value, memoryview))


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | int]]:
    """Yield (field number, value) of each field in a protobuf message. Values other than variable-length integers are yielded as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire_type = key & 7
        if wire_type == VARINT:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire_type == BYTES:
            size, at = _varint(data, at)
        elif wire_type in (FIXED64, FIXED32):
            size = 8 if wire_type == FIXED64 else 4
        else:
            raise ValueError(
                f"unknown wire type {wire_type} at byte {at} of a protobuf message; known are 0, 1, 2 and 5"
            )
        if at + size > len(data):
            raise IndexError
        yield key >> 3, data[at : at + size]
        at += size


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """Return (variable-length integer at index `at`, index after it). Raises IndexError if `data` ends within the integer."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
