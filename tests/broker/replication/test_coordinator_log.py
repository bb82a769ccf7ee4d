"""An internal topic as a coordinator writes and reads it: when a write counts, and why it fails."""

from __future__ import annotations

import pytest

from kafkaproto.broker.replication.coordinator_log import CoordinatorLog, LoggedRecord
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.scene import hold, release

TIMEOUT_MS = 5_000
NONE, UNKNOWN_TOPIC, NOT_LEADER, TIMED_OUT, TOO_LARGE, NOT_ENOUGH = 0, 3, 6, 7, 10, 19


class Writer:
    """A coordinator on the broker that leads partition 0 of topic `c`; `errors` has the outcome of each write."""

    def __init__(self, brokers: int = 1, replicas: int = 1, **configs: str) -> None:
        self.cluster = VirtualCluster(brokers)
        self.cluster.topic("c", 1, replicas, **configs)
        self.leader = self.cluster.state.controller.image.topics["c"].partitions[0].leader
        self.followers = [broker_id for broker_id in range(brokers) if broker_id != self.leader]
        self.log = self.of(self.leader)
        self.errors: list[tuple[int, int]] = []

    def of(self, broker_id: int) -> CoordinatorLog:
        state = self.cluster.state
        return CoordinatorLog("c", state.nodes[broker_id].replicas, state.timers, TIMEOUT_MS)

    def write(self, *entries: tuple[bytes, bytes | None]) -> None:
        self.log.append(0, entries, self.cluster.now_ms, lambda error, at_ms: self.errors.append((int(error), at_ms)))
        self.cluster.run()


def test_coordinator_log_returns_written_records_and_tombstones_in_order() -> None:
    writer = Writer()
    writer.write((b"a", b"1"), (b"b", b"2"))
    writer.write((b"a", None))
    assert writer.errors == [(NONE, writer.cluster.now_ms)] * 2
    assert list(writer.log.read(0)) == [
        LoggedRecord(0, b"a", b"1"),
        LoggedRecord(1, b"b", b"2"),
        LoggedRecord(2, b"a", None),
    ]
    assert list(writer.log.read(1)) == []


def test_coordinator_write_completes_when_all_in_sync_replicas_have_the_record() -> None:
    writer = Writer(3, 3)
    hold(writer.cluster, *writer.followers, topic="c")
    writer.write((b"a", b"1"))
    assert writer.errors == []
    assert [record.key for record in writer.log.read(0)] == [b"a"]  # a new leader loads what may be committed
    release(writer.cluster, *writer.followers, topic="c")
    writer.cluster.run()
    assert [error for error, _ in writer.errors] == [NONE]


def test_coordinator_write_that_is_not_replicated_times_out() -> None:
    writer = Writer(3, 3)
    hold(writer.cluster, *writer.followers, topic="c")
    start_ms = writer.cluster.now_ms
    writer.write((b"a", b"1"))
    writer.cluster.advance(TIMEOUT_MS - 1)
    assert writer.errors == []
    writer.cluster.advance(1)
    assert writer.errors == [(TIMED_OUT, start_ms + TIMEOUT_MS)]


def test_coordinator_write_fails_when_its_partition_moves_or_is_deleted() -> None:
    for end, error in (("stop", NOT_LEADER), ("delete", UNKNOWN_TOPIC)):
        writer = Writer(3, 3)
        hold(writer.cluster, *writer.followers, topic="c")
        writer.write((b"a", b"1"))
        if end == "stop":
            writer.cluster.state.stop_broker(writer.leader)
            writer.cluster.state.start_broker(writer.leader)
        else:
            writer.cluster.state.controller.delete_topic("c")
        writer.cluster.run()
        assert [code for code, _ in writer.errors] == [error], end


def test_rejected_coordinator_writes_return_an_error_and_append_nothing() -> None:
    writer = Writer(3, 3, min_insync_replicas="2", max_message_bytes="200")
    writer.write((b"a", b"x" * 300))
    other = (writer.leader + 1) % 3
    errors: list[int] = []
    writer.of(other).append(0, [(b"a", b"1")], 0, lambda error, at_ms: errors.append(int(error)))
    assert errors == [NOT_LEADER]
    for broker_id in writer.followers:
        writer.cluster.state.stop_broker(broker_id)
    writer.cluster.run()
    writer.write((b"a", b"1"))
    assert [error for error, _ in writer.errors] == [TOO_LARGE, NOT_ENOUGH]
    assert list(writer.log.read(0)) == []


@pytest.mark.parametrize("index", [0, 7])
def test_method_append_only_returns_the_error_of_a_coordinator_write_immediately(index: int) -> None:
    writer = Writer()
    assert writer.log.append_only(index, [(b"a", None)], 0) == (NONE if index == 0 else NOT_LEADER)
