"""CreateTopics (key 19, versions 0-7): create topics.

v1 adds validate_only and messages; v2 adds throttle time; v4 accepts -1 for the default number of partitions and replicas; v5 is flexible and returns
the settings of the new topic; v6 may return THROTTLING_QUOTA_EXCEEDED (KIP-599); v7 adds topic ids.
Behaviour: each topic is handled independently; a topic that is named more than once gets error INVALID_REQUEST (42). If the topics that are named
only once have more than MAX_PARTITIONS partitions in total, all topics get error POLICY_VIOLATION (44, AD-46). With a timeout of 0 or less, all
topics get error REQUEST_TIMED_OUT (7, AD-43), unless every topic is named more than once. All topics are checked before the first one is created
(AD-45). The partitions of a valid topic are charged to the controller mutation quota (Q-18), also with validate_only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.description import effective_topic_values
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.metadata.planning import check_name
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.requests.deadline import check_timeout
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
"""The maximum number of partitions that one request creates (`ReplicationControlManager` in Kafka), so that a client cannot exhaust memory."""
MAX_RECORDS = 10_000
"""The maximum number of metadata records of one request: one for each topic, setting and partition (`MAX_RECORDS_PER_USER_OP` in Kafka)."""
TOO_MANY_RECORDS = "Unable to perform excessively large batch operation."
TOO_MANY_PARTITIONS = "Excessively large number of partitions per request."


def _failed(exchange: Exchange, request: CreateTopicsRequest, error_code: int) -> Reply:
    return Reply(CreateTopicsResponse(topics=[_error(t.name, error_code, None) for t in request.topics]))


@register(ApiKey.CREATE_TOPICS, _failed)
def create_topics(exchange: Exchange, request: CreateTopicsRequest) -> Reply:
    counts = Counter(t.name for t in request.topics)
    creatable = [t for t in request.topics if counts[t.name] == 1]
    if creatable:
        check_timeout(request.timeout_ms)
    if sum(_partitions(exchange, topic) for topic in creatable) > MAX_PARTITIONS:
        return _too_large(request, TOO_MANY_PARTITIONS)
    topics, errors = _planned(exchange, creatable)
    if sum(1 + len(topic.configs) + len(topic.partitions) for topic in topics.values()) > MAX_RECORDS:
        return _too_large(request, TOO_MANY_RECORDS)
    results = [errors.get(t.name) or _create(exchange, topics[t.name], request.validate_only) for t in creatable]
    results += [_error(name, ErrorCode.INVALID_REQUEST, "Duplicate topic name.") for name, n in counts.items() if n > 1]
    return Reply(CreateTopicsResponse(topics=results))


def _too_large(request: CreateTopicsRequest, message: str) -> Reply:
    results = [_error(t.name, ErrorCode.POLICY_VIOLATION, message) for t in request.topics]
    return Reply(CreateTopicsResponse(topics=results))


def _partitions(exchange: Exchange, topic: CreatableTopic) -> int:
    """Return the number of partitions that the new topic would have; 0 if the requested number is invalid. The topic is then rejected later."""
    if topic.assignments:
        return len(topic.assignments)
    return max(0, exchange.node.config["num.partitions"] if topic.num_partitions == -1 else topic.num_partitions)


def _planned(
    exchange: Exchange, topics: Sequence[CreatableTopic]
) -> tuple[dict[str, Topic], dict[str, CreatableTopicResult]]:
    """Check all topics of the request. Returns (topics to create, error results of the invalid topics), both by topic name."""
    controller = exchange.node.cluster.controller
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    planned_topics: dict[str, Topic] = {}
    errors: dict[str, CreatableTopicResult] = {}
    for topic in topics:
        try:
            planned_topics[topic.name] = _plan(controller, topic, mutations)
        except KafkaError as error:
            errors[topic.name] = _error(topic.name, error.error_code, error.message)
    return planned_topics, errors


def _plan(controller: Controller, requested: CreatableTopic, mutations: MutationCharge) -> Topic:
    check_name(requested.name)
    # A null value is rejected even if the request repeats the setting with a valid value.
    configs = {c.name: c.value for c in requested.configs} | {
        c.name: None for c in requested.configs if c.value is None
    }
    assignment = [(a.partition_index, a.broker_ids) for a in requested.assignments]
    topic = controller.plan_topic(
        requested.name, requested.num_partitions, requested.replication_factor, assignment, configs
    )
    mutations.take(len(topic.partitions))
    return topic


def _create(exchange: Exchange, topic: Topic, validate_only: bool) -> CreatableTopicResult:
    if not validate_only:
        try:
            exchange.node.cluster.controller.put_topic(topic)
        except KafkaError as error:
            return _error(topic.name, error.error_code, error.message)
    return _created(exchange, topic)


def _created(exchange: Exchange, topic: Topic) -> CreatableTopicResult:
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
