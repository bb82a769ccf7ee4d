"""Tests of `group.coordinator.append.linger.ms`: the group coordinator in Java collects records of several requests for this time into one batch."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.client import Answer, Connection
from kafkaproto.conformance.consumer_groups import ALL, ConsumerGroup
from kafkaproto.conformance.group_log import OffsetLog
from kafkaproto.conformance.groups import Group, commit
from kafkaproto.conformance.scene import Topic, new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.transactions import Producer
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

PROFILE = "append-linger"
pytestmark = pytest.mark.needs("group.coordinator.append.linger.ms", offsets_topic=True)
LINGER_MS = 1_500
"""The time in ms for which the coordinator collects records, as the profile `append-linger` sets it."""
BETWEEN_MS = 300
"""The time in ms between two requests whose records are in one batch."""


def send_commit(subject: Subject, group: Group, topic: Topic, index: int, size: int = 0) -> Connection:
    """Send an OffsetCommit for one partition without waiting for the response. Returns the connection. size: the length of its metadata."""
    connection = group.connect()
    partition = OffsetCommitRequestPartition(index, 5, committed_metadata="m" * size)
    request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic.name, partitions=[partition])])
    subject.send(connection, request, 8)
    return connection


def producer_of(group: Group) -> Producer:
    """Return a producer with an open transaction to which the group's offsets were added (AddOffsetsToTxn)."""
    producer = Producer(group.subject)
    producer.init()
    assert producer.add_offsets(group) == 0
    return producer


def committed(subject: Subject, connection: Connection) -> Answer:
    """Return the next response of a connection, which must be a successful OffsetCommit."""
    response = subject.answer(connection)
    assert response.message.topics[0].partitions[0].error_code == 0
    return response


@pytest.mark.rule("GO-4")
def test_commits_within_the_append_linger_are_one_batch_and_answered_together(subject: Subject) -> None:
    """Two OffsetCommits of a group are sent 300 ms apart. Both get their response when the linger that began with the first one ends."""
    topic, group = new_topic(subject, partitions=4), Group(subject, 0)
    log = OffsetLog(group)
    first = send_commit(subject, group, topic, 2)
    start_ms = subject.now_ms()
    subject.pass_ms(BETWEEN_MS)
    second = send_commit(subject, group, topic, 1)
    between_ms = subject.now_ms() - start_ms
    subject.assert_took(committed(subject, first), LINGER_MS)
    subject.assert_took(committed(subject, second), LINGER_MS - between_ms)
    assert log.new() == [[(topic.name, 2), (topic.name, 1)]]
    third = send_commit(subject, group, topic, 3)
    subject.assert_took(committed(subject, third), LINGER_MS)
    assert log.new() == [[(topic.name, 3)]]


@pytest.mark.rule("GO-4")
def test_commit_in_a_transaction_ends_the_append_linger_at_once(subject: Subject) -> None:
    """The coordinator appends the records that it has collected, and then at once those of the TxnOffsetCommit."""
    topic, group = new_topic(subject, partitions=4), Group(subject, 0)
    producer = producer_of(group)
    log = OffsetLog(group)
    plain = send_commit(subject, group, topic, 2)
    subject.pass_ms(BETWEEN_MS)
    start_ms = subject.now_ms()
    assert producer.commit_offsets(group, {(topic.name, 1): 6}) == {(topic.name, 1): 0}
    assert subject.now_ms() - start_ms < LINGER_MS - 2 * BETWEEN_MS
    assert committed(subject, plain).elapsed_ms < LINGER_MS - subject.early_ms
    assert log.new() == [[(topic.name, 2)], [(topic.name, 1)]]
    assert producer.end(commit=True)[0] == 0


@pytest.mark.rule("GO-4")
def test_end_of_a_transaction_ends_the_append_linger_at_once(subject: Subject) -> None:
    topic, group = new_topic(subject, partitions=4), Group(subject, 0)
    producer = producer_of(group)
    assert producer.commit_offsets(group, {(topic.name, 1): 6}) == {(topic.name, 1): 0}
    plain = send_commit(subject, group, topic, 2)
    subject.pass_ms(BETWEEN_MS)
    assert producer.end(commit=True)[0] == 0
    assert committed(subject, plain).elapsed_ms < LINGER_MS - subject.early_ms


@pytest.mark.rule("GO-4", "GC-66")
def test_heartbeat_without_a_change_waits_for_collected_records_of_another_group(subject: Subject) -> None:
    """While the coordinator collects a commit of another group in the same partition, the heartbeat waits for it. Otherwise it does not wait."""
    topic, group, other = new_topic(subject, partitions=4), Group(subject, 0), ConsumerGroup(subject, 0)
    start_ms = subject.now_ms()
    assert other.enter("A") == (1, ALL)
    assert subject.now_ms() - start_ms >= LINGER_MS - subject.early_ms
    start_ms = subject.now_ms()
    assert other.beat("A", 1) == (1, None)
    assert subject.now_ms() - start_ms < LINGER_MS - subject.early_ms
    plain = send_commit(subject, group, topic, 2)
    start_ms = subject.now_ms()
    subject.pass_ms(BETWEEN_MS)  # so that the coordinator has received the commit
    assert other.beat("A", 1) == (1, None)
    assert subject.now_ms() - start_ms >= LINGER_MS - subject.early_ms
    subject.assert_took(committed(subject, plain), LINGER_MS)


@pytest.mark.rule("GO-4", "GO-9")
def test_tombstones_of_offset_delete_are_collected_during_the_append_linger(subject: Subject) -> None:
    topic, group, other = new_topic(subject, partitions=4), Group(subject, 0), Group(subject, 0)
    assert commit(group, {topic.name: {2: (5, "")}}) == {(topic.name, 2): 0}
    log, logged = OffsetLog(group), OffsetLog(other)
    plain = send_commit(subject, other, topic, 1)
    assert group.delete_offsets({topic.name: [2]}) == (0, {(topic.name, 2): 0})
    subject.assert_took(committed(subject, plain), LINGER_MS)
    assert (log.new(), logged.new()) == ([[(topic.name, 2)]], [[(topic.name, 1)]])
    assert group.committed() == {}
