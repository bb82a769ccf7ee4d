"""Records that a coordinator collects before it appends them: when they are appended, and which error their writers get if that fails."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.replication.coordinator_log import CoordinatorLog, LoggedRecord
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from tests.support.scene import hold

LINGER_MS, TIMEOUT_MS = 50, 5_000
NONE, UNKNOWN_TOPIC, NOT_LEADER, TIMED_OUT, TOO_LARGE, STORAGE = 0, 3, 6, 7, 10, 56


class Coordinator:
    """A coordinator in Java on the broker that leads partition 0 of topic `c`. `outcomes` has (write, error, time in ms) of each finished write."""

    def __init__(self, brokers: int = 1, **configs: str) -> None:
        self.cluster = VirtualCluster(brokers)
        self.cluster.topic("c", 1, brokers, **configs)
        self.leader = self.cluster.state.controller.image.topics["c"].partitions[0].leader
        self.followers = [broker_id for broker_id in range(brokers) if broker_id != self.leader]
        replicas = self.cluster.state.nodes[self.leader].replicas
        timers = self.cluster.state.timers
        self.log = CoordinatorLog("c", replicas, timers, TIMEOUT_MS, checks_isr=False, linger_ms=LINGER_MS)
        partition = replicas.find("c", 0)
        assert partition is not None
        self.partition = partition
        self.start_ms = self.cluster.now_ms
        self.outcomes: list[tuple[str, int, int]] = []
        self.ends: list[int] = []

    def write(
        self,
        name: str,
        *,
        size: int = 1,
        producer: tuple[int, int] | None = None,
        then: Callable[[], None] | None = None,
    ) -> None:
        """Write one record with the key `name` and a value of `size` bytes.

        producer: the (producer id, epoch) of a transaction; None for no transaction. then: called when the write has finished.
        """
        entries = [(name.encode(), b"v" * size)]

        def done(error: int, at_ms: int) -> None:
            self.outcomes.append((name, int(error), at_ms - self.start_ms))
            if then is not None:
                then()

        self.log.append(0, entries, self.cluster.now_ms, done, producer=producer, appended=self.ends.append)
        self.cluster.run()

    def batches(self) -> list[tuple[int, int]]:
        """Return (first offset, last offset) of each batch in the log."""
        return [(header.base_offset, header.last_offset) for _, header in self.partition.log.batches(0)]


def test_collected_records_are_appended_as_one_batch_after_the_linger_of_the_first() -> None:
    coordinator = Coordinator()
    coordinator.write("a")
    coordinator.cluster.advance(LINGER_MS - 10)
    coordinator.write("b")
    assert coordinator.log.append_only(0, [(b"a", None)], coordinator.cluster.now_ms) == NONE
    assert (coordinator.ends, coordinator.batches(), coordinator.outcomes) == ([1, 2], [], [])
    coordinator.cluster.advance(10)
    assert coordinator.batches() == [(0, 2)]
    assert coordinator.outcomes == [("a", NONE, LINGER_MS), ("b", NONE, LINGER_MS)]
    coordinator.write("c")
    coordinator.cluster.advance(LINGER_MS)
    assert coordinator.batches() == [(0, 2), (3, 3)]


def test_coordinator_reads_collected_records_after_those_in_the_log() -> None:
    coordinator = Coordinator()
    coordinator.write("a")
    coordinator.cluster.advance(LINGER_MS)
    coordinator.write("b")
    expected = [LoggedRecord(0, b"a", b"v"), LoggedRecord(1, b"b", b"v")]
    assert (list(coordinator.log.read(0)), coordinator.log.end_offset(0)) == (expected, 2)
    assert coordinator.log.high_watermark(0) == 1
    coordinator.cluster.advance(LINGER_MS)
    assert (list(coordinator.log.read(0)), coordinator.log.end_offset(0)) == (expected, 2)


def test_await_replicated_waits_for_collected_records_but_not_if_there_are_none() -> None:
    coordinator = Coordinator()
    ends: list[tuple[int, int]] = []

    def done(error: int, at_ms: int) -> None:
        ends.append((int(error), at_ms - coordinator.start_ms))

    coordinator.log.await_replicated(0, coordinator.cluster.now_ms, done)
    assert ends == [(NONE, 0)]
    coordinator.write("a")
    coordinator.log.await_replicated(0, coordinator.cluster.now_ms, done)
    coordinator.cluster.advance(LINGER_MS)
    assert ends == [(NONE, 0), (NONE, LINGER_MS)]


def test_collected_records_are_appended_at_once_if_new_ones_exceed_the_batch_size() -> None:
    coordinator = Coordinator(max_message_bytes="300")
    coordinator.write("a", size=100)
    coordinator.write("b", size=100)
    coordinator.write("c", size=100)
    assert (coordinator.batches(), [name for name, _, _ in coordinator.outcomes]) == ([(0, 1)], ["a", "b"])
    coordinator.write("d", size=300)
    assert coordinator.outcomes[2:] == [("c", NONE, 0), ("d", TOO_LARGE, 0)]
    assert (coordinator.batches(), coordinator.ends) == ([(0, 1), (2, 2)], [1, 2, 3])
    coordinator.cluster.advance(LINGER_MS)
    assert len(coordinator.outcomes) == 4


def test_append_now_appends_its_records_after_the_collected_ones() -> None:
    coordinator = Coordinator()
    coordinator.write("a")
    assert coordinator.log.append_now(0, [(b"b", b"v")], coordinator.cluster.now_ms) == NONE
    assert (coordinator.batches(), coordinator.outcomes) == ([(0, 0), (1, 1)], [("a", NONE, 0)])
    assert coordinator.log.append_now(0, [(b"c", b"v")], coordinator.cluster.now_ms) == NONE
    assert coordinator.batches() == [(0, 0), (1, 1), (2, 2)]


def test_records_that_are_written_while_collected_ones_are_appended_keep_their_order() -> None:
    """The record `c` does not fit into the batch of `a` and `b`, so these are appended first. Meanwhile the writer of `a` writes `r`."""
    coordinator = Coordinator(max_message_bytes="300")
    coordinator.write("a", size=100, then=lambda: coordinator.write("r"))
    coordinator.write("b", size=100)
    coordinator.write("c", size=100)
    assert [record.key for record in coordinator.log.read(0)] == [b"a", b"b", b"r", b"c"]
    coordinator.write("t", producer=(7, 0))
    assert coordinator.ends == [1, 2, 3, 4, 5]
    assert coordinator.batches() == [(0, 1), (2, 3), (4, 4)]
    assert [record.key for record in coordinator.log.read(0)] == [b"a", b"b", b"r", b"c", b"t"]


def test_record_from_a_client_is_appended_after_the_collected_ones() -> None:
    """A client with Kafka's id for admin clients may write to an internal topic."""
    coordinator = Coordinator()
    coordinator.write("a")
    produced = build_batch([NewRecord(b"v", b"k", 0)])
    replicas = coordinator.cluster.state.nodes[coordinator.leader].replicas
    result = replicas.append(coordinator.partition, memoryview(bytearray(produced)), coordinator.cluster.now_ms)
    assert (result.base_offset, coordinator.outcomes, coordinator.ends) == (1, [("a", NONE, 0)], [1])


