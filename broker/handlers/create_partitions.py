"""CreatePartitions (key 37, versions 0-3): add partitions to topics (KIP-195).

v2 is flexible; v3 may return THROTTLING_QUOTA_EXCEEDED (KIP-599).
Behaviour: each topic is handled independently; a topic that is named twice gets error INVALID_REQUEST (42). Added partitions are charged to the
controller mutation quota (Q-18), also with validate_only and also if the request names brokers that do not exist. With a timeout of 0 or less all
topics get error REQUEST_TIMED_OUT (AD-43).
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.requests.deadline import check_timeout
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

FIRST_STRICT_VERSION = 3
MAX_NEW_PARTITIONS = 10_000
"""The maximum number of partitions that one request adds (`MAX_RECORDS_PER_USER_OP` in Kafka)."""


def _failed(exchange: Exchange, request: CreatePartitionsRequest, error_code: int) -> Reply:
    results = [CreatePartitionsTopicResult(t.name, int(error_code), None) for t in request.topics]
    return Reply(CreatePartitionsResponse(results=results))


@register(ApiKey.CREATE_PARTITIONS, _failed)
def create_partitions(exchange: Exchange, request: CreatePartitionsRequest) -> Reply:
    counts = Counter(t.name for t in request.topics)
    unique_topics = [t for t in request.topics if counts[t.name] == 1]
    if unique_topics:
        check_timeout(request.timeout_ms)
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    results, room = [], MAX_NEW_PARTITIONS
    for topic in unique_topics:
        result, added = _add(exchange, mutations, topic, room, request.validate_only)
        results.append(result)
        room -= added
    results += [
        CreatePartitionsTopicResult(name, int(ErrorCode.INVALID_REQUEST), "Duplicate topic name.")
        for name, count in counts.items()
        if count > 1
    ]
    return Reply(CreatePartitionsResponse(results=results))


def _add(
    exchange: Exchange, mutations: MutationCharge, request: CreatePartitionsTopic, room: int, validate_only: bool
) -> tuple[CreatePartitionsTopicResult, int]:
    """Add partitions to one topic. Returns the topic's result for the response, and the number of added partitions.

    mutations: charges the new partitions to the client's controller mutation quota. room: how many partitions the request may still add before it
    reaches MAX_NEW_PARTITIONS. validate_only: whether to check the request without adding partitions.
    """
    controller = exchange.node.cluster.controller
    assignments = None if request.assignments is None else [a.broker_ids for a in request.assignments]
    added = 0

    def counted(count: int) -> None:
        nonlocal added
        mutations.take(count)
        if count > room:
            raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
        added = count

    try:
        topic = controller.plan_partitions(request.name, request.count, assignments, counted)
        if not validate_only:
            controller.put_topic(topic)
    except KafkaError as error:
        return CreatePartitionsTopicResult(request.name, error.error_code, error.message), 0
    return CreatePartitionsTopicResult(request.name, 0, None), added
