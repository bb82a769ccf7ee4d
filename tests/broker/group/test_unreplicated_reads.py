"""Read requests of groups while records of their partition are not replicated (GC-66)."""

from __future__ import annotations

from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from kafkaproto.broker.group.committed_groups import MAX_QUEUED, CommittedGroups
from kafkaproto.broker.group.group import Group as ClassicGroup
from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.group.records import Entry
from kafkaproto.broker.group.replay import Loaded, load
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.group.tombstones import Tombstones
from kafkaproto.broker.replication.coordinator_log import LoggedRecord
from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.groups import OFFSETS_TOPIC
from kafkaproto.conformance.transactions import Producer
from kafkaproto.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tests.support.broker.transaction_bench import TransactionBench
from tests.support.scene import hold, release

KEY = ("topic", 0)
pytestmark = pytest.mark.rule("GC-66")


class Log:
    """One partition of the offsets topic. reads: how often the log was read."""

    def __init__(self) -> None:
        self.records: list[LoggedRecord] = []
        self.watermark = self.reads = 0

    def append_only(self, index: int, entries: list[Entry], now_ms: int) -> int:
        self.records += [LoggedRecord(len(self.records) + i, *entry) for i, entry in enumerate(entries)]
        return 0

    append_now = append_only

    def read(self, index: int) -> list[LoggedRecord]:
        self.reads += 1
        return self.records

    def high_watermark(self, index: int) -> int:
        return self.watermark

    def end_offset(self, index: int) -> int:
        return len(self.records)


class Coordinator:
    """The storage of a coordinator that has one partition, and the replicated state of its groups."""

    def __init__(self, log: Log, *, is_new_coordinator: bool = True) -> None:
        self.log = log
        self.storage = GroupStorage(log, lambda group_id: 0, is_new_coordinator=is_new_coordinator)  # type: ignore[arg-type]
        self.committed = CommittedGroups(self.storage)
        self.loaded = load(self.committed.load(0), is_new_coordinator=True)

    def store(self, group_id: str, offset: int) -> None:
        group = ClassicGroup(group_id, 0)
        group.offsets[KEY] = CommittedOffset(offset, -1, "", 0)
        assert self.storage.store_now(group, 0) == 0

    def delete(self, group_id: str) -> None:
        tombstones = Tombstones(self.storage)
        tombstones.add(ClassicGroup(group_id, 0), [KEY], group_too=False)
        assert tombstones.write(0) == {group_id: [0]}

    def fetched(self, group_id: str) -> int | None:
        assert self.committed.is_behind(group_id)
        offset = self.committed.offsets(group_id).get(KEY)
        return None if offset is None else offset.offset


def test_offset_fetch_returns_only_replicated_commits_and_reads_no_log_records() -> None:
    log = Log()
    first = Coordinator(log)
    first.store("a", 5)
    first.store("a", 6)
    coordinator = Coordinator(log)
    assert (first.fetched("a"), coordinator.fetched("a"), coordinator.loaded.offsets["a"][KEY].offset) == (
        None,
        None,
        6,
    )
    log.watermark = 1
    assert (first.fetched("a"), coordinator.fetched("a")) == (5, 5)
    coordinator.store("a", 7)
    log.watermark = 2
    assert coordinator.fetched("a") == 6
    coordinator.delete("a")
    log.watermark = 3
    assert coordinator.fetched("a") == 7
    coordinator.store("b", 1)
    log.watermark = 4
    assert (coordinator.fetched("a"), coordinator.fetched("b")) == (None, None)
    log.watermark = 5
    assert not coordinator.committed.is_behind("a")
    assert log.reads == 2


def test_coordinator_queues_unreplicated_offset_commits_and_drops_replicated_commits() -> None:
    coordinator = Coordinator(Log())
    [followed] = coordinator.committed._partitions.values()
    for offset in range(10 * MAX_QUEUED):
        coordinator.store("a", offset)
        coordinator.log.watermark = offset
        assert len(followed.queued) <= MAX_QUEUED
    for offset in range(10 * MAX_QUEUED):
        coordinator.store("a", offset)
    assert coordinator.fetched("a") == 10 * MAX_QUEUED - 2
    assert len(followed.queued) == 10 * MAX_QUEUED + 1


