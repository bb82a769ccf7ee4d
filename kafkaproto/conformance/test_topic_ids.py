"""Tests of the versions of Produce, OffsetCommit and OffsetFetch that name topics by id, and of missing topics in offset requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.internal_topics import read_to_the_end
from kafkaproto.conformance.scene import Topic, list_offsets, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
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
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

pytestmark = pytest.mark.needs(offsets_topic=True)

PRODUCE_BY_ID, COMMIT_BY_ID, BY_NAME = 13, 10, 9
UNKNOWN_PARTITION, UNKNOWN_MEMBER, TOPIC_EXISTS, UNKNOWN_ID = 3, 25, 36, 100
INVALID_ACKS, LATEST = 21, -1
NO_ID, NO_SUCH_ID = bytes(16), bytes([1] * 16)
Parts = tuple[str | bytes, Sequence[tuple[int, int]]]
"""A topic, by name or id, with its partitions: (topic, [(partition, offset)]) in requests, (topic, [(partition, error code)]) in results."""


def write(topic: Topic, *parts: tuple[bytes, Sequence[int]], acks: int = -1) -> list[Parts]:
    """Produce a batch to each of these partitions, with topics given by id.

    topic: the leader of its first partition gets the request. parts: (topic id, partitions). acks: as in a Produce request. Returns (topic id,
    [(partition, error code)]) of each topic, in the order of the response.
    """
    data = [TopicProduceData("", key, [PartitionProduceData(index, batch(b"x")) for index in ps]) for key, ps in parts]
    response = topic.subject.ask_once(ProduceRequest(None, acks, 5000, data), PRODUCE_BY_ID, topic.leader())
    return [(t.topic_id, [(p.index, p.error_code) for p in t.partition_responses]) for t in response.responses]


def split(key: str | bytes) -> dict[str, Any]:
    return {"name": key} if isinstance(key, str) else {"topic_id": key}


def named(topic: Any) -> str | bytes:
    key: str | bytes = topic.name or topic.topic_id
    return key


def commit(group: Group, *parts: Parts, version: int = COMMIT_BY_ID, **member: Any) -> list[Parts]:
    """Commit offsets, and return (topic, [(partition, error code)]) of each topic, in the order of the response.

    parts: (topic name or id, [(partition, offset)]) of each topic. member: further fields of the request, such as the member id.
    """
    topics = [
        OffsetCommitRequestTopic(**split(key), partitions=[OffsetCommitRequestPartition(*pair) for pair in pairs])
        for key, pairs in parts
    ]
    response = group.ask(OffsetCommitRequest(group.id, topics=topics, **member), version)
    return [(named(t), [(p.partition_index, p.error_code) for p in t.partitions]) for t in response.topics]


def committed(
    group: Group, topics: Sequence[tuple[str | bytes, Sequence[int]]] | None, version: int = COMMIT_BY_ID
) -> list[tuple[str | bytes, list[tuple[int, int, int]]]]:
    """Fetch committed offsets. Returns (topic, [(partition, offset, error code)]) of each topic in the response.

    topics: (topic, partitions) of the offsets to fetch; None for all offsets of the group. A topic is given and returned by its name (str) or its id
    (bytes). version: the version of OffsetFetch. As in OffsetCommit, `COMMIT_BY_ID` (10) is the first version with topic ids.
    """
    requested_topics = None
    if topics is not None:
        requested_topics = [
            OffsetFetchRequestTopics(**split(key), partition_indexes=list(indexes)) for key, indexes in topics
        ]
    response = group.ask(
        OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group.id, topics=requested_topics)]), version
    )
    [result] = response.groups
    assert result.error_code == 0
    return [
        (named(t), [(p.partition_index, p.committed_offset, p.error_code) for p in t.partitions]) for t in result.topics
    ]


@pytest.mark.rule("P-24")
@pytest.mark.releases(first="4.1")
def test_produce_by_topic_id_appends_records_and_rejects_unknown_topic_ids(subject: Subject) -> None:
    topic = new_topic(subject, partitions=2)
    own = topic.topic_id
    assert write(topic, (own, [0])) == [(own, [(0, 0)])]
    unknown = [(NO_SUCH_ID, [(0, UNKNOWN_ID)])]
    assert write(topic, (NO_SUCH_ID, [0])) == unknown
    assert write(topic, (NO_SUCH_ID, [0]), (own, [0, 9])) == [(own, [(0, 0), (9, UNKNOWN_PARTITION)]), *unknown]
    assert write(topic, (NO_ID, [0])) == [(NO_ID, [(0, UNKNOWN_ID)])]
    assert write(topic, (own, [0]), (NO_SUCH_ID, [0]), acks=7) == [(own, [(0, INVALID_ACKS)]), *unknown]
    assert write(topic, (own, [0]), (own, [0])) == [(own, [(0, 0)])]
    assert list_offsets(topic, LATEST).offset == 3


@pytest.mark.rule("GO-34")
@pytest.mark.releases(first="4.2")
def test_offsets_are_committed_and_fetched_by_topic_id(subject: Subject) -> None:
    topic, group = new_topic(subject, partitions=2), Group(subject)
    own = topic.topic_id
    assert commit(group, (own, [(0, 5), (1, 6)])) == [(own, [(0, 0), (1, 0)])]
    unknown, nameless = (NO_SUCH_ID, [(0, UNKNOWN_ID)]), (NO_ID, [(0, UNKNOWN_ID)])
    assert commit(group, (NO_SUCH_ID, [(0, 1)])) == [unknown]
    mixed = commit(group, (NO_SUCH_ID, [(0, 1)]), (own, [(0, 7), (9, 1)]), (NO_ID, [(0, 1)]))
    assert mixed == [unknown, (own, [(9, UNKNOWN_PARTITION), (0, 0)]), nameless]
    member: dict[str, Any] = {"generation_id_or_member_epoch": 3, "member_id": "none"}
    assert commit(group, (NO_SUCH_ID, [(0, 1)]), (own, [(0, 8)]), **member) == [unknown, (own, [(0, UNKNOWN_MEMBER)])]
    assert committed(group, [(own, [0, 1])]) == [(own, [(0, 7, 0), (1, 6, 0)])]
    offsets = committed(group, [(NO_SUCH_ID, [0]), (own, [0, 9]), (NO_ID, [0, 1])])
    assert offsets == [
        (own, [(0, 7, 0), (9, -1, 0)]),
        (NO_SUCH_ID, [(0, -1, UNKNOWN_ID)]),
        (NO_ID, [(0, -1, UNKNOWN_ID), (1, -1, UNKNOWN_ID)]),
    ]
    assert committed(group, None) == [(own, [(0, 7, 0), (1, 6, 0)])]
    assert committed(group, []) == []


@pytest.mark.rule("GO-34")
@pytest.mark.releases(first="4.2")
def test_offsets_of_a_deleted_topic_id_cannot_be_committed_or_fetched(subject: Subject) -> None:
    topic, group = new_topic(subject), Group(subject)
    own = topic.topic_id
    assert commit(group, (own, [(0, 5)])) == [(own, [(0, 0)])]
    deletion = DeleteTopicsRequest(topic_names=[topic.name], timeout_ms=5000)
    assert subject.ask_once(deletion, 3).responses[0].error_code == 0
    unknown_id = [(own, [(0, UNKNOWN_ID)])]
    wait_until(
        subject,
        lambda: commit(group, (own, [(0, 6)])) == unknown_id,
        f"the coordinator of group {group.id} knows that topic {topic.name} is deleted",
    )
    recreated_topic = new_topic(subject, name=topic.name)
    assert commit(group, (own, [(0, 6)])) == unknown_id
    assert committed(group, [(own, [0])]) == [(own, [(0, -1, UNKNOWN_ID)])]
    assert committed(group, [(recreated_topic.topic_id, [0])]) == [(recreated_topic.topic_id, [(0, -1, 0)])]


@pytest.mark.rule("GO-6", "GO-34", "SN-25")
@pytest.mark.releases(first="4.2")
def test_record_of_an_offset_committed_by_topic_id_contains_the_topic_id(subject: Subject) -> None:
    """A commit by topic id stores the id as tag 0 of the record, and a commit by name stores no tag (scenario SN-25)."""
    topic, group = new_topic(subject), Group(subject)
    own = topic.topic_id
    assert commit(group, (own, [(0, 5)])) == [(own, [(0, 0)])]
    assert commit(group, (topic.name, [(0, 5)]), version=BY_NAME) == [(topic.name, [(0, 0)])]
    name = topic.name.encode()
    by_id, by_name = (
        record.value
        for record in read_to_the_end(group.offsets, group.index)
        if record.key is not None and name in record.key and record.value is not None
    )
    offset, no_metadata = (5).to_bytes(8, "big") + b"\xff" * 4, b"\1"
    for value, tags in ((by_id, b"\1\0\x10" + own), (by_name, b"\0")):
        time = value[len(offset) + 3 : len(value) - len(tags)]
        assert (value, len(time)) == (b"\0\4" + offset + no_metadata + time + tags, 8)


@pytest.mark.rule("GO-34")
@pytest.mark.releases(first="4.2")
def test_offset_committed_by_topic_id_is_not_returned_for_a_recreated_topic(subject: Subject) -> None:
    """A committed offset outlives its topic if the coordinator is stopped while the topic is deleted and created again.

    OffsetFetch by topic name, or for all topics, still returns the offset. OffsetFetch by the id of the new topic returns the offset only if the
    OffsetCommit request identified the old topic by its name.
    """
    subject.need_broker(2)
    topic, named_topic = new_topic(subject), new_topic(subject)
    group = _group_without_broker_0(subject)
    assert commit(group, (topic.topic_id, [(0, 5)])) == [(topic.topic_id, [(0, 0)])]
    assert commit(group, (named_topic.name, [(0, 6)]), version=BY_NAME) == [(named_topic.name, [(0, 0)])]
    coordinator = group.coordinator()
    subject.stop_broker(coordinator)
    names = [topic.name, named_topic.name]
    _create_again(subject, names)
    subject.start_broker(coordinator)
    assert group.coordinator() == coordinator
    by_id, by_name = topic.topic_id, named_topic.topic_id
    only_by_name = [(by_id, [(0, -1, 0)]), (by_name, [(0, 6, 0)])]
    wait_until(
        subject,
        lambda: committed(group, [(by_id, [0]), (by_name, [0])]) == only_by_name,
        f"the coordinator of group {group.id} knows the recreated topics {', '.join(names)}",
    )
    by_name_only = committed(group, [(name, [0]) for name in names], version=BY_NAME)
    assert by_name_only == [(names[0], [(0, 5, 0)]), (names[1], [(0, 6, 0)])]
    assert sorted(committed(group, None)) == sorted([(by_id, [(0, 5, 0)]), (by_name, [(0, 6, 0)])])
    assert commit(group, (names[0], [(0, 7)]), version=BY_NAME) == [(names[0], [(0, 0)])]
    assert committed(group, [(by_id, [0])]) == [(by_id, [(0, 7, 0)])]


def _group_without_broker_0(subject: Subject) -> Group:
    """Return a group whose coordinator is not broker 0.

    The tests send broker 0 all requests that are not about groups, so broker 0 must keep running. The coordinator of this group can be stopped.
    """
    while not (group := Group(subject)).coordinator():
        pass
    return group


def _create_again(subject: Subject, names: Sequence[str]) -> None:
    """Delete topics and create them with the same names, each with one partition on broker 0. The other brokers may be stopped."""
    deletion = DeleteTopicsRequest(topic_names=[*names], timeout_ms=5000)
    assert [t.error_code for t in subject.ask_once(deletion, 3).responses] == [0] * len(names)
    replicas = [CreatableReplicaAssignment(0, [0])]
    creation = CreateTopicsRequest([CreatableTopic(name, -1, -1, replicas) for name in names], 5000)
    wait_until(
        subject,
        lambda: {t.error_code for t in subject.ask_once(creation, 5).topics} <= {0, TOPIC_EXISTS},
        f"the topics {', '.join(names)} exist again",
    )


@pytest.mark.rule("GO-15", "GC-60")
def test_nonexistent_topics_come_first_in_offset_commit_and_offset_delete_responses(subject: Subject) -> None:
    topic, group = new_topic(subject).name, Group(subject)
    for version in (2, BY_NAME):
        assert commit(group, ("missing", []), version=version) == [("missing", [])]
        mixed = commit(group, (topic, [(0, 5)]), ("missing", []), version=version)
        assert mixed == [("missing", []), (topic, [(0, 0)])]
        assert commit(group, (topic, []), ("missing", []), version=version) == [("missing", [])]
    topics = [OffsetDeleteRequestTopic(topic, [OffsetDeleteRequestPartition(0)]), OffsetDeleteRequestTopic("missing")]
    response = group.ask(OffsetDeleteRequest(group.id, topics), 0)
    assert [(t.name, len(t.partitions)) for t in response.topics] == [("missing", 0), (topic, 1)]
