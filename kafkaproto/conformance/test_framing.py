"""Tests of frames, headers and invalid requests: the broker closes the connection without a response, and other connections keep working."""

from __future__ import annotations

import pytest

from kafkaproto.client import request_frame
from kafkaproto.conformance.client import Connection
from kafkaproto.conformance.internal_apis import INTERNAL_APIS
from kafkaproto.conformance.scene import list_offsets, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, fetch, flat, metadata, produce, produced
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.releases import OLDEST_PRODUCE

API_VERSIONS, METADATA, PRODUCE = 18, 3, 0
FIRST_RESPONSE_WITH_RANGE = 3
"""The version of ApiVersions that KIP-511 introduced.

A client may send ApiVersions in a version that is too new for the broker. If the broker supports version 3 or later, its response then contains the
range of ApiVersions versions that the broker supports.
"""


def header(key: int, version: int, flexible: bool = False, client_id: bytes = b"\0\1c") -> bytes:
    return (
        key.to_bytes(2, "big", signed=True)
        + version.to_bytes(2, "big", signed=True)
        + b"\0\0\0\7"
        + client_id
        + b"\0" * flexible
    )


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def send_raw(subject: Subject, data: bytes) -> Connection:
    connection = subject.connect()
    connection.send_bytes(data)
    return connection


BAD = {
    "frame size -1": (-1).to_bytes(4, "big", signed=True),
    "frame size above the limit": (104_857_601).to_bytes(4, "big"),
    "empty frame": framed(b""),
    "key -1": framed(header(-1, 0)),
    "unknown key": framed(header(999, 0)),
    "version -1": framed(header(PRODUCE, -1)),
    "version 99": framed(header(PRODUCE, 99)),
    "header of four bytes": framed(b"\0\3\0\1"),
    "header without body": framed(header(METADATA, 1)),
    "client-id longer than the frame": framed(header(METADATA, 1, client_id=b"\x7f\xff")),
    "array of 2^31-1": framed(header(METADATA, 1) + b"\x7f\xff\xff\xff" + b"\0" * 8),
    "null where none may be": framed(header(METADATA, 4) + b"\0\0\0\1\xff\xff\0"),
    "compact array beyond the frame": framed(header(METADATA, 9, flexible=True) + b"\xff\xff\xff\xff\x07\0\0\0\0"),
    "varint without end": framed(header(METADATA, 9, flexible=True) + b"\xff" * 12),
    "records beyond the frame": framed(
        header(PRODUCE, 3) + b"\xff\xff\0\1\0\0\0\1" + b"\0\0\0\1\0\1t\0\0\0\1\0\0\0\0\x7f\xff\xff\xff"
    ),
}


@pytest.mark.rule("W-1", "W-3", "W-5", "W-6", "W-8")
def test_invalid_frame_closes_only_the_connection_on_which_it_arrives(subject: Subject) -> None:
    """Invalid sizes, API keys, versions, headers and bodies close only their own connection, without a response.

    Corresponds to Kafka's tests `EdgeCaseRequestTest`, `RequestContextTest`, and to `tooBigRequestIsRejected`, `testDisabledRequestIsRejected`.
    """
    other = subject.connect()
    connections = {kind: send_raw(subject, data) for kind, data in BAD.items()}
    still_open = [kind for kind, connection in connections.items() if not subject.closed(connection, 3000)]
    assert still_open == []
    assert len(subject.ask(other, MetadataRequest(None), 1).brokers) == len(subject.bootstrap)


@pytest.mark.rule("W-3")
def test_request_of_any_api_that_only_controllers_serve_closes_its_connection(subject: Subject) -> None:
    """A broker does not serve APIs that only controllers or clusters with ZooKeeper use: it neither decodes such a request nor responds.

    The test sends each of these APIs in all versions that Kafka 3.9.1 or 4.2.0 has, and in an invalid version below and above them. ApiVersions lists
    none of these APIs.
    """
    assert not subject.offered().keys() & {api.key for api in INTERNAL_APIS}
    connections = {
        (api.name, version): send_raw(subject, framed(api.frame(version)))
        for api in INTERNAL_APIS
        for version in range(-1, len(api.requests) + 1)
    }
    still_open = [request for request, connection in connections.items() if not subject.closed(connection, 3000)]
    assert still_open == []


@pytest.mark.rule("W-3")
@pytest.mark.releases(first="4.0")
def test_produce_below_v3_closes_the_connection_although_api_versions_lists_v0(subject: Subject) -> None:
    """Kafka 4 lists Produce from version 0 on for old clients that would fail without it (KAFKA-18659), but handles only version 3 and later."""
    topic = new_topic(subject)
    assert subject.offered()[PRODUCE][0] == 0
    connections = {
        (version, acks): send_raw(subject, request_frame(produce(topic.name, batch(b"v"), acks=acks), version))
        for version in range(OLDEST_PRODUCE)
        for acks in (-1, 0, 1)
    }
    still_open = [request for request, connection in connections.items() if not subject.closed(connection, 3000)]
    assert still_open == [] and list_offsets(topic, -1).offset == 0


