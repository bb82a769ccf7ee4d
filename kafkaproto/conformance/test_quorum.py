"""Tests of DescribeQuorum: the controllers, and the brokers that follow them."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.scene import new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)

LOG = "__cluster_metadata"
CLOCK_SLACK_MS = 10_000


def describe(subject: Subject, version: int, *topics: tuple[str, list[int]]) -> Any:
    requested = [
        DescribeQuorumRequestTopicData(name, [DescribeQuorumRequestPartitionData(i) for i in indexes])
        for name, indexes in topics
    ]
    return subject.ask_once(DescribeQuorumRequest(requested), version)


@pytest.mark.rule("AD-24", "AD-25")
@pytest.mark.parametrize("version", range(3))
def test_describe_quorum_returns_a_leader_and_all_brokers_as_replicas(subject: Subject, version: int) -> None:
    response = describe(subject, version, (LOG, [0]))
    assert (response.error_code, response.error_message) == (0, "")
    [topic] = response.topics
    [partition] = topic.partitions
    assert (topic.topic_name, partition.partition_index, partition.error_code, partition.error_message) == (
        LOG,
        0,
        0,
        "",
    )
    voters, observers = partition.current_voters, partition.observers
    [leader] = [voter for voter in voters if voter.replica_id == partition.leader_id]
    assert partition.leader_epoch >= 1
    assert 0 < partition.high_watermark <= leader.log_end_offset
    replicas = [replica.replica_id for replica in (*voters, *observers)]
    assert len(set(replicas)) == len(replicas) and set(replicas) >= set(range(len(subject.bootstrap)))
    for replica in (*voters, *observers):
        assert replica.log_end_offset > 0
        if version == 0:
            assert (replica.last_fetch_timestamp, replica.last_caught_up_timestamp) == (-1, -1)
        else:
            assert abs(replica.last_fetch_timestamp - subject.epoch_ms()) < CLOCK_SLACK_MS
            assert abs(replica.last_caught_up_timestamp - subject.epoch_ms()) < CLOCK_SLACK_MS
    assert leader.replica_directory_id == bytes(16)
    assert {observer.replica_directory_id == bytes(16) for observer in observers} <= {version < 2}
    assert [node.node_id for node in response.nodes] == ([voter.replica_id for voter in voters] if version >= 2 else [])


@pytest.mark.rule("AD-24", "SN-71")
def test_describe_quorum_accepts_only_partition_0_of_the_metadata_topic(subject: Subject) -> None:
    assert describe(subject, 2).topics == []
    requests: list[list[tuple[str, list[int]]]] = [
        [("some-topic", [0, 3])],
        [(LOG, [1])],
        [(LOG, [0, 1])],
        [("some-topic", [0]), (LOG, [0])],
        [(LOG, [])],
    ]
    for topics in requests:
        response = describe(subject, 2, *topics)
        assert (response.error_code, response.nodes) == (0, [])
        assert [(t.topic_name, [p.partition_index for p in t.partitions]) for t in response.topics] == topics
        for partition in [p for t in response.topics for p in t.partitions]:
            assert (partition.error_code, partition.leader_id, partition.leader_epoch) == (3, 0, 0)
            assert (partition.high_watermark, partition.current_voters, partition.observers) == (0, [], [])
            assert partition.error_message == "This server does not host this topic-partition."


@pytest.mark.rule("AD-25")
def test_describe_quorum_high_watermark_grows_when_a_topic_is_created(subject: Subject) -> None:
    def end() -> int:
        return int(describe(subject, 2, (LOG, [0])).topics[0].partitions[0].high_watermark)

    before = end()
    new_topic(subject)
    wait_until(subject, lambda: end() > before, f"the high watermark of the metadata log is above {before}")