def test_scala_coordinator_does_not_track_an_offset_commit_awaiting_replication() -> None:
    coordinator = Coordinator(Log(), is_new_coordinator=False)
    coordinator.store("a", 5)
    assert not coordinator.committed.is_behind("a") and list(coordinator.committed.names()) == []


def state(loaded: Loaded) -> Any:
    """Return the parts of a partition's state that responses show, in a form that can be compared."""
    consumers = {
        group_id: (
            group.epoch,
            group.assignment_epoch,
            {member.member_id: (member.topic_names, member.current) for member in group.members.values()},
            group.targets,
        )
        for group_id, group in loaded.consumers.items()
    }
    pending = {group_id: dict(offsets.items()) for group_id, offsets in loaded.pending.items()}
    return loaded.offsets, loaded.groups, consumers, pending


@pytest.mark.parametrize("seed", range(5))
def test_replicated_state_of_a_group_equals_a_replay_of_the_log_to_high_watermark(seed: int) -> None:
    random, bench = Random(seed), TransactionBench(newer=True)
    groups = [ConsumerGroup(bench, 0) for _ in range(3)]
    index = groups[0].index
    coordinator = bench.cluster.state.controller.image.leader_of(OFFSETS_TOPIC, index)[0]
    followers = [node for node in range(3) if node != coordinator]
    registry = bench.cluster.state.nodes[coordinator].groups.groups
    storage, committed = registry._storage, registry.visible.committed
    producers = [Producer(bench, f"producer-{seed}-{i}") for i in range(2)]
    for producer in producers:
        producer.init()
    is_held = False
    actions_seen, has_pending = set(), set()
    for step in range(150):
        group, producer = random.choice(groups), random.choice(producers)
        action = random.choice(("commit", "commit", "join", "leave", "delete", "transaction", "hold"))
        actions_seen.add((action, is_held))
        if action == "commit":
            partition = OffsetCommitRequestPartition(random.randrange(2), step)
            topics = [OffsetCommitRequestTopic(group.topic.name, partitions=[partition])]
            bench.send(group.connect(), OffsetCommitRequest(group.id, topics=topics), 8)
        elif action in ("join", "leave"):
            epoch = 0 if action == "join" else -1
            request = _heartbeat(group, random.choice("AB"), epoch)
            bench.send(group.connect(), request, group.version)
        elif action == "delete":
            bench.send(group.connect(), DeleteGroupsRequest([group.id]), 2)
        elif action == "hold":
            is_held = not is_held
            (hold if is_held else release)(bench.cluster, *followers, topic=OFFSETS_TOPIC, index=index)
        elif not is_held:
            producer.add_offsets(group)
            producer.commit_offsets(group, {(group.topic.name, 0): step})
            if random.random() < 0.7:
                producer.end(commit=random.random() < 0.5)
        bench.cluster.advance(random.choice((0, 10, 1_000)))
        high_watermark = storage.high_watermark_of(index)
        replicated = (change for change in storage.read(index) if change.end_offset <= high_watermark)
        expected = load(replicated, is_new_coordinator=True)
        with patch.object(storage._log, "read", side_effect=AssertionError):
            assert state(committed._replicated(index)) == state(expected), (step, action)
        has_pending.add(bool(expected.pending))
    assert len(actions_seen) == 12 and has_pending == {True, False}


def _heartbeat(group: ConsumerGroup, member_id: str, epoch: int) -> Any:
    if epoch < 0:
        return ConsumerGroupHeartbeatRequest(group.id, member_id, epoch)
    return ConsumerGroupHeartbeatRequest(
        group.id,
        member_id,
        epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=[group.topic.name],
        topic_partitions=[],
    )
