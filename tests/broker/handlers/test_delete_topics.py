"""DeleteTopics of a broker with `delete.topic.enable=false`, with the results of Kafka 3.9.1 and 4.2.0."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.metadata import MetadataRequest

TOPICS = ["t", "missing", "t"]


@pytest.mark.rule("AD-44")
@pytest.mark.parametrize("version", range(7))
def test_delete_topics_returns_an_error_for_each_topic_if_topic_deletion_is_disabled(version: int) -> None:
    cluster = VirtualCluster(config={"delete.topic.enable": "false"})
    cluster.topic("t")
    topics = [DeleteTopicState(name) for name in TOPICS]
    request = DeleteTopicsRequest(topics=topics) if version >= 6 else DeleteTopicsRequest(topic_names=TOPICS)
    results = cluster.connect(0).ask(request, version).responses
    code = ErrorCode.INVALID_REQUEST if version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
    assert results == [DeletableTopicResult(name, error_code=int(code)) for name in TOPICS]
    assert [topic.name for topic in cluster.connect(0).ask(MetadataRequest(None), 9).topics] == ["t"]