@pytest.mark.rule("W-3")
def test_api_versions_request_of_an_unknown_version_is_answered_in_version_0(subject: Subject) -> None:
    subject.version(API_VERSIONS, FIRST_RESPONSE_WITH_RANGE, FIRST_RESPONSE_WITH_RANGE)
    _, highest = subject.offered()[API_VERSIONS]
    for version in (5, 99, 32767):
        connection = send_raw(subject, framed(header(API_VERSIONS, version, flexible=True) + b"\x02x\x02y\0"))
        frame = connection.take(5)
        while frame is None:
            subject.pass_ms(20)
            frame = connection.take(5)
        assert frame[1].hex() == "00000007" + "0023" + "00000001" + "0012" + "0000" + f"{highest:04x}"
        subject.ask(connection, ApiVersionsRequest("name", "1"), 3)  # the connection still works


@pytest.mark.rule("W-4")
def test_api_versions_accepts_only_valid_client_software_names(subject: Subject) -> None:
    connection = subject.connect()
    for name, expected in [
        ("a", 0),
        ("a.b-C9", 0),
        ("", 42),
        ("-a", 42),
        ("a-", 42),
        ("a b", 42),
        ("é", 42),
        (".", 42),
    ]:
        for request in (ApiVersionsRequest(name, "1"), ApiVersionsRequest("a", name)):
            for version in (3, 4):
                response = subject.ask(connection, request, version)
                assert (response.error_code, bool(response.api_keys)) == (expected, not expected), name
    assert subject.ask(connection, ApiVersionsRequest(), 2).error_code == 0  # version 2 has no software names


@pytest.mark.rule("W-1", "W-2", "W-6", "W-16")
def test_broker_answers_requests_with_null_client_ids_unknown_tags_or_split_frames(subject: Subject) -> None:
    """Null and empty client ids, frames sent byte by byte, unknown tags, and bytes after the body are accepted."""
    for client_id in (None, "", "x" * 300):
        assert len(subject.ask(subject.connect(0, client_id), metadata(), 9).brokers) == len(subject.bootstrap)
    slow = subject.connect()
    for byte in slow.frame(metadata(), 9):
        slow.send_bytes(bytes([byte]))
    assert len(subject.answer(slow).message.brokers) == len(subject.bootstrap)
    tagged = MetadataRequest([], unknown_tagged_fields=[(77, b"what?"), (5000, b"")])
    assert len(subject.ask(subject.connect(), tagged, 12).brokers) == len(subject.bootstrap)
    trailing = subject.connect()
    data = trailing.frame(metadata(), 1)
    trailing.send_bytes(framed(data[4:] + b"behind the body"))
    trailing.send_bytes(trailing.frame(metadata(), 9))
    assert [subject.answer(trailing).correlation_id for _ in range(2)] == [1, 2]
    in_header = subject.connect()
    in_header.frame(metadata(), 9)
    payload = header(METADATA, 9)[:4] + b"\0\0\0\1" + b"\0\1c" + b"\x01\x4d\x03abc" + b"\x01\0\0\0\0"
    in_header.send_bytes(framed(payload))
    assert len(subject.answer(in_header).message.brokers) == len(subject.bootstrap)


@pytest.mark.rule("W-9", "X-5")
def test_pipelined_requests_are_answered_in_order_even_behind_a_parked_fetch(subject: Subject) -> None:
    topic = new_topic(subject)
    connection = topic.connect()
    now = subject.now_ms()
    frames = [connection.frame(metadata(), 1, now) for _ in range(4)]
    frames.append(connection.frame(fetch((topic.name, 0, 0), max_wait_ms=400), 11, now))
    frames += [connection.frame(metadata(), 9, now) for _ in range(4)]
    frames.append(connection.frame(produce(topic.name, batch(b"v"), acks=1), 9, now))
    connection.send_bytes(b"".join(frames))
    responses = [subject.answer(connection) for _ in frames]
    assert [response.correlation_id for response in responses] == list(range(1, 11))
    subject.assert_took(responses[4], 400)
    assert all(response.elapsed_ms >= 399 for response in responses[4:])
    assert flat(responses[4].message)[0][1].high_watermark == 0  # later requests are not handled before it
    assert produced(responses[9].message).base_offset == 0


@pytest.mark.rule("W-9", "W-10")
def test_requests_received_completely_before_a_disconnect_are_executed(subject: Subject) -> None:
    """A client sends 10 complete Produce requests and the beginning of an eleventh, then disconnects. The broker appends the 10 records.

    Corresponds to Kafka's test `SocketServerTest.testGracefulClose`.
    """
    topic = new_topic(subject)
    leaving = topic.connect()
    request = produce(topic.name, batch(b"v"), acks=0)
    leaving.send_bytes(b"".join(leaving.frame(request, 9) for _ in range(10)) + leaving.frame(request, 9)[:30])
    leaving.close()
    wait_until(subject, lambda: list_offsets(topic, -1).offset == 10, f"the log of {topic.name}-0 has all ten records")


@pytest.mark.rule("W-2")
@pytest.mark.parametrize(("version", "flexible"), [(0, False), (2, False), (3, True), (4, True)])
def test_api_versions_response_header_has_no_tagged_fields_in_any_version(
    subject: Subject, version: int, flexible: bool
) -> None:
    connection = subject.connect()
    subject.send(connection, ApiVersionsRequest("a", "1") if flexible else ApiVersionsRequest(), version)
    data = subject.answer(connection).data
    assert data[:6] == b"\0\0\0\1\0\0"  # the correlation id, followed by the error code
    assert connection.sent == {}
