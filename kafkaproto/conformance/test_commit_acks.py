"""Tests of a group coordinator in Scala whose writes to the offsets topic fail, because `offsets.commit.required.acks` is above 1."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.groups import Group, commit
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer

PROFILE = "commit-acks"
pytestmark = [pytest.mark.needs("offsets.commit.required.acks", brokers=2), pytest.mark.releases(before="4.0")]
INVALID_REQUIRED_ACKS, REBALANCE_IN_PROGRESS = 21, 27


@pytest.mark.rule("GO-23")
def test_offset_commits_fail_if_offsets_commit_required_acks_is_2(subject: Subject) -> None:
    """OffsetCommit and TxnOffsetCommit get INVALID_REQUIRED_ACKS and have no effect."""
    topic = new_topic(subject).name
    group = Group(subject)
    assert commit(group, {topic: {0: (5, "")}}) == {(topic, 0): INVALID_REQUIRED_ACKS}
    producer = Producer(subject)
    producer.init()
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic, 0): 6}) == {(topic, 0): INVALID_REQUIRED_ACKS}
    assert producer.end(commit=True)[0] == 0
    assert group.committed() == {}
    assert group.state() == ("Empty", 0)


@pytest.mark.rule("GC-39", "GO-23")
def test_sync_group_fails_if_offsets_commit_required_acks_is_2(subject: Subject) -> None:
    """The leader's SyncGroup gets INVALID_REQUIRED_ACKS, and the group rebalances. The same happens with the next SyncGroup."""
    group = Group(subject)
    client = group.client()
    for generation, join in ((1, client.enter), (2, client.join)):
        assert join().generation_id == generation
        synced = client.sync({client.member_id: b"a"})
        assert (synced.error_code, synced.assignment) == (INVALID_REQUIRED_ACKS, b"")
        assert group.state() == ("PreparingRebalance", 1)
        assert client.heartbeat() == REBALANCE_IN_PROGRESS
