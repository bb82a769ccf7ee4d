"""CreatePartitions (key 37, versions 0-3): add partitions to topics (KIP-195).

v2 is flexible; v3 may return THROTTLING_QUOTA_EXCEEDED (KIP-599).
Behaviour: each topic is handled independently; a topic that is named twice gets error INVALID_REQUEST (42). Added partitions are charged to the
controller mutation quota (Q-18), also with validate_only and also if the request names brokers that do not exist.
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.mutations import MutationCharge
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


def _failed(exchange: Exchange, request: CreatePartitionsRequest, error_code: int) -> Reply:
    results = [CreatePartitionsTopicResult(t.name, int(error_code), None) for t in request.topics]
    return Reply(CreatePartitionsResponse(results=results))


@register(ApiKey.CREATE_PARTITIONS, _failed)
def create_partitions(exchange: Exchange, request: CreatePartitionsRequest) -> Reply:
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    named = Counter(t.name for t in request.topics)
    results = [
        _add(exchange, mutations, topic, request.validate_only) for topic in request.topics if named[topic.name] == 1
    ]
    results += [
        CreatePartitionsTopicResult(name, int(ErrorCode.INVALID_REQUEST), "Name each topic once.")
        for name, count in named.items()
        if count > 1
    ]
    return Reply(CreatePartitionsResponse(results=results))


def _add(
    exchange: Exchange, mutations: MutationCharge, request: CreatePartitionsTopic, validate_only: bool
) -> CreatePartitionsTopicResult:
    controller = exchange.node.cluster.controller
    given = None if request.assignments is None else [a.broker_ids for a in request.assignments]
    try:
        topic = controller.plan_partitions(request.name, request.count, given, mutations.take)
        if not validate_only:
            controller.put_topic(topic)
    except KafkaError as error:
        return CreatePartitionsTopicResult(request.name, error.error_code, error.message)
    return CreatePartitionsTopicResult(request.name, 0, None)
