"""CreatePartitions (key 37, versions 0-3).

v2 flexible; v3 may be answered with 89 (KIP-599).
Behaviour: each topic stands for itself; a topic named twice is refused with 42 (KIP-195). What is added is paid for (Q-18), validate_only
too, and even if brokers are named that there are not.
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


@register(ApiKey.CREATE_PARTITIONS, 0, 3, _failed)
def create_partitions(exchange: Exchange, request: CreatePartitionsRequest) -> Reply:
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    named = Counter(t.name for t in request.topics)
    results = [
        _add(exchange, mutations, asked, request.validate_only) for asked in request.topics if named[asked.name] == 1
    ]
    results += [
        CreatePartitionsTopicResult(name, int(ErrorCode.INVALID_REQUEST), "Name each topic once.")
        for name, count in named.items()
        if count > 1
    ]
    return Reply(CreatePartitionsResponse(results=results))


def _add(
    exchange: Exchange, mutations: MutationCharge, asked: CreatePartitionsTopic, validate_only: bool
) -> CreatePartitionsTopicResult:
    controller = exchange.node.cluster.controller
    given = None if asked.assignments is None else [a.broker_ids for a in asked.assignments]
    try:
        topic = controller.plan_partitions(asked.name, asked.count, given, mutations.take)
        if not validate_only:
            controller.add_partitions(topic)
    except KafkaError as error:
        return CreatePartitionsTopicResult(asked.name, error.error_code, error.message)
    return CreatePartitionsTopicResult(asked.name, 0, None)
