"""CreateTopics (key 19, versions 0-7).

v1 validate_only and messages; v2 throttle time; v4 -1 for the broker's own partition count and replication factor; v5 flexible, tells
the settings of what was made; v6 may be answered with 89 (KIP-599); v7 topic ids.
Behaviour: each topic stands for itself; a topic named twice in a request is refused with 42 wherever it stands. A request for more than
MAX_PARTITIONS is refused with 44 as a whole. A topic with which nothing is wrong pays for its partitions (Q-18), validate_only too.
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.definitions import TOPIC_SETTINGS
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import Topic
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
"""In one request (`ReplicationControlManager` in Kafka), so that no client lays out more than memory holds."""


def _failed(exchange: Exchange, request: CreateTopicsRequest, error_code: int) -> Reply:
    return Reply(CreateTopicsResponse(topics=[_error(t.name, error_code, None) for t in request.topics]))


@register(ApiKey.CREATE_TOPICS, 0, 7, _failed)
def create_topics(exchange: Exchange, request: CreateTopicsRequest) -> Reply:
    if sum(_partitions(exchange, asked) for asked in request.topics) > MAX_PARTITIONS:
        why = f"A request may ask for {MAX_PARTITIONS} partitions at most."
        return Reply(
            CreateTopicsResponse(topics=[_error(t.name, ErrorCode.POLICY_VIOLATION, why) for t in request.topics])
        )
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    named = Counter(t.name for t in request.topics)
    results = [
        _create(exchange, mutations, asked, request.validate_only) for asked in request.topics if named[asked.name] == 1
    ]
    results += [_error(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.") for name, n in named.items() if n > 1]
    return Reply(CreateTopicsResponse(topics=results))


def _partitions(exchange: Exchange, asked: CreatableTopic) -> int:
    """How many it would have; nonsense counts nothing and is refused for itself."""
    if asked.assignments:
        return len(asked.assignments)
    return max(0, exchange.node.config["num.partitions"] if asked.num_partitions == -1 else asked.num_partitions)


def _create(
    exchange: Exchange, mutations: MutationCharge, asked: CreatableTopic, validate_only: bool
) -> CreatableTopicResult:
    controller = exchange.node.cluster.controller
    try:
        if asked.assignments and (asked.num_partitions != -1 or asked.replication_factor != -1):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                "Give either an assignment, with -1 for partitions and replication factor, or these two.",
            )
        assignment = {a.partition_index: a.broker_ids for a in asked.assignments}
        if len(assignment) < len(asked.assignments):
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "A partition is assigned twice.")
        configs = {c.name: _value(c.name, c.value) for c in asked.configs}
        topic = controller.plan_topic(asked.name, asked.num_partitions, asked.replication_factor, assignment, configs)
        mutations.take(len(topic.partitions))
        if not validate_only:
            controller.create_topic(topic)
    except KafkaError as error:
        return _error(asked.name, error.error_code, error.message)
    return _made(exchange, topic)


def _value(name: str, value: str | None) -> str:
    if value is None:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {name}")
    return value


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
        described = [config.describe_topic(exchange.node.broker_id, topic.configs, name) for name in TOPIC_SETTINGS]
        result.configs = [CreatableTopicConfigs(d.name, d.value, False, int(d.source), False) for d in described]
    return result


def _error(name: str, error_code: int, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name, error_code=int(error_code), error_message=message)
