"""Tests of the batches that the group coordinator in Java writes to the offsets topic, for requests that name partitions twice or several groups.

Kafka 4 always uses this coordinator; Kafka 3.9 uses it if the new protocol (KIP-848) is enabled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from kafkaproto.conformance.group_log import OffsetLog
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.test_java_coordinator import java
from kafkaproto.conformance.test_transactions import begun
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)

PROFILE = "consumer"
pytestmark = pytest.mark.needs(offsets_topic=True)
__all__ = ["java"]

TOO_LONG = "x" * 4097
TOO_LARGE = 12
Commits = Sequence[tuple[int, int, str]]
"""The entries of an offset commit for one topic: (partition, offset, metadata) of each."""


def commit_errors(group: Group, topic: str, commits: Commits) -> list[int]:
    """Commit offsets with OffsetCommit, and return the error code of each entry."""
    partitions = [OffsetCommitRequestPartition(index, offset, -1, -1, text) for index, offset, text in commits]
    request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=partitions)])
    return [p.error_code for t in group.ask(request, 8).topics for p in t.partitions]


def commit_errors_in_transaction(group: Group, topic: str, commits: Commits) -> list[int]:
    """Commit offsets with TxnOffsetCommit in a transaction that stays open, and return the error code of each entry."""
    producer = begun(group.subject, new_topic(group.subject))
    assert producer.add_offsets(group) == 0
    partitions = [TxnOffsetCommitRequestPartition(index, offset, -1, text) for index, offset, text in commits]
    numbers = producer.producer_id, producer.epoch
    topics = [TxnOffsetCommitRequestTopic(topic, partitions)]
    response = group.ask(TxnOffsetCommitRequest(producer.id, group.id, *numbers, topics=topics), 3)
    return [p.error_code for t in response.topics for p in t.partitions]


@pytest.mark.rule("GO-4", "GO-15")
@pytest.mark.parametrize("commit", [commit_errors, commit_errors_in_transaction])
@pytest.mark.parametrize("long", [(), (3,), (0,), (0, 2, 3)])
def test_offset_commit_writes_a_record_each_time_that_it_names_a_partition(
    java: Subject, commit: Callable[[Group, str, Commits], list[int]], long: Sequence[int]
) -> None:
    """An entry whose metadata is too long gets no record. long: the positions of these entries."""
    group, topic = Group(java, 0), new_topic(java, partitions=2).name
    commits = [(i, 5 + n, TOO_LONG if n in long else "") for n, i in enumerate((0, 1, 0, 0, 1))]
    log = OffsetLog(group)
    assert commit(group, topic, commits) == [TOO_LARGE if n in long else 0 for n in range(5)]
    written = [(group.id, (topic, index), offset) for index, offset, text in commits if not text]
    assert [batch for batch in log.all_groups() if batch[0][0] == group.id] == [written]
    if commit is commit_errors:
        assert group.committed() == {key: offset for _, key, offset in written}


@pytest.mark.rule("GO-9")
def test_offset_delete_writes_a_tombstone_each_time_that_it_names_a_partition(java: Subject) -> None:
    """A partition without a committed offset gets no tombstone."""
    group, topic = Group(java, 0), new_topic(java, partitions=6).name
    assert commit_errors(group, topic, [(0, 5, ""), (1, 6, ""), (4, 7, "")]) == [0, 0, 0]
    log = OffsetLog(group)
    parts = [(1, 0, 4, 1, 5, 0, 5), (0,)]
    topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(i) for i in part]) for part in parts]
    response = group.ask(OffsetDeleteRequest(group.id, topics), 0)
    assert {p.error_code for t in response.topics for p in t.partitions} == {0}
    assert log.new() == [[(topic, index) for index in (1, 0, 4, 1, 0, 0)]]
    assert group.committed() == {}
