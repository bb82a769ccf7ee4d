"""The reader of pushed metrics decodes each kind of metric of OpenTelemetry, and rejects other data."""

from __future__ import annotations

import struct

import pytest

from kafkaproto.broker.observe.otlp import MetricSeen, read_metrics


def field(number: int, value: bytes | int) -> bytes:
    """Encode a field of a protobuf message whose value is a number, or bytes."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*encoded, value])


def number(at: int, value: float) -> bytes:
    return varint(at << 3 | 1) + struct.pack("<d" if at == 4 else "<q", value)


def payload(*metrics: bytes) -> bytes:
    """Return a `MetricsData` message whose first resource has attributes and whose scope has a name."""
    scope = field(1, field(1, b"scope")) + b"".join(field(2, metric) for metric in metrics)
    return field(1, field(1, field(1, b"ignored")) + field(2, scope))


def attribute(name: str, text: str) -> bytes:
    return field(1, name.encode()) + field(2, field(1, text.encode()))


@pytest.mark.rule("AD-37")
def test_otlp_payload_is_decoded_to_gauge_and_sum_values_with_their_attributes() -> None:
    gauge = field(5, field(1, number(4, 0.5) + field(7, attribute("topic", "t" * 200))))
    delta = field(7, field(1, number(6, -3)) + field(2, 1) + field(3, 1))
    total = field(7, field(1, number(6, 2**40)) + field(1, number(4, 1.0)) + field(2, 2))
    data = payload(*(field(1, name) + metric for name, metric in ((b"g", gauge), (b"d", delta), (b"c", total))))
    assert read_metrics(data) == [
        MetricSeen("g", "gauge", 0.5, False, {"topic": "t" * 200}),
        MetricSeen("d", "sum", -3, True, {}),
        MetricSeen("c", "sum", 2**40, False, {}),
        MetricSeen("c", "sum", 1.0, False, {}),
    ]


@pytest.mark.rule("AD-37")
def test_otlp_histograms_are_decoded_with_attributes_but_without_a_value() -> None:
    histogram = field(9, field(1, number(4, 3) + field(9, attribute("a", "b"))) + field(2, 1))
    assert read_metrics(payload(field(1, b"h") + histogram)) == [MetricSeen("h", "histogram", None, True, {"a": "b"})]


@pytest.mark.rule("AD-37")
def test_otlp_data_that_is_not_a_protobuf_message_is_rejected() -> None:
    whole = payload(field(1, b"g") + field(5, field(1, number(4, 0.5))))
    for damaged in (whole[:-1], b"\xff", b"\x0b", b"\x0a\x05abc"):
        with pytest.raises(ValueError, match=r"MetricsData|wire type"):
            read_metrics(damaged)
    assert read_metrics(b"") == []
