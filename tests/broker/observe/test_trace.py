"""Traces of a broker: requests and responses without record values, events, and nothing when recording is disabled."""

from __future__ import annotations

import os
import struct
from dataclasses import replace
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.log.files import FileRange, MemoryBudget, open_temporary_file
from kafkaproto.broker.network.connection import CLIENT_ENDED, SOCKET_GONE, THIS_SIDE
from kafkaproto.broker.observe.packing import heads
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.requests import throttling
from kafkaproto.broker.runtime.clock import monotonic_ns
from kafkaproto.flat import uvarint
from kafkaproto.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest, ScramCredentialUpsertion
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkaproto.records.batch import HEADER_BYTES, read_header
from kafkaproto.records.control import build_end_txn_marker
from kafkaproto.trace.cutting import batch_heads
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import UNANSWERED, Event, Exchange, State
from tests.support.recording import Bench, decoded, recorder_into
from tests.support.wire import batch, fetch, limit, metadata, produce, produce_of_bytes


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("version", [3, 7, 9, 11])
@pytest.mark.parametrize("count", [1, 2])
def test_trace_of_a_produce_contains_batch_headers_without_records(bench: Bench, version: int, count: int) -> None:
    client = bench.cluster.connect(client_id="p")
    batches = [batch(b"x" * 5000, b"y"), batch(b"z" * 100)][:count]
    partitions = [PartitionProduceData(i, data) for i, data in enumerate(batches)]
    request = ProduceRequest(None, 1, 1000, [TopicProduceData("t", partition_data=partitions)])
    size = len(client.frame(request, version)) - 4
    client_response = client.ask(request, version)
    [exchange] = bench.exchanges
    header, recorded_request, response = decoded(exchange)
    assert (header.client_id, header.api_version, exchange.request_bytes) == ("p", version, size)
    assert response == client_response and exchange.response == exchange.response[:]
    assert exchange.request_records == tuple(map(len, batches)) and exchange.response_records == ()
    recorded_batches = [bytes(p.records) for p in recorded_request.topic_data[0].partition_data]
    assert recorded_batches == [data[:HEADER_BYTES] for data in batches]
    assert [read_header(data).record_count for data in recorded_batches] == [2, 1][:count]
    assert len(exchange.request) < size - 5000
    assert (exchange.broker, exchange.connection) == (0, client.connection.connection_id)
    assert 0 < exchange.received_ns <= exchange.ready_ns


@pytest.mark.parametrize("version", [4, 11, 12])
@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_trace_of_a_fetch_contains_headers_of_batches_in_memory_and_in_log_files(
    version: int, memory_bytes: int
) -> None:
    bench = Bench(memory_bytes=memory_bytes)
    client = bench.cluster.connect()
    stored = [batch(b"x" * size) for size in (10, 30_000, 70_000, 9000, 20)]
    for data in stored:
        client.ask(produce("t", data, partition=1), 9)
    bench.entries.clear()
    client_response = client.ask(fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 5), version=version), version)
    [exchange] = bench.exchanges
    _, _, response = decoded(exchange)
    assert exchange.response_bytes == client.answers[-1].size_bytes
    for topic, recorded_topic in zip(client_response.responses, response.responses, strict=True):
        for partition, recorded_partition in zip(topic.partitions, recorded_topic.partitions, strict=True):
            whole = partition.records or b""
            assert recorded_partition.records is not None and bytes(recorded_partition.records) == batch_heads(whole)
            recorded_partition.records = partition.records
    assert response == client_response
    assert exchange.response_records == tuple(
        len(p.records or b"") for t in client_response.responses for p in t.partitions
    )
    heads = [batch_heads(p.records or b"") for t in client_response.responses for p in t.partitions]
    assert heads[0] == heads[2] == b""
    # Without memory, small batches are in separate segments, and a read ends with a segment.
    assert len(heads[1]) == HEADER_BYTES * (len(stored) if memory_bytes else 1)


def test_trace_of_a_fetch_contains_no_header_of_a_truncated_last_batch(bench: Bench) -> None:
    client = bench.cluster.connect()
    for _ in range(3):
        client.ask(produce("t", batch(b"x" * 1000)), 9)
    bench.entries.clear()
    client_response = client.ask(fetch(("t", 0, 0), partition_max=1500), 11)
    _, _, response = decoded(bench.exchanges[0])
    assert bench.exchanges[0].response_records == (1500,) == (len(client_response.responses[0].partitions[0].records),)
    assert len(response.responses[0].partitions[0].records) == HEADER_BYTES


