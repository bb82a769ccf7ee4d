"""Tombstones that do not fit into one batch, or are too large to be written: which offsets the present and a new coordinator then have (GO-9)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.conformance.group_log import GroupLog, OffsetLog
from kafkaproto.conformance.groups import Group, commit, make_stable
from kafkaproto.conformance.internal_topics import reassign, topic_setting
from kafkaproto.conformance.scene import make_lead, new_topic
from tests.support.broker.transaction_bench import TransactionBench

LONG = "x" * 249
"""A topic name so long that the tombstone of an offset for this topic does not fit into a batch of `LIMIT_BYTES`."""
LIMIT_BYTES = 300
pytestmark = pytest.mark.rule("GO-9")


def offsets_after_a_move(bench: TransactionBench, groups: Sequence[Group]) -> list[int]:
    """Move partition 0 of `__consumer_offsets` to another broker, and return how many offsets each of these groups has there."""
    before = groups[0].coordinator()
    after = (before + 1) % 3
    reassign(groups[0].offsets, before, after)
    make_lead(groups[0].offsets, after)
    return offsets_at(bench, groups)


def offsets_at(bench: TransactionBench, groups: Sequence[Group]) -> list[int]:
    """Return how many offsets each of these groups has at its coordinator, 0 for a group that it does not know."""
    known = {group.group_id: group for group in bench.cluster.state.nodes[groups[0].coordinator()].groups.groups}
    return [len(known[group.id].offsets) if group.id in known else 0 for group in groups]


@pytest.mark.parametrize("newer", [False, True])
def test_tombstones_of_a_deleted_topic_are_split_only_by_the_coordinator_in_java(newer: bool) -> None:
    """The coordinator in Scala then writes none, and deletes the offsets only in memory. newer: whether the coordinator is the one in Java."""
    bench = TransactionBench(newer=newer, semantics="kafka")
    topic, group = new_topic(bench, partitions=60).name, Group(bench, 0)
    assert set(commit(group, {topic: dict.fromkeys(range(60), (5, ""))}).values()) == {0}
    log = OffsetLog(group)
    with topic_setting(group.offsets, "max.message.bytes", "900"):
        bench.cluster.state.controller.delete_topic(topic)
        sizes = [len(batch) for batch in log.new()]
    assert (sum(sizes), len(sizes) > 1) == ((60, True) if newer else (0, False))
    assert group.committed() == {}
    assert offsets_after_a_move(bench, [group]) == [0 if newer else 60]


def test_too_large_tombstone_of_a_group_does_not_prevent_those_of_other_groups() -> None:
    """Only the tombstone that does not fit is not written, so only its offset is back at a new coordinator."""
    bench = TransactionBench(newer=True, semantics="kafka")
    topic = new_topic(bench).name
    bench.cluster.topic(LONG, 1, 1)
    groups = [Group(bench, 0) for _ in range(6)]
    assert set(commit(groups[0], {LONG: {0: (5, "")}, topic: {0: (5, "")}}).values()) == {0}
    for group in groups[1:]:
        assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): 0}
    with topic_setting(groups[0].offsets, "max.message.bytes", str(LIMIT_BYTES)):
        bench.cluster.state.controller.delete_topic(LONG, topic)
    assert offsets_at(bench, groups) == [0] * 6
    assert offsets_after_a_move(bench, groups) == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("earlier", range(4))
def test_only_the_expired_offset_whose_tombstone_is_too_large_is_not_deleted(earlier: int) -> None:
    """The tombstones of two groups share a batch. The ids of the groups decide their order. earlier: how many ids to skip, to test both orders."""
    config = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "600000"}
    bench = TransactionBench(config, newer=True, semantics="kafka")
    topic = new_topic(bench).name
    bench.cluster.topic(LONG, 1, 1)
    for _ in range(earlier):
        Group(bench, 0)
    groups = short, long = Group(bench, 0), Group(bench, 0)
    assert commit(short, {topic: {0: (5, "")}}) == {(topic, 0): 0}
    assert commit(long, {LONG: {0: (5, "")}}) == {(LONG, 0): 0}
    log = OffsetLog(short)
    with topic_setting(short.offsets, "max.message.bytes", str(LIMIT_BYTES)):
        for _ in range(3):
            bench.cluster.advance(650_000)
    assert log.new() == [[(topic, 0)]]
    assert offsets_at(bench, groups) == [0, 1]
    assert offsets_after_a_move(bench, groups) == [0, 1]


def test_group_is_not_deleted_while_an_expired_offset_has_a_too_large_tombstone() -> None:
    """The group had a generation, which is stored. A new coordinator still knows it."""
    config = {"offsets.retention.minutes": "1", "offsets.retention.check.interval.ms": "600000"}
    bench = TransactionBench(config, newer=True, semantics="kafka")
    bench.cluster.topic(LONG, 1, 1)
    group = Group(bench, 0)
    member = group.client(version=3)
    make_stable(member)
    assert member.commit({LONG: {0: (5, "")}}) == {(LONG, 0): 0}
    assert group.leave((member.member_id, None))[0] == 0
    log = GroupLog(group)
    with topic_setting(group.offsets, "max.message.bytes", str(LIMIT_BYTES)):
        for _ in range(3):
            bench.cluster.advance(650_000)
    assert log.kinds() == []
    assert offsets_after_a_move(bench, [group]) == [1]
    [kept] = bench.cluster.state.nodes[group.coordinator()].groups.groups
    assert (kept.protocol_type, group.state()) == ("consumer", ("Empty", 0))
