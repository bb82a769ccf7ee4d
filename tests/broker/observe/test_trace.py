"""What is recorded of a broker's traffic: every exchange without its records, in frames that decode; every event; nothing when off."""

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
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records.batch import HEADER_BYTES, read_header
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
def test_a_produce_is_recorded_with_the_heads_of_its_batches(bench: Bench, version: int, count: int) -> None:
    client = bench.cluster.connect(client_id="p")
    batches = [batch(b"x" * 5000, b"y"), batch(b"z" * 100)][:count]
    partitions = [PartitionProduceData(i, data) for i, data in enumerate(batches)]
    request = ProduceRequest(None, 1, 1000, [TopicProduceData("t", partition_data=partitions)])
    size = len(client.frame(request, version)) - 4
    answer = client.ask(request, version)
    [one] = bench.exchanges
    header, seen, response = decoded(one)
    assert (header.client_id, header.api_version, one.request_bytes) == ("p", version, size)
    assert response == answer and one.response == one.response[:]
    assert one.request_records == tuple(map(len, batches)) and one.response_records == ()
    kept = [bytes(p.records) for p in seen.topic_data[0].partition_data]
    assert kept == [data[:HEADER_BYTES] for data in batches]
    assert [read_header(data).record_count for data in kept] == [2, 1][:count]
    assert len(one.request) < size - 5000
    assert (one.broker, one.connection) == (0, client.connection.connection_id)
    assert 0 < one.received_ns <= one.ready_ns


@pytest.mark.parametrize("version", [4, 11, 12])
@pytest.mark.parametrize("memory_bytes", [0, 1 << 20])
def test_a_fetch_is_recorded_with_the_heads_of_its_batches_wherever_they_lie(version: int, memory_bytes: int) -> None:
    bench = Bench(memory_bytes=memory_bytes)
    client = bench.cluster.connect()
    stored = [batch(b"x" * size) for size in (10, 30_000, 70_000, 9000, 20)]
    for data in stored:
        client.ask(produce("t", data, partition=1), 9)
    bench.entries.clear()
    answer = client.ask(fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 5), version=version), version)
    [one] = bench.exchanges
    _, _, response = decoded(one)
    assert one.response_bytes == client.answers[-1].size_bytes
    for topic, kept_topic in zip(answer.responses, response.responses, strict=True):
        for partition, kept in zip(topic.partitions, kept_topic.partitions, strict=True):
            whole = partition.records or b""
            assert kept.records is not None and bytes(kept.records) == batch_heads(whole)
            kept.records = partition.records
    assert response == answer
    assert one.response_records == tuple(len(p.records or b"") for t in answer.responses for p in t.partitions)
    heads = [batch_heads(p.records or b"") for t in answer.responses for p in t.partitions]
    assert heads[0] == heads[2] == b""
    # Without memory small batches lie in pieces of their own, and a read ends with a piece.
    assert len(heads[1]) == HEADER_BYTES * (len(stored) if memory_bytes else 1)


def test_a_batch_that_is_cut_off_leaves_nothing(bench: Bench) -> None:
    client = bench.cluster.connect()
    for _ in range(3):
        client.ask(produce("t", batch(b"x" * 1000)), 9)
    bench.entries.clear()
    answer = client.ask(fetch(("t", 0, 0), partition_max=1500), 11)
    _, _, response = decoded(bench.exchanges[0])
    assert bench.exchanges[0].response_records == (1500,) == (len(answer.responses[0].partitions[0].records),)
    assert len(response.responses[0].partitions[0].records) == HEADER_BYTES


@pytest.mark.parametrize("size", [100, 20_000])
def test_of_a_file_that_somebody_has_cut_only_what_is_there_is_recorded(size: int) -> None:
    file = open_temporary_file(MemoryBudget(0))
    stored = batch(b"x" * size)
    os.pwrite(file.fileno(), 2 * stored, 0)
    whole = FileRange(file, 0, 2 * len(stored))
    assert heads(whole) == batch_heads(2 * stored)
    for left in (1, HEADER_BYTES):
        os.ftruncate(file.fileno(), len(stored) + left)
        assert heads(whole)[:HEADER_BYTES] == stored[:HEADER_BYTES] and len(heads(whole)) <= 2 * HEADER_BYTES


