"""How a recorder writes trace entries: order, batching, large entries, entries that cannot be encoded, and the end of a trace."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest

from kafkaproto.api import codec
from kafkaproto.broker.observe.packing import LARGE_BYTES
from kafkaproto.broker.observe.recorder import Recorder
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.trace.format import Entry, Event
from tests.support.recording import Bench, recorder_into
from tests.support.wire import batch, fetch, limit, metadata, produce


@pytest.fixture
def bench() -> Bench:
    return Bench()


def exchange_some_requests(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    for number in range(4):
        client.ask(produce("t", batch(b"x"), partition=1), 7)
        client.ask(fetch(("t", 1, number)), 11)
    client.send(produce("t", batch(b"x"), acks=0), 7)
    client.ask(metadata(), 9)
    client.connection.socket_closed()


@pytest.mark.parametrize("together", [2, 5, 1000])
def test_trace_entries_written_in_batches_keep_their_content_and_order(together: int) -> None:
    def times_apart(entries: list[Entry]) -> list[Any]:
        timed = ("received_ns", "handled_ns", "ready_ns", "sent_ns", "wait_ns", "at_ns", "connection")
        facts_of_entries: list[Any] = [e.facts if isinstance(e, Event) else e._asdict() for e in entries]
        return [{name: value for name, value in facts.items() if name not in timed} for facts in facts_of_entries]

    alone, later = Bench(), Bench()
    recorder = recorder_into(later.entries, together)
    later.cluster.state.record(recorder)
    exchange_some_requests(alone.cluster)
    exchange_some_requests(later.cluster)
    assert (together > len(alone.entries)) == (later.entries == [])
    recorder.flush()
    assert len(alone.exchanges) == 10 and all(e.sent_ns >= e.ready_ns > 0 for e in later.exchanges)
    assert times_apart(later.entries) == times_apart(alone.entries)


def test_trace_recorder_buffers_small_entries_until_a_large_entry_or_the_trace_end(bench: Bench) -> None:
    bench.cluster.state.record(recorder_into(bench.entries, 1000))
    client = bench.cluster.connect()
    client.ask(metadata(), 9)
    assert bench.exchanges == []
    client.ask(metadata(["t", *(f"{number:0200d}" for number in range(400))]), 9)
    assert [e.request_bytes > LARGE_BYTES for e in bench.exchanges] == [False, True]
    client.ask(metadata(), 9)
    bench.cluster.state.record(None)
    assert len(bench.exchanges) == 3


def test_large_trace_entry_is_flushed_separately_from_other_entries() -> None:
    pieces: list[int] = []
    cluster = VirtualCluster()
    cluster.state.record(Recorder(lambda _, entries: pieces.append(entries), 1000))
    client = cluster.connect()
    client.ask(metadata(), 9)
    client.ask(metadata([f"{number:0200d}" for number in range(400)]), 9)
    assert len(pieces) == 2 and pieces[1] == 1


@pytest.mark.parametrize("together", [1, 4])
def test_trace_entry_that_cannot_be_written_is_logged_and_other_entries_are_written(
    together: int, caplog: pytest.LogCaptureFixture
) -> None:
    entries: list[bytes] = []
    cluster = VirtualCluster()
    recorder = Recorder(lambda data, _: entries.append(data), together)
    cluster.state.record(recorder)
    clients = [cluster.connect() for _ in range(9)]
    for number, client in enumerate(clients):
        client.connection.received_ns = 2**63 if number == 4 else 1
        exchange = Exchange(cluster.state.nodes[0], client.connection, codec(3, 9), 3, 9, 1, "c", 10, 0)
        recorder.request_begun(exchange, None, memoryview(b"x" * 8), 0, 0, None)
        recorder.request_unanswered(exchange, 0, False, False)
        recorder.response_sent(exchange)
    cluster.state.record(None)
    data = b"".join(entries)
    assert data.count(b"x" * 8) == 8 and not any(client.connection.closed for client in clients)
    assert len(caplog.records) == 1 and "is too large or too small for its field" in caplog.text


def test_trace_recorder_cannot_be_used_again_after_its_trace_has_ended(bench: Bench) -> None:
    recorder = recorder_into(bench.entries, 1000)
    bench.cluster.state.record(recorder)
    bench.cluster.state.record(recorder)
    bench.cluster.connect().ask(metadata(), 9)
    bench.cluster.state.record(None)
    assert len(bench.exchanges) == 1
    with pytest.raises(ValueError, match="ended its trace"):
        bench.cluster.state.record(recorder)


@pytest.mark.parametrize("lost", [False, True])
def test_request_that_is_unanswered_when_a_trace_ends_is_not_in_the_next_trace(lost: bool) -> None:
    bench = Bench(release_name="1.1")
    limit(bench.cluster, consumer_byte_rate=1.0)
    client = bench.cluster.connect()
    client.ask(produce("t", batch(b"x"), partition=1), 5)
    for offset in (0, 1):
        client.send(fetch(("t", 1, offset), max_wait_ms=500, min_bytes=1), 6)
        first, bench.entries = bench.entries, []
        bench.cluster.state.record(recorder_into(bench.entries))
        entries = list(first)
        if lost:
            client.connection.socket_closed()
        bench.cluster.advance(200_000)
        assert first == entries != [] and bench.exchanges == [] and bench.events("problem") == []
        assert [event["of"] for event in bench.events("throttle")] == ([None] if offset and not lost else [])
        if lost:
            client = bench.cluster.connect()
    client.ask(metadata(), 1)
    [event] = bench.exchanges
    seqs = [e.facts["seq"] if isinstance(e, Event) else e.seq for e in bench.entries]
    assert event.seq == max(seqs) and sorted(seqs) == list(range(1, len(seqs) + 1))


def test_requests_handled_after_the_trace_recorder_is_stopped_are_not_recorded(bench: Bench) -> None:
    client = bench.cluster.connect()
    bench.cluster.state.record(None)
    bench.entries.clear()
    client.ask(metadata(), 9)
    client.ask(produce("t", batch(b"x")), 9)
    assert bench.cluster.state.events.offsets_moved is None
    bench.cluster.connect()
    assert bench.entries == []


def test_trace_recorder_does_not_keep_deleted_replicas_in_memory(bench: Bench) -> None:
    cluster = bench.cluster
    cluster.connect().ask(produce("t", batch(b"x")), 9)
    log = weakref.ref(cluster.state.nodes[0].replicas.partitions["t", 0].log)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    gc.collect()
    assert log() is None and [move[2] for move in bench.moves()] == [True]
    cluster.topic("t", 1)
    cluster.connect().ask(produce("t", batch(b"x")), 9)
    cluster.connect().ask(produce("t", batch(b"y")), 9)
    assert [move[2] for move in bench.moves()] == [True, True, False]