@pytest.mark.parametrize("size", [100, 20_000])
def test_trace_of_a_fetch_contains_only_bytes_that_a_truncated_log_file_still_has(size: int) -> None:
    file = open_temporary_file(MemoryBudget(0))
    stored = batch(b"x" * size)
    os.pwrite(file.fileno(), 2 * stored, 0)
    whole = FileRange(file, 0, 2 * len(stored))
    assert heads(whole) == batch_heads(2 * stored)
    for remaining_bytes in (1, HEADER_BYTES):
        os.ftruncate(file.fileno(), len(stored) + remaining_bytes)
        assert heads(whole)[:HEADER_BYTES] == stored[:HEADER_BYTES] and len(heads(whole)) <= 2 * HEADER_BYTES


@pytest.mark.parametrize("size", [100, 20_000])
def test_trace_of_a_fetch_served_from_a_log_file_contains_complete_control_batches(size: int) -> None:
    """The first header, and a header after a large batch, are read without the bytes after them."""
    marker = build_end_txn_marker(True, producer_id=5, producer_epoch=0, coordinator_epoch=0, timestamp=1)
    stored = marker + batch(b"x" * size) + marker + marker
    file = open_temporary_file(MemoryBudget(0))
    os.pwrite(file.fileno(), stored, 0)
    recorded = heads(FileRange(file, 0, len(stored)))
    assert recorded == marker + stored[len(marker) :][:HEADER_BYTES] + marker + marker == heads(stored)


def test_trace_contains_all_bytes_of_requests_that_carry_no_records(bench: Bench) -> None:
    client = bench.cluster.connect()
    request = metadata(["t"])
    frame = client.frame(request, 9, 1)
    client.ask(request, 9)
    [exchange] = bench.exchanges
    assert exchange.request == frame[4:] and len(exchange.response) == exchange.response_bytes