def test_other_requests_are_recorded_byte_for_byte(bench: Bench) -> None:
    client = bench.cluster.connect()
    request = metadata(["t"])
    frame = client.frame(request, 9, 1)
    client.ask(request, 9)
    [one] = bench.exchanges
    assert one.request == frame[4:] and len(one.response) == one.response_bytes


def test_acks_0_has_no_answer_and_a_parked_fetch_has_the_time_it_waited(bench: Bench) -> None:
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


def test_a_request_behind_a_parked_one_is_handled_when_that_is_out(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(fetch(("t", 1, 0), max_wait_ms=500, min_bytes=1), 11)
    client.send(metadata(), 9)
    bench.cluster.advance(500)
    parked, behind = bench.exchanges
    assert behind.received_ns <= parked.ready_ns <= parked.sent_ns <= behind.handled_ns <= behind.ready_ns
    assert (parked.handled_ms + 500, parked.seq) == (behind.handled_ms, behind.seq - 2)  # the third is that it parked


def test_an_answer_that_does_not_get_out_was_made_and_never_sent(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.write = lambda buffers: False  # type: ignore[method-assign]  # the kernel takes nothing
    client.send(metadata(), 9)
    assert bench.exchanges == []
    client.connection.lost()
    [one] = bench.exchanges
    assert (one.answered, one.sent_ns) == (True, 0) and one.ready_ns and bench.events("closed")


def assert_given_up(bench: Bench, connection_id: int) -> Exchange:
    """There is one exchange, without an answer that it should have had; and no number is missing."""
    [one] = bench.exchanges
    assert (one.answered, one.response, one.response_bytes, one.sent_ns) == (False, b"", 0, 0)
    assert one.connection == connection_id and one.received_ns <= one.handled_ns <= one.ready_ns
    [told] = bench.events("trouble")
    assert (told["of"], told["why"], told["connection"]) == (one.seq, UNANSWERED, connection_id)
    seqs = [e.facts["seq"] if isinstance(e, Event) else e.seq for e in bench.entries]
    assert sorted(seqs) == list(range(1, max(seqs) + 1))
    return one


def test_a_request_whose_connection_goes_while_it_is_parked_is_recorded_without_an_answer(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.send(fetch(("t", 1, 0), max_wait_ms=500, min_bytes=1), 11)
    bench.cluster.advance(200)
    client.connection.lost()
    one = assert_given_up(bench, client.connection.connection_id)
    assert (one.clock_ms - one.handled_ms, one.wait_ns > 0) == (200, True)


def test_a_request_whose_connection_goes_while_its_handler_works_is_recorded_once(
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


def test_a_held_answer_whose_connection_goes_is_recorded_without_an_answer() -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, producer_byte_rate=1000.0)
    client = bench.cluster.connect()
    client.send(produce_of_bytes(client, "t", 100_000, version=5), 5)
    client.connection.lost()
    assert_given_up(bench, client.connection.connection_id)


def test_a_held_request_that_awaits_no_answer_lacks_none_when_its_connection_goes() -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, producer_byte_rate=1000.0)
    client = bench.cluster.connect()
    client.send(produce_of_bytes(client, "t", 100_000, version=5, acks=0), 5)
    client.connection.lost()
    [one] = bench.exchanges
    assert not one.answered and bench.events("throttle") and bench.events("closed") and not bench.events("trouble")


@pytest.mark.parametrize("release", ["1.1", "4.0"])
def test_a_request_whose_answer_cannot_be_built_is_recorded_without_one(
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
    "an api that nobody knows": (
        struct.pack(">hhi", 999, 0, 7) + b"secret",
        b"",
        "api key 999 version 0 is not offered",
    ),
    "a version that nobody knows": (
        struct.pack(">hhih1sb", 0, 99, 7, 1, b"x", 0) + b"secret",
        b"x\0",
        "api key 0 version 99",
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
    "half a start": (b"\0\0\0", b"", "a frame of 3 bytes holds no request header"),
}
"""What comes; what is kept behind the first 8 bytes and the length of the client-id; why it is refused."""


@pytest.mark.parametrize("what", REFUSED)
def test_a_request_that_is_refused_is_recorded_and_why_and_nothing_of_it_that_nobody_can_read(
    bench: Bench, what: str
) -> None:
    frame, kept, why = REFUSED[what]
    client = bench.cluster.connect()
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    [one], [trouble], [closed] = bench.exchanges, bench.events("trouble"), bench.events("closed")
    assert (one.answered, one.closes, one.response, one.sent_ns) == (False, True, b"", 0)
    assert (one.request_bytes, one.clock_ms) == (len(frame), bench.cluster.now_ms)
    assert one.request == frame[: 8 + (2 + len(kept) if kept else 0)] and b"secret" not in one.request
    assert (trouble["of"], trouble["why"]) == (one.seq, closed["why"]) and why in closed["why"]
    assert {trouble["connection"], closed["connection"], one.connection} == {client.connection.connection_id}
    seqs = [one.seq, trouble["seq"], closed["seq"]]
    assert seqs == list(range(seqs[0], seqs[0] + 3)) and 0 < one.received_ns <= one.handled_ns <= one.ready_ns


def test_a_produce_of_a_version_that_is_not_offered_is_recorded_without_its_records() -> None:
    bench = Bench(release_name="1.1")
    client = bench.cluster.connect()
    data = batch(b"secret" * 100)
    client.send(produce("t", data), 9)
    [one] = bench.exchanges
    assert one.closes and one.request_records == (len(data),) and b"secret" not in one.request
    assert bytes(decoded(one)[1].topic_data[0].partition_data[0].records) == data[:HEADER_BYTES]


@pytest.mark.parametrize(("version", "whole"), [(4, True), (9, False)])
def test_an_answer_that_a_version_is_not_offered_is_recorded_with_its_request(version: int, whole: bool) -> None:
    """KIP-511. Of a version that nobody knows the request is its header."""
    bench = Bench(release_name="2.1")
    client = bench.cluster.connect(client_id="x")
    frame = struct.pack(">hhih1sb", 18, version, 7, 1, b"x", 0) + bytes((2, 97, 2, 49, 0))
    client.expect(7, ApiKey.API_VERSIONS, 0)
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    [one] = bench.exchanges
    assert one.answered and not one.closes and one.response_bytes == client.received_bytes - 4
    seen = Decoded(one)
    assert list(seen.errors()) == [35] and bool(seen.trouble) is not whole
    assert one.request == frame[: None if whole else 12]
    assert (seen.client, seen.request and seen.request.client_software_name) == ("x", "a" if whole else None)
    assert not bench.events("trouble") and not bench.events("closed")


def test_it_is_recorded_why_a_connection_is_over() -> None:
    bench = Bench(config={"connections.max.idle.ms": "1000"})
    clients = [bench.cluster.connect() for _ in range(5)]
    clients[0].finish()
    clients[1].connection.lost()
    clients[2].send(produce("t", batch(b"x"), partition=77, acks=0), 9)
    clients[3].send_bytes(b"\xff\xff\xff\xff")
    bench.cluster.advance(1000)
    bench.cluster.connect()
    bench.cluster.state.stop_broker(0)
    told = [one["why"] for one in bench.events("closed")]
    assert told[:3] == [CLIENT_ENDED, SOCKET_GONE, "a produce with acks=0 failed"]
    assert "a frame of -1 bytes was announced" in told[3] and "connections.max.idle.ms=1000" in told[4]
    assert told[5:] == ["the broker stops"]


def test_what_happens_to_topics_quotas_and_logs_is_recorded(bench: Bench) -> None:
    bench.cluster.topic("made", 2, retention_ms="1000")
    client = bench.cluster.connect()
    client.ask(produce("made", batch(b"x", b"y")), 9)
    log = bench.cluster.state.nodes[0].replicas.partitions[("made", 0)].log
    log.raise_log_start(1)
    log.truncate_to(1)
    bench.cluster.state.controller.delete_topic("made")
    made, gone = bench.events("topic")
    assert (made["state"], gone["state"], made["topic"], made["configs"]) == (
        "created",
        "deleted",
        "made",
        {"retention.ms": "1000"},
    )
    assert made["topic_id"] == gone["topic_id"] and made["partitions"][1] == {
        "leader": 0,
        "leader_epoch": 0,
        "isr": [0],
    }
    keys = ("topic", "partition", "what", "before", "after")
    assert [tuple(e[key] for key in keys) for e in bench.events("log")] == [
        ("made", 0, "start", 0, 1),
        ("made", 0, "end", 2, 0),
    ]


def test_a_throttle_tells_whose_and_why(bench: Bench) -> None:
    limit(bench.cluster, producer_byte_rate=10_000.0)
    client = bench.cluster.connect()
    client.ask(produce_of_bytes(client, "t", 105_000), 9)
    [one] = bench.exchanges
    [why] = bench.events("throttle")
    assert one.throttle_ms == why["throttle_ms"] == 500
    assert (why["of"], why["quota"], why["bound"], why["value"]) == (one.seq, "Produce", 10_000.0, 105_000)
    assert why["entity"] == "client-id 'test'" and why["window_ms"] == 10_000
    assert [told["value"] for told in bench.events("quota")] == [10_000]
    bench.cluster.state.forced_throttles.add(ForcedThrottle(7))
    bench.cluster.connect(client_id="other").ask(metadata(), 9)
    assert bench.events("throttle")[-1]["rule_id"] > 0


def test_a_throttled_fetch_is_recorded_as_it_was_sent(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(produce("t", batch(b"x" * 5000)), 9)
    bench.cluster.state.forced_throttles.add(ForcedThrottle(7, api="Fetch"))
    bench.entries.clear()
    client.ask(fetch(("t", 0, 0)), 11)
    [one] = bench.exchanges
    _, _, response = decoded(one)
    assert (response.throttle_time_ms, response.responses, one.throttle_ms) == (7, [], 7)


def test_held_answers_say_so() -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, producer_byte_rate=10_000.0)
    client = bench.cluster.connect()
    client.send(produce_of_bytes(client, "t", 105_000, version=5), 5)
    bench.cluster.advance(500)
    [one] = bench.exchanges
    assert one.held and one.throttle_ms == 500


def test_connections_and_brokers_come_and_go_in_the_trace(bench: Bench) -> None:
    client = bench.cluster.connect(address="10.1.2.3")
    client.connection.close()
    [opened], [closed] = bench.events("opened"), bench.events("closed")
    assert (opened["peer"], opened["listener"]) == ("10.1.2.3", "PLAINTEXT")
    assert opened["connection"] == closed["connection"] and opened["seq"] < closed["seq"]
    assert closed["why"] == THIS_SIDE
    bench.cluster.state.stop_broker(0)
    assert [fact["state"] for fact in bench.events("broker")] == ["stopped"]


def test_sequence_numbers_count_everything_once(bench: Bench) -> None:
    client = bench.cluster.connect()
    for _ in range(5):
        client.ask(metadata(), 9)
    seen = sorted(e.seq if isinstance(e, Exchange) else e.facts["seq"] for e in bench.entries)
    assert seen == list(range(1, len(seen) + 1))


@pytest.mark.parametrize(("version", "behind"), [(7, 4), (9, 2), (11, 2)])
def test_bytes_behind_a_produce_do_not_look_like_its_end(bench: Bench, version: int, behind: int) -> None:
    """The batch begins as the length of its field would, and with as many bytes behind that place is where the length would be."""
    records = bytearray(batch(b"x" * 5000))
    looks = struct.pack(">i", len(records)) if version < 9 else uvarint(len(records) + 1)
    records[: len(looks)] = looks
    bench.cluster.connect().send(produce("t", bytes(records)), version, trailing=bytes(behind))
    [one] = bench.exchanges
    _, request, _ = decoded(one)
    [kept] = request.topic_data[0].partition_data
    assert bytes(kept.records) == bytes(records[:HEADER_BYTES])


@pytest.mark.parametrize("whose", ["partition", "topic", "request"])
def test_a_tag_that_ends_as_records_do_does_not_let_records_into_the_trace(bench: Bench, whose: str) -> None:
    """Its content is a field of the same length, and its last byte the first of three that look like no tags."""
    records = batch(b"secret" * 20)
    asked = produce("t", records)
    owner = {"partition": asked.topic_data[0].partition_data[0], "topic": asked.topic_data[0], "request": asked}[whose]
    rest = {"partition": 1, "topic": 2, "request": 3}[whose]
    owner.unknown_tagged_fields = [(50, uvarint(len(records) + 1) + b"Z" * len(records) + bytes(rest))]
    bench.cluster.connect().send(asked, 9)
    [one] = bench.exchanges
    _, request, _ = decoded(one)
    [kept] = request.topic_data[0].partition_data
    assert bytes(kept.records) == records[:HEADER_BYTES] and b"secret" not in one.request
    assert one.request_records == (len(records),)


def test_a_produce_that_can_be_read_and_not_written_is_answered_and_its_header_is_recorded(bench: Bench) -> None:
    """A text that is no UTF-8 is read with replacements, which are longer than an int16 can tell."""
    records, name = batch(b"x"), b"\xff" * 12_000
    partitions = b"".join(struct.pack(">ii", index, len(records)) + records for index in (0, 1))
    header = struct.pack(">hhih", ApiKey.PRODUCE, 7, 9, -1)
    frame = header + struct.pack(">h", len(name)) + name + struct.pack(">hii", 1, 100, 1) + b"\0\1t"
    frame += struct.pack(">i", 2) + partitions
    client = bench.cluster.connect()
    client.expect(9, ApiKey.PRODUCE, 7)
    client.send_bytes(struct.pack(">i", len(frame)) + frame)
    [one] = bench.exchanges
    assert len(client.answers) == 1 and client.closed_ms is None
    assert one.answered and one.request == header and one.request_bytes == len(frame)


@pytest.mark.rule("P-15")
def test_every_move_of_a_high_watermark_is_recorded_on_each_replica_before_acks_all_is_answered() -> None:
    bench = Bench(brokers=3)
    bench.cluster.topic("all", 1, 3)
    leader = bench.cluster.state.controller.image.topics["all"].partitions[0].leader
    client = bench.cluster.connect(leader)
    for end in (2, 4):
        bench.entries.clear()
        client.send(produce("all", batch(b"x", b"y"), acks=-1), 9)
        bench.cluster.advance(1000)  # followers hear of it when their fetches are answered
        assert (leader, 0, end == 2, end, end, 0, end) in bench.moves("all")
        [one] = bench.exchanges
        [move] = [e for e in bench.entries if isinstance(e, State) and e.broker == leader]
        assert one.seq < move.seq and one.handled_ns <= move.at_ns <= one.ready_ns
        assert bench.entries.index(move) < bench.entries.index(one)
        assert {(broker, high_watermark) for broker, _, _, high_watermark, *_ in bench.moves("all")} == {
            (broker, end) for broker in range(3)
        }


def test_where_logs_stand_is_recorded_when_a_trace_begins_and_a_log_that_is_new_says_so(bench: Bench) -> None:
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


def test_what_was_parked_tells_for_how_long_and_what_was_not_that_it_was_not(bench: Bench) -> None:
    client = bench.cluster.connect()
    client.ask(fetch(("t", 0, 0), max_wait_ms=0), 11)
    client.send(fetch(("t", 0, 0), max_wait_ms=5000, min_bytes=1), 11)
    sent_ns = monotonic_ns()
    bench.cluster.connect().ask(produce("t", batch(b"x")), 9)
    came_ns = next(move.at_ns for move in bench.entries if isinstance(move, State))
    first, parked = [one for one in bench.exchanges if one.connection == client.connection.connection_id]
    assert first.wait_ns == 0
    assert came_ns - sent_ns <= parked.wait_ns <= parked.ready_ns - parked.handled_ns
