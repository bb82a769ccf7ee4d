"""Tests of requests that no Kafka client sends: with an invalid isolation level, or with a partition that is named twice."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import LATEST, new_topic, read
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, fetch, flat
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

FIRST_VERSION_WITH_ERROR, FIRST_VERSION_BY_ID = 7, 13


@pytest.mark.rule("W-7", "F-15")
@pytest.mark.parametrize("version", [4, 6, 8, 11, 12, 13, 17])
@pytest.mark.parametrize("isolation", [2, -1])
def test_invalid_isolation_level_gives_an_error_for_the_whole_fetch(
    subject: Subject, version: int, isolation: int
) -> None:
    topic = new_topic(subject)
    topic.fill(batch(b"v"))
    request = fetch((topic.name, 0, 0), isolation=isolation, version=version, topic_ids={topic.name: topic.topic_id})
    response = subject.ask(topic.connect(), request, version)
    assert response.error_code == (-1 if version >= FIRST_VERSION_WITH_ERROR else 0)
    assert [data.error_code for _, data in flat(response)] == ([] if version >= FIRST_VERSION_BY_ID else [-1])


@pytest.mark.rule("W-7", "L-4")
def test_invalid_isolation_level_gives_an_error_for_every_list_offsets_partition(subject: Subject) -> None:
    topic = new_topic(subject)
    request = ListOffsetsRequest(-1, 2, [ListOffsetsTopic(topic.name, [ListOffsetsPartition(0, -1, LATEST)])])
    [topic_result] = subject.ask(topic.connect(), request, 7).topics
    assert [(p.error_code, p.offset) for p in topic_result.partitions] == [(-1, -1)]


@pytest.mark.rule("P-3")
@pytest.mark.parametrize("version", [3, 9])
def test_produce_that_names_a_partition_twice_appends_only_the_last_batch(subject: Subject, version: int) -> None:
    topic = new_topic(subject, 2)
    first, last = (PartitionProduceData(0, batch(value)) for value in (b"first", b"last!"))
    for lists in ([[first, last]], [[first], [last]]):
        request = ProduceRequest(None, 1, 1000, [TopicProduceData(topic.name, partition_data=parts) for parts in lists])
        response = subject.ask(topic.connect(), request, version)
        assert [p.error_code for t in response.responses for p in t.partition_responses] == [0]
    stored = bytes(read(topic, 0).records)
    assert stored.count(b"first") == 0 and stored.count(b"last!") == 2