def test_trace_shows_the_wait_time_of_a_fetch_and_no_response_to_an_acks_0_produce(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(produce("t", batch(b"x"), acks=0), 9)
    client.send(fetch(("t", 1, 0), max_wait_ms=500, min_bytes=1), 11)
    bench.cluster.advance(500)
    first, second = bench.exchanges
    assert (first.answered, first.response, first.response_bytes) == (False, b"", 0)
    assert second.answered and second.clock_ms == first.clock_ms + 500 and second.handled_ms == first.clock_ms
    assert 0 < second.received_ns <= second.handled_ns <= second.ready_ns <= second.sent_ns
    client.send(produce("t", batch(b"x"), partition=77, acks=0), 9)
    assert bench.exchanges[2].closes and client.closed_ms is not None


def test_trace_shows_that_a_request_behind_a_parked_fetch_is_handled_after_the_fetch(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(fetch(("t", 1, 0), max_wait_ms=500, min_bytes=1), 11)
    client.send(metadata(), 9)
    bench.cluster.advance(500)
    parked, behind = bench.exchanges
    assert behind.received_ns <= parked.ready_ns <= parked.sent_ns <= behind.handled_ns <= behind.ready_ns
    # The entry between the two is the parking of the fetch.
    assert (parked.handled_ms + 500, parked.seq) == (behind.handled_ms, behind.seq - 2)


def test_trace_entry_of_a_response_that_was_not_sent_has_no_send_time(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.write = lambda buffers: False  # type: ignore[method-assign]  # the kernel accepts no bytes
    client.send(metadata(), 9)
    assert bench.exchanges == []
    client.connection.socket_closed()
    [exchange] = bench.exchanges
    assert (exchange.answered, exchange.sent_ns) == (True, 0) and exchange.ready_ns and bench.events("closed")


def assert_given_up(bench: Bench, connection_id: int) -> Exchange:
    """Assert that there is one exchange, without the response that it should have, and that no sequence number is missing."""
    [exchange] = bench.exchanges
    assert (exchange.answered, exchange.response, exchange.response_bytes, exchange.sent_ns) == (False, b"", 0, 0)
    assert exchange.connection == connection_id and exchange.received_ns <= exchange.handled_ns <= exchange.ready_ns
    [event] = bench.events("problem")
    assert (event["of"], event["why"], event["connection"]) == (exchange.seq, UNANSWERED, connection_id)
    seqs = [e.facts["seq"] if isinstance(e, Event) else e.seq for e in bench.entries]
    assert sorted(seqs) == list(range(1, max(seqs) + 1))
    return exchange


def test_trace_marks_a_parked_request_of_a_closed_connection_as_unanswered(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(fetch(("t", 1, 0), max_wait_ms=500, min_bytes=1), 11)
    bench.cluster.advance(200)
    client.connection.socket_closed()
    exchange = assert_given_up(bench, client.connection.connection_id)
    assert (exchange.clock_ms - exchange.handled_ms, exchange.wait_ns > 0) == (200, True)


def test_request_whose_handler_closes_the_connection_is_recorded_once_in_the_trace(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = bench.cluster.state.nodes[0]
    handler = node.apis[ApiKey.FETCH].handler

    def closing(context: Any, request: Any) -> Any:
        context.peer.close()
        return handler(context, request)

    monkeypatch.setattr(node, "apis", {ApiKey.FETCH: replace(node.apis[ApiKey.FETCH], handler=closing)})
    client = bench.cluster.connect()
    client.send(fetch(("t", 1, 0), max_wait_ms=500, min_bytes=1), 11)
    bench.cluster.advance(600)
    assert_given_up(bench, client.connection.connection_id)


def test_trace_shows_no_response_if_the_connection_closes_during_a_delayed_response() -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, producer_byte_rate=1000.0)
    client = bench.cluster.connect()
    client.send(produce_of_bytes(client, "t", 100_000, version=5), 5)
    client.connection.socket_closed()
    assert_given_up(bench, client.connection.connection_id)


def test_disconnect_during_a_delayed_produce_adds_no_problem_event_to_the_trace() -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, producer_byte_rate=1000.0)
    client = bench.cluster.connect()
    client.send(produce_of_bytes(client, "t", 100_000, version=5, acks=0), 5)
    client.connection.socket_closed()
    [exchange] = bench.exchanges
    assert not exchange.answered and bench.events("throttle") and bench.events("closed") and not bench.events("problem")


@pytest.mark.parametrize("release", ["1.1", "4.0"])
def test_trace_marks_a_request_whose_response_cannot_be_encoded_as_unanswered(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def encode(*_: Any) -> Any:
        raise OverflowError

    bench = Bench(release_name=release)
    limit(bench.cluster, producer_byte_rate=1000.0)
    client = bench.cluster.connect()
    monkeypatch.setattr(throttling, "encode", encode)
    client.send(produce_of_bytes(client, "t", 100_000, version=5), 5)
    bench.cluster.advance(200_000)
    assert client.connection.closed
    assert_given_up(bench, client.connection.connection_id)


REFUSED = {
    "an unknown API": (
        struct.pack(">hhi", 999, 0, 7) + b"secret",
        b"",
        "this broker does not serve version 0 of API key 999",
    ),
    "an unknown version": (
        struct.pack(">hhih1sb", 0, 99, 7, 1, b"x", 0) + b"secret",
        b"x\0",
        "does not serve version 99 of API key 0",
    ),
    "too few items": (
        struct.pack(">hhih1si", 3, 1, 7, 1, b"x", 1 << 20) + b"secret",
        b"x",
        "Metadata request v1 cannot",
    ),
    "no whole header": (
        struct.pack(">hhih", 18, 99, 7, 20) + b"secret",
        b"",
        "the header of ApiVersions v99 cannot be read",
    ),
    "half a start": (
        b"\0\0\0",
        b"",
        "a frame of 3 bytes is too short for a request header; at least 4 bytes are needed",
    ),
}
"""Name of a case to (request frame, recorded bytes after the first 8 bytes and the client id length, reason of the refusal)."""


@pytest.mark.parametrize("case", REFUSED)
def test_trace_of_a_refused_request_contains_the_reason_but_not_the_request_body(bench: Bench, case: str) -> None:
    frame, client_id, why = REFUSED[case]
    client = bench.cluster.connect()
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    [exchange], [problem], [closed] = bench.exchanges, bench.events("problem"), bench.events("closed")
    assert (exchange.answered, exchange.closes, exchange.response, exchange.sent_ns) == (False, True, b"", 0)
    assert (exchange.request_bytes, exchange.clock_ms) == (len(frame), bench.cluster.now_ms)
    assert (
        exchange.request == frame[: 8 + (2 + len(client_id) if client_id else 0)] and b"secret" not in exchange.request
    )
    assert (problem["of"], problem["why"]) == (exchange.seq, closed["why"]) and why in closed["why"]
    assert {problem["connection"], closed["connection"], exchange.connection} == {client.connection.connection_id}
    seqs = [exchange.seq, problem["seq"], closed["seq"]]
    assert (
        seqs == list(range(seqs[0], seqs[0] + 3))
        and 0 < exchange.received_ns <= exchange.handled_ns <= exchange.ready_ns
    )


def test_trace_of_a_produce_in_an_unsupported_version_contains_no_record_values() -> None:
    bench = Bench(release_name="1.1")
    client = bench.cluster.connect()
    data = batch(b"secret" * 100)
    client.send(produce("t", data), 9)
    [exchange] = bench.exchanges
    assert exchange.closes and exchange.request_records == (len(data),) and b"secret" not in exchange.request
    assert bytes(decoded(exchange)[1].topic_data[0].partition_data[0].records) == data[:HEADER_BYTES]


def test_trace_of_a_sasl_token_contains_no_secret(bench: Bench) -> None:
    client = bench.cluster.connect()
    assert client.ask(SaslAuthenticateRequest(b"\0user\0secret"), 2).error_code
    [exchange] = bench.exchanges
    assert exchange.answered and b"secret" not in exchange.request


def test_trace_of_scram_credentials_contains_no_salted_password(bench: Bench) -> None:
    credential = ScramCredentialUpsertion("u", 1, 4096, b"salt", b"secret")
    request = AlterUserScramCredentialsRequest([], [credential])
    assert bench.cluster.connect().ask(request, 0).results[0].error_code == 0
    [exchange] = bench.exchanges
    assert exchange.answered and b"secret" not in exchange.request
    assert bench.cluster.state.controller.image.scram.keys() == {("u", 1)}


@pytest.mark.parametrize(("version", "whole"), [(4, True), (9, False)])
def test_trace_of_an_unsupported_api_versions_request_contains_its_response(version: int, whole: bool) -> None:
    """KIP-511. Of a request in an unknown version only the header is recorded."""
    bench = Bench(release_name="2.1")
    client = bench.cluster.connect(client_id="x")
    frame = struct.pack(">hhih1sb", 18, version, 7, 1, b"x", 0) + bytes((2, 97, 2, 49, 0))
    client.expect(7, ApiKey.API_VERSIONS, 0)
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    [exchange] = bench.exchanges
    assert exchange.answered and not exchange.closes and exchange.response_bytes == client.received_bytes - 4
    decoded_exchange = Decoded(exchange)
    assert list(decoded_exchange.errors()) == [35] and bool(decoded_exchange.problem) is not whole
    assert exchange.request == frame[: None if whole else 12]
    assert (decoded_exchange.client, decoded_exchange.request and decoded_exchange.request.client_software_name) == (
        "x",
        "a" if whole else None,
    )
    assert not bench.events("problem") and not bench.events("closed")


def test_trace_contains_the_reason_why_each_connection_was_closed() -> None:
    bench = Bench(config={"connections.max.idle.ms": "1000"})
    clients = [bench.cluster.connect() for _ in range(5)]
    clients[0].finish()
    clients[1].connection.socket_closed()
    clients[2].send(produce("t", batch(b"x"), partition=77, acks=0), 9)
    clients[3].send_bytes(b"\xff\xff\xff\xff")
    bench.cluster.advance(1000)
    bench.cluster.connect()
    bench.cluster.state.stop_broker(0)
    reasons = [event["why"] for event in bench.events("closed")]
    assert reasons[:3] == [CLIENT_ENDED, SOCKET_GONE, "a produce with acks=0 failed"]
    assert "a frame of -1 bytes was announced" in reasons[3] and "connections.max.idle.ms=1000" in reasons[4]
    assert reasons[5:] == ["the broker stops"]


def test_trace_contains_topic_creation_and_deletion_and_log_truncation(bench: Bench) -> None:
    bench.cluster.topic("made", 2, retention_ms="1000")
    client = bench.cluster.connect()
    client.ask(produce("made", batch(b"x", b"y")), 9)
    log = bench.cluster.state.nodes[0].replicas.partitions[("made", 0)].log
    log.raise_log_start(1)
    log.truncate_to(1)
    bench.cluster.state.controller.delete_topic("made")
    created, deleted = bench.events("topic")
    assert (created["state"], deleted["state"], created["topic"], created["configs"]) == (
        "created",
        "deleted",
        "made",
        {"retention.ms": "1000"},
    )
    assert created["topic_id"] == deleted["topic_id"] and created["partitions"][1] == {
        "leader": 0,
        "leader_epoch": 0,
        "isr": [0],
    }
    keys = ("topic", "partition", "what", "before", "after")
    assert [tuple(e[key] for key in keys) for e in bench.events("log")] == [
        ("made", 0, "start", 0, 1),
        ("made", 0, "end", 2, 0),
    ]


def test_trace_event_of_a_throttle_names_the_client_and_the_quota(bench: Bench) -> None:
    limit(bench.cluster, producer_byte_rate=10_000.0)
    client = bench.cluster.connect()
    client.ask(produce_of_bytes(client, "t", 105_000), 9)
    [exchange] = bench.exchanges
    [why] = bench.events("throttle")
    assert exchange.throttle_ms == why["throttle_ms"] == 500
    assert (why["of"], why["quota"], why["bound"], why["value"]) == (exchange.seq, "Produce", 10_000.0, 105_000)
    assert why["entity"] == "client-id 'test'" and why["window_ms"] == 10_000
    assert [event["value"] for event in bench.events("quota")] == [10_000]
    bench.cluster.state.forced_throttles.add(ForcedThrottle(7))
    bench.cluster.connect(client_id="other").ask(metadata(), 9)
    assert bench.events("throttle")[-1]["rule_id"] > 0


def test_trace_of_a_throttled_fetch_contains_the_empty_response_sent(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(produce("t", batch(b"x" * 5000)), 9)
    bench.cluster.state.forced_throttles.add(ForcedThrottle(7, api="Fetch"))
    bench.entries.clear()
    client.ask(fetch(("t", 0, 0)), 11)
    [exchange] = bench.exchanges
    _, _, response = decoded(exchange)
    assert (response.throttle_time_ms, response.responses, exchange.throttle_ms) == (7, [], 7)


def test_trace_marks_a_response_delayed_by_a_throttle() -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, producer_byte_rate=10_000.0)
    client = bench.cluster.connect()
    client.send(produce_of_bytes(client, "t", 105_000, version=5), 5)
    bench.cluster.advance(500)
    [exchange] = bench.exchanges
    assert exchange.held and exchange.throttle_ms == 500


def test_trace_has_events_for_connection_open_and_connection_close_and_broker_stop(bench: Bench) -> None:
    client = bench.cluster.connect(address="10.1.2.3")
    client.connection.close()
    [opened], [closed] = bench.events("opened"), bench.events("closed")
    assert (opened["peer"], opened["listener"]) == ("10.1.2.3", "PLAINTEXT")
    assert opened["connection"] == closed["connection"] and opened["seq"] < closed["seq"]
    assert closed["why"] == THIS_SIDE
    bench.cluster.state.stop_broker(0)
    assert [fact["state"] for fact in bench.events("broker")] == ["stopped"]


def test_requests_and_events_in_a_trace_share_consecutive_sequence_numbers(bench: Bench) -> None:
    client = bench.cluster.connect()
    for _ in range(5):
        client.ask(metadata(), 9)
    sequence_numbers = sorted(e.seq if isinstance(e, Exchange) else e.facts["seq"] for e in bench.entries)
    assert sequence_numbers == list(range(1, len(sequence_numbers) + 1))


@pytest.mark.parametrize(("version", "behind"), [(7, 4), (9, 2), (11, 2)])
def test_trace_of_a_produce_omits_record_bytes_even_if_they_look_like_a_length_field(
    bench: Bench, version: int, behind: int
) -> None:
    """The batch starts with bytes that look like the length of its field, followed by as many bytes as after the real length."""
    records = bytearray(batch(b"x" * 5000))
    looks = struct.pack(">i", len(records)) if version < 9 else uvarint(len(records) + 1)
    records[: len(looks)] = looks
    bench.cluster.connect().send(produce("t", bytes(records)), version, trailing=bytes(behind))
    [exchange] = bench.exchanges
    _, request, _ = decoded(exchange)
    [recorded_partition] = request.topic_data[0].partition_data
    assert bytes(recorded_partition.records) == bytes(records[:HEADER_BYTES])


@pytest.mark.parametrize("whose", ["partition", "topic", "request"])
def test_trace_omits_record_values_even_if_a_tagged_field_looks_like_the_records(bench: Bench, whose: str) -> None:
    """The tagged field contains a field of equal length, and its last byte is the first of three that cannot be tags."""
    records = batch(b"secret" * 20)
    produce_request = produce("t", records)
    owner = {
        "partition": produce_request.topic_data[0].partition_data[0],
        "topic": produce_request.topic_data[0],
        "request": produce_request,
    }[whose]
    rest = {"partition": 1, "topic": 2, "request": 3}[whose]
    owner.unknown_tagged_fields = [(50, uvarint(len(records) + 1) + b"Z" * len(records) + bytes(rest))]
    bench.cluster.connect().send(produce_request, 9)
    [exchange] = bench.exchanges
    _, request, _ = decoded(exchange)
    [recorded_partition] = request.topic_data[0].partition_data
    assert bytes(recorded_partition.records) == records[:HEADER_BYTES] and b"secret" not in exchange.request
    assert exchange.request_records == (len(records),)


def test_trace_stores_only_the_header_of_a_produce_with_non_utf_8_transactional_id(bench: Bench) -> None:
    """Invalid UTF-8 is decoded with replacement characters, which make the name longer than an int16 length allows."""
    records, name = batch(b"x"), b"\xff" * 12_000
    partitions = b"".join(struct.pack(">ii", index, len(records)) + records for index in (0, 1))
    header = struct.pack(">hhih", ApiKey.PRODUCE, 7, 9, -1)
    frame = header + struct.pack(">h", len(name)) + name + struct.pack(">hii", 1, 100, 1) + b"\0\1t"
    frame += struct.pack(">i", 2) + partitions
    client = bench.cluster.connect()
    client.expect(9, ApiKey.PRODUCE, 7)
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    [exchange] = bench.exchanges
    assert len(client.answers) == 1 and client.closed_ms is None
    assert exchange.answered and exchange.request == header and exchange.request_bytes == len(frame)


@pytest.mark.rule("P-15")
def test_trace_records_the_high_watermark_advance_before_the_acks_all_response() -> None:
    bench = Bench(brokers=3)
    bench.cluster.topic("all", 1, 3)
    leader = bench.cluster.state.controller.image.topics["all"].partitions[0].leader
    client = bench.cluster.connect(leader)
    for end in (2, 4):
        bench.entries.clear()
        client.send(produce("all", batch(b"x", b"y"), acks=-1), 9)
        bench.cluster.advance(1000)  # followers learn it from the responses to their fetches
        assert (leader, 0, end == 2, end, end, 0, end) in bench.moves("all")
        [exchange] = bench.exchanges
        [move] = [e for e in bench.entries if isinstance(e, State) and e.broker == leader]
        assert exchange.seq < move.seq and exchange.handled_ns <= move.at_ns <= exchange.ready_ns
        assert bench.entries.index(move) < bench.entries.index(exchange)
        assert {(broker, high_watermark) for broker, _, _, high_watermark, *_ in bench.moves("all")} == {
            (broker, end) for broker in range(3)
        }


def test_trace_flags_only_the_first_log_offsets_entry_of_a_partition_as_first(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(produce("t", batch(b"x", b"y"), partition=1), 9)
    bench.entries.clear()
    bench.cluster.state.record(recorder_into(bench.entries))
    assert bench.moves() == [(0, 1, True, 2, 2, 0, 2)]
    for partition in (0, 1, 1):
        client.ask(produce("t", batch(b"x"), partition=partition), 9)
    bench.cluster.state.nodes[0].replicas.partitions["t", 1].log.raise_log_start(3)
    bench.cluster.state.controller.delete_topic("t")
    bench.cluster.topic("t", 2)
    client.ask(produce("t", batch(b"x"), partition=1), 9)
    assert bench.moves()[1:] == [
        (0, 0, True, 1, 1, 0, 1),
        (0, 1, False, 3, 3, 0, 3),
        (0, 1, False, 4, 4, 0, 4),
        (0, 1, False, 4, 4, 3, 4),
        (0, 1, True, 1, 1, 0, 1),
    ]


def test_trace_contains_the_waiting_time_of_each_parked_request(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(fetch(("t", 0, 0), max_wait_ms=0), 11)
    client.send(fetch(("t", 0, 0), max_wait_ms=5000, min_bytes=1), 11)
    sent_ns = monotonic_ns()
    bench.cluster.connect().ask(produce("t", batch(b"x")), 9)
    move_ns = next(move.at_ns for move in bench.entries if isinstance(move, State))
    first, parked = [exchange for exchange in bench.exchanges if exchange.connection == client.connection.connection_id]
    assert first.wait_ns == 0
    assert move_ns - sent_ns <= parked.wait_ns <= parked.ready_ns - parked.handled_ns
