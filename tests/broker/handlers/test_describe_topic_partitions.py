"""The broker's limit of partitions in a DescribeTopicPartitions response."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest


@pytest.mark.rule("AD-3")
def test_describe_topic_partitions_with_limit_2_returns_2_partitions_and_a_cursor() -> None:
    cluster = VirtualCluster(1, {"max.request.partition.size.limit": "2"})
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic("t", 5, 1))
    [topic] = (response := cluster.connect().ask(DescribeTopicPartitionsRequest([TopicRequest("t")]), 0)).topics
    assert [p.partition_index for p in topic.partitions] == [0, 1]
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("t", 2)
