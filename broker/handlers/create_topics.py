"""CreateTopics (key 19, versions 0-7): create topics.

v1 adds validate_only and messages; v2 adds throttle time; v4 accepts -1 for the broker's own partition count and replication factor; v5 is flexible
and returns the settings of the new topic; v6 may return THROTTLING_QUOTA_EXCEEDED (KIP-599); v7 adds topic ids.
Behaviour: each topic is handled independently; a topic that is named twice gets error INVALID_REQUEST (42). If a request is for more than
MAX_PARTITIONS partitions, all its topics get error POLICY_VIOLATION (44). The partitions of a valid topic are charged to the controller mutation
quota (Q-18), also with validate_only.
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.description import effective_topic_values
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.metadata.planning import check_name
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)

FIRST_VERSION_WITH_CONFIGS = 5
FIRST_STRICT_VERSION = 6
MAX_PARTITIONS = 10_000
"""The maximum number of partitions in one request (`ReplicationControlManager` in Kafka), so that a client cannot exhaust memory."""


def _failed(exchange: Exchange, request: CreateTopicsRequest, error_code: int) -> Reply:
    return Reply(CreateTopicsResponse(topics=[_error(t.name, error_code, None) for t in request.topics]))


@register(ApiKey.CREATE_TOPICS, _failed)
def create_topics(exchange: Exchange, request: CreateTopicsRequest) -> Reply:
    if sum(_partitions(exchange, topic) for topic in request.topics) > MAX_PARTITIONS:
        why = f"A request may ask for {MAX_PARTITIONS} partitions at most."
        return Reply(
            CreateTopicsResponse(topics=[_error(t.name, ErrorCode.POLICY_VIOLATION, why) for t in request.topics])
        )
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    named = Counter(t.name for t in request.topics)
    results = [
        _create(exchange, mutations, topic, request.validate_only) for topic in request.topics if named[topic.name] == 1
    ]
    results += [_error(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.") for name, n in named.items() if n > 1]
    return Reply(CreateTopicsResponse(topics=results))


def _partitions(exchange: Exchange, topic: CreatableTopic) -> int:
    """Return the number of partitions that the new topic would have; 0 if the requested number is invalid, which is rejected later."""
    if topic.assignments:
        return len(topic.assignments)
    return max(0, exchange.node.config["num.partitions"] if topic.num_partitions == -1 else topic.num_partitions)


def _create(
    exchange: Exchange, mutations: MutationCharge, requested: CreatableTopic, validate_only: bool
) -> CreatableTopicResult:
    controller = exchange.node.cluster.controller
    try:
        check_name(requested.name)
        if requested.assignments and (requested.num_partitions != -1 or requested.replication_factor != -1):
            wrong = "replication factor" if requested.replication_factor != -1 else "numPartitions"
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {wrong} was not set to -1.",
            )
        assignment = {a.partition_index: a.broker_ids for a in requested.assignments}
        if len(assignment) < len(requested.assignments):
            raise KafkaError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT,
                "The assignment contains a partition twice; name each partition index once.",
            )
        configs = _settings(requested)
        topic = controller.plan_topic(
            requested.name, requested.num_partitions, requested.replication_factor, assignment, configs
        )
        mutations.take(len(topic.partitions))
        if not validate_only:
            controller.put_topic(topic)
    except KafkaError as error:
        return _error(requested.name, error.error_code, error.message)
    return _made(exchange, topic)


def _settings(requested: CreatableTopic) -> dict[str, str]:
    """Return the settings of a new topic. Raises KafkaError INVALID_CONFIG (40) if some are null."""
    nulls = [c.name for c in requested.configs if c.value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    return {c.name: c.value or "" for c in requested.configs}


def _made(exchange: Exchange, topic: Topic) -> CreatableTopicResult:
    result = CreatableTopicResult(
        topic.name,
        topic.topic_id,
        0,
        None,
        num_partitions=len(topic.partitions),
        replication_factor=topic.replication_factor,
    )
    if exchange.api_version >= FIRST_VERSION_WITH_CONFIGS:
        config = exchange.node.config.cluster
        values = effective_topic_values(config, exchange.node.broker_id, topic.configs)
        result.configs = [CreatableTopicConfigs(name, value, False, int(source)) for name, value, source in values]
    return result


def _error(name: str, error_code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=int(error_code), error_message=message)
