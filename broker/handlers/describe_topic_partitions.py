"""DescribeTopicPartitions (key 75, version 0): the partitions of topics, some at a time, with a cursor for the next request (KIP-966).

Behaviour: an empty list of topics means all topics. Topics are sorted by name. The response has at most as many partitions as the request and
`max.request.partition.size.limit` allow; its cursor names the first partition that did not fit (AD-1 to AD-8).
"""

from __future__ import annotations

from collections.abc import Iterator

from kafkaproto.api import ApiKey
from kafkaproto.broker.metadata.image import INTERNAL_TOPICS, Image, PartitionState, Topic
from kafkaproto.broker.metadata.planning import topic_name_is_legal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponseCursor,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)

ALL_TOPIC_OPERATIONS = 0b1101_1111_1000
"""The operations that a topic supports, as bits of `AclEntry.supportedOperations`. Without access control all are authorised."""
NOT_REQUESTED = -(2**31)


def _failed(exchange: Exchange, request: DescribeTopicPartitionsRequest, error_code: int) -> Reply:
    topics = [
        DescribeTopicPartitionsResponseTopic(int(error_code), t.name, topic_authorized_operations=NOT_REQUESTED)
        for t in request.topics
    ]
    return Reply(DescribeTopicPartitionsResponse(topics=topics))


@register(ApiKey.DESCRIBE_TOPIC_PARTITIONS, _failed)
def describe_topic_partitions(exchange: Exchange, request: DescribeTopicPartitionsRequest) -> Reply:
    topic_names, cursor = {t.name for t in request.topics}, request.cursor
    if cursor is not None and (cursor.partition_index < 0 or (topic_names and cursor.topic_name not in topic_names)):
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    if "" in topic_names and cursor is None:
        # Kafka treats an empty name as the topic of the cursor, and fails because the request has none.
        return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    image = exchange.node.image
    names = sorted(topic_names or image.topics, key=_java_order)
    if cursor is not None:
        first = _java_order(cursor.topic_name)
        names = [name for name in names if _java_order(name) >= first]
    response = DescribeTopicPartitionsResponse()
    room = max(1, min(exchange.node.config["max.request.partition.size.limit"], request.response_partition_limit))
    for name in names:
        if not room:
            response.next_cursor = DescribeTopicPartitionsResponseCursor(name, 0)
            break
        topic = image.topics.get(name)
        if topic is None:
            response.topics.append(_missing(name))
            continue
        start = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        states = topic.partitions[start : start + room]
        response.topics.append(_described(exchange, topic, states))
        room -= len(states)
        if start + len(states) < len(topic.partitions):
            response.next_cursor = DescribeTopicPartitionsResponseCursor(name, start + len(states))
            break
    return Reply(response)


def _java_order(name: str) -> bytes:
    """Return a sort key that sorts topic names as Java does: by their UTF-16 code units."""
    return name.encode("utf-16-be", "surrogatepass")


def _missing(name: str) -> DescribeTopicPartitionsResponseTopic:
    is_legal = topic_name_is_legal(name)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(
        int(error),
        name,
        is_internal=name in INTERNAL_TOPICS,
        topic_authorized_operations=ALL_TOPIC_OPERATIONS,
    )


def _described(
    exchange: Exchange, topic: Topic, states: tuple[PartitionState, ...]
) -> DescribeTopicPartitionsResponseTopic:
    image = exchange.node.image
    reachable = {b.broker_id for b in image.alive_on(exchange.peer.listener_name)}
    return DescribeTopicPartitionsResponseTopic(
        0,
        topic.name,
        topic.topic_id,
        topic.internal,
        list(_partitions(image, reachable, states)),
        ALL_TOPIC_OPERATIONS,
    )


def _partitions(
    image: Image, reachable: set[int], states: tuple[PartitionState, ...]
) -> Iterator[DescribeTopicPartitionsResponsePartition]:
    """Yield the response entries of the partitions `states`. A partition without a reachable leader has no error, and leader -1.

    reachable: the ids of the running brokers that have an address on the client's listener.
    """
    for state in states:
        yield DescribeTopicPartitionsResponsePartition(
            0,
            state.index,
            state.leader if state.leader in reachable else -1,
            state.leader_epoch,
            list(state.replicas),
            list(state.isr),
            list(state.eligible),
            list(state.last_known),
            [r for r in state.replicas if r not in reachable],
        )