def test_collected_records_too_large_when_compressed_are_appended_uncompressed() -> None:
    coordinator = Coordinator(max_message_bytes="300")
    coordinator.log = CoordinatorLog(
        "c",
        coordinator.cluster.state.nodes[coordinator.leader].replicas,
        coordinator.cluster.state.timers,
        TIMEOUT_MS,
        Compression.GZIP,
        checks_isr=False,
        linger_ms=LINGER_MS,
    )
    value = Random(1).randbytes(225)
    errors: list[int] = []
    coordinator.log.append(0, [(b"a", value)], coordinator.cluster.now_ms, lambda error, _: errors.append(int(error)))
    coordinator.cluster.advance(LINGER_MS)
    assert (errors, list(coordinator.log.read(0))) == ([NONE], [LoggedRecord(0, b"a", value)])
    [(_, header)] = coordinator.partition.log.batches(0)
    assert header.compression == Compression.NONE and header.size > 290


def test_records_of_a_transaction_are_appended_at_once_after_the_collected_ones() -> None:
    coordinator = Coordinator()
    coordinator.write("a")
    coordinator.write("b", producer=(7, 0))
    assert coordinator.outcomes == [("a", NONE, 0), ("b", NONE, 0)]
    assert (coordinator.batches(), coordinator.ends) == ([(0, 0), (1, 1)], [1, 2])


@pytest.mark.parametrize(("end", "error"), [("stop", NOT_LEADER), ("delete", UNKNOWN_TOPIC)])
def test_collected_records_fail_if_the_partition_moves_or_is_deleted(end: str, error: int) -> None:
    """With "stop" the leader restarts and leads the partition again before the linger ends. With "delete" the topic is deleted."""
    coordinator = Coordinator(3)
    coordinator.write("a")
    state = coordinator.cluster.state
    if end == "stop":
        state.stop_broker(coordinator.leader)
        state.start_broker(coordinator.leader)
        for broker_id in coordinator.followers:
            state.stop_broker(broker_id)
    else:
        state.controller.delete_topic("c")
    coordinator.cluster.advance(LINGER_MS)
    assert coordinator.outcomes == [("a", error, LINGER_MS)]
    assert coordinator.batches() == []


def test_write_in_a_new_leader_epoch_rejects_records_collected_in_an_earlier_one() -> None:
    coordinator = Coordinator()
    coordinator.write("a")
    coordinator.partition.leader_epoch += 1
    assert list(coordinator.log.read(0)) == [] and coordinator.log.end_offset(0) == 0
    coordinator.write("b")
    assert coordinator.outcomes == [("a", NOT_LEADER, 0)]
    coordinator.cluster.advance(LINGER_MS)
    assert coordinator.outcomes == [("a", NOT_LEADER, 0), ("b", NONE, LINGER_MS)]
    assert coordinator.batches() == [(0, 0)]


def test_collected_records_fail_if_the_log_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    coordinator = Coordinator()
    coordinator.write("a")

    def fail(*_args: object) -> None:
        raise StorageError("the disk is full")

    monkeypatch.setattr(type(coordinator.partition.log), "append", fail)
    lost: list[int] = []
    coordinator.log.lost = lambda index, _: lost.append(index)
    coordinator.cluster.advance(LINGER_MS)
    assert (coordinator.outcomes, lost) == ([("a", STORAGE, LINGER_MS)], [0])


def test_replication_timeout_of_a_collected_record_starts_with_its_own_request() -> None:
    coordinator = Coordinator(3)
    hold(coordinator.cluster, *coordinator.followers, topic="c")
    coordinator.write("a")
    coordinator.cluster.advance(20)
    coordinator.write("b")
    coordinator.cluster.advance(TIMEOUT_MS)
    assert coordinator.outcomes == [("a", TIMED_OUT, TIMEOUT_MS), ("b", TIMED_OUT, TIMEOUT_MS + 20)]
