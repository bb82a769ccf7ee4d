"""Tests of leader epochs: OffsetForLeaderEpoch, and the offsets of a new leader before it knows its predecessor's high watermark."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.scene import (
    Topic,
    end_of_epoch,
    follow,
    held,
    list_offsets,
    make_lead,
    new_topic,
    read,
    wait_until,
)
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaproto.records.batch import read_header

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


def known(topic: Topic) -> Any:
    """Ask the leader for the latest offset of partition 0. Returns the partition's entry in the ListOffsets response; None after an error.

    A new leader returns an error until it knows the high watermark. Tests call this function until the result is not None.
    """
    result = list_offsets(topic, LATEST)
    return None if result.error_code else result


@pytest.mark.rule("E-1", "E-2")
def test_offset_for_leader_epoch_fails_at_followers_and_with_a_wrong_current_epoch(subject: Subject) -> None:
    """The leader returns the end of an epoch. Other brokers, a wrong current leader epoch, unknown topics and unknown partitions get errors.

    Corresponds to Kafka's tests `OffsetsForLeaderEpochRequestTest.testOffsetsForLeaderEpochErrorCodes`, `testCurrentEpochValidation`.
    """
    topic = new_topic(subject, replication=2)
    epoch = make_lead(topic, 1)
    topic.fill(batch(b"a"))
    for version in subject.served(ApiKey.OFFSET_FOR_LEADER_EPOCH, range(5)):
        assert end_of_epoch(topic, epoch, version) == (0, epoch if version >= 1 else -1, 1)
        assert [end_of_epoch(topic, epoch, version, broker_id=b) for b in (0, 2)] == [(6, -1, -1)] * 2
    for version in (2, 3, 4):
        at_leader = [end_of_epoch(topic, epoch, version, current=epoch + step)[0] for step in (-1, 0, 1)]
        at_follower = [end_of_epoch(topic, epoch, version, current=epoch + s, broker_id=0)[0] for s in (-1, 0, 1)]
        assert (at_leader, at_follower) == ([74, 0, 75], [74, 6, 75])
    expected = [
        OffsetForLeaderTopic("no-such-topic", [OffsetForLeaderPartition(0, -1, 0)]),
        OffsetForLeaderTopic(topic.name, [OffsetForLeaderPartition(9, -1, 0)]),
    ]
    response = subject.ask(topic.connect(), OffsetForLeaderEpochRequest(-1, expected), 3)
    result = {
        (t.topic, p.partition): (p.error_code, p.leader_epoch, p.end_offset)
        for t in response.topics
        for p in t.partitions
    }
    assert result == {("no-such-topic", 0): (3, -1, -1), (topic.name, 9): (3, -1, -1)}


@pytest.mark.rule("E-5")
def test_offset_for_leader_epoch_lists_topics_and_partitions_in_request_order(subject: Subject) -> None:
    names = [new_topic(subject, 3).name, "no-such-topic", new_topic(subject, 3).name]
    for version in subject.served(ApiKey.OFFSET_FOR_LEADER_EPOCH, range(5)):
        for ordered in (names, names[::-1]):
            topics = [OffsetForLeaderTopic(n, [OffsetForLeaderPartition(p, -1, 0) for p in (2, 0, 1)]) for n in ordered]
            response = subject.ask_once(OffsetForLeaderEpochRequest(-1, topics), version)
            assert [(t.topic, [p.partition for p in t.partitions]) for t in response.topics] == [
                (name, [2, 0, 1]) for name in ordered
            ]


@pytest.mark.rule("E-3", "E-4", "M-6")
def test_offset_for_leader_epoch_returns_the_end_offset_of_each_epoch_in_a_log(subject: Subject) -> None:
    """Leadership moves four times. For each epoch, the end offset in the response is the start of the next epoch in the log.

    An epoch in which no record was written is not in the log.
    """
    topic = new_topic(subject, replication=3)
    starts = {topic.leader_epoch: 0}
    topic.fill(*[batch(b"a")] * 2)
    for leader, records in ((1, 3), (2, 0), (0, 1), (1, 2)):
        epoch = make_lead(topic, leader)
        assert epoch > max(starts)
        end = list_offsets(topic, LATEST, replica_id=-2).offset
        starts = {e: s for e, s in starts.items() if s < end} | {epoch: end}
        topic.fill(*[batch(b"b")] * records)
    epochs, end = list(starts), list_offsets(topic, LATEST, replica_id=-2).offset
    assert end == 8
    for requested in range(max(epochs) + 3):
        at = bisect_right(epochs, requested) - 1
        expected = (0, epochs[at], starts[epochs[at + 1]]) if at + 1 < len(epochs) else (0, epochs[at], end)
        if requested > epochs[-1]:
            expected = (0, -1, -1)
        assert end_of_epoch(topic, requested) == expected, (requested, starts)
    assert end_of_epoch(topic, -1) == (0, -1, -1)
    # the batches contain the same epochs
    for epoch, start in starts.items():
        if start < end:
            assert read_header(read(topic, start, partition_max=0).records).partition_leader_epoch == epoch


@pytest.mark.rule("D4")
def test_offset_for_leader_epoch_returns_offsets_above_the_high_watermark(subject: Subject) -> None:
    topic = new_topic(subject, replication=2)
    topic.fill(batch(b"a"), batch(b"b"))
    epoch = topic.leader_epoch
    with held(subject, topic, 1):
        topic.fill(batch(b"c"), acks=1)
        assert end_of_epoch(topic, epoch, replica_id=-1)[2] == (2 if subject.semantics == "kip" else 3)
        assert end_of_epoch(topic, epoch, replica_id=-2)[2] == end_of_epoch(topic, epoch, replica_id=1)[2] == 3
        assert end_of_epoch(topic, epoch, 2)[2] == 3


@pytest.mark.rule("L-8", "D4", "N-11")
def test_new_leader_rejects_list_offsets_latest_until_the_old_records_are_committed(subject: Subject) -> None:
    """Leadership moves when 2 of 5 records are committed. ListOffsets for the latest offset gets errors until the other 3 are committed.

    Corresponds to Kafka's test `PartitionTest.testMonotonicOffsetsAfterLeaderChange`.
    """
    topic = new_topic(subject, replication=3)
    topic.fill(batch(b"0", timestamp=10), batch(b"1", timestamp=11))
    with held(subject, topic, 2):
        follow(topic, 2, 2)
        topic.fill(*[batch(b"x", timestamp=t) for t in (12, 13, 14)], acks=1)
        assert list_offsets(topic, LATEST).offset == 2
        old_epoch = topic.leader_epoch
        epoch = make_lead(topic, 1)
        assert list_offsets(topic, LATEST, replica_id=-2).offset == 5
        for version in (4, 5, 7):
            error = 78 if version >= 5 else 5
            requested = [LATEST, 100, *([MAX_TIMESTAMP] if version >= 7 else [])]
            assert [list_offsets(topic, t, version).error_code for t in requested] == [error] * len(requested)
            assert list_offsets(topic, EARLIEST, version).offset == 0
            hit = list_offsets(topic, 11, version)
            assert (hit.offset, hit.timestamp, hit.leader_epoch) == (1, 11, old_epoch)
        if subject.semantics == "kip":
            assert end_of_epoch(topic, epoch, replica_id=-1) == (78, -1, -1)
        else:
            assert end_of_epoch(topic, epoch, replica_id=-1) == (0, epoch, 5)
        assert end_of_epoch(topic, old_epoch, replica_id=-1)[0] == 0
        assert end_of_epoch(topic, old_epoch, replica_id=-2) == (0, old_epoch, 5)
        follow(topic, 2, 5)
        result = wait_until(subject, lambda: known(topic), f"the new leader of {topic.name}-0 knows the high watermark")
        assert (result.offset, result.leader_epoch) == (5, epoch)
        none = list_offsets(topic, 100)
        assert (none.error_code, none.offset, none.timestamp, none.leader_epoch) == (0, -1, -1, -1)
