"""DescribeProducers (key 61, version 0): the producers with state in partitions that this broker hosts (KIP-664).

Behaviour: the response contains the epoch, the last sequence number, the coordinator epoch and the start of the open transaction of each producer; -1
stands for none. A producer is listed until its state expires. A follower describes its own replica (TX-74, TX-75).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import NOT_HOSTED, KafkaError
from kafkaproto.broker.metadata.planning import topic_name_is_legal, why_illegal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)


def _failed(exchange: Exchange, request: DescribeProducersRequest, error_code: int) -> Reply:
    topics = [
        TopicResponse(topic.name, [PartitionResponse(index, int(error_code)) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    return Reply(DescribeProducersResponse(topics=topics))


@register(ApiKey.DESCRIBE_PRODUCERS, _failed)
def describe_producers(exchange: Exchange, request: DescribeProducersRequest) -> Reply:
    topics = [
        TopicResponse(topic.name, [_describe(exchange, topic.name, index) for index in topic.partition_indexes])
        for topic in request.topics
    ]
    return Reply(DescribeProducersResponse(topics=topics))


def _describe(exchange: Exchange, topic: str, index: int) -> PartitionResponse:
    try:
        if not topic_name_is_legal(topic):
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, why_illegal(topic))
        if topic not in exchange.node.image.topics:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED)
        partition = exchange.node.replicas.partitions.get((topic, index))
        if partition is None:
            is_known = exchange.node.image.partition(topic, index) is not None
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    except KafkaError as error:
        return PartitionResponse(index, int(error.error_code), error.message or None)
    producers = [
        ProducerState(
            producer_id,
            entry.epoch,
            entry.last_sequence,
            entry.last_timestamp,
            entry.coordinator_epoch,
            entry.first_open_offset,
        )
        for producer_id, entry in partition.log.producers.producers.items()
    ]
    return PartitionResponse(index, active_producers=producers)
