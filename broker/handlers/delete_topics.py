"""DeleteTopics (key 20, versions 0-6): delete topics by name or id.

v1 adds throttle time; v4 is flexible; v5 adds messages and may return THROTTLING_QUOTA_EXCEEDED (KIP-599); v6 accepts topic ids as well as names.
Behaviour: each topic is checked independently; all topics that can be deleted are deleted together. A topic that is named twice, or by name and by
id, gets one result, with error INVALID_REQUEST (42). An entry with both name and id, or with neither, gets the same error and a result of its own
(AD-44). With a timeout of 0 or less all topics get error REQUEST_TIMED_OUT (AD-43). With `delete.topic.enable=false` no topic is looked up, and all
entries get the same error (AD-44). The partitions of a topic that can be deleted are charged to the controller mutation quota (Q-18).
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import NOT_HOSTED, KafkaError
from kafkaproto.broker.metadata.image import NO_TOPIC_ID, Topic
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.requests.deadline import check_timeout
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)

FIRST_VERSION_WITH_DISABLED_ERROR = 3
FIRST_STRICT_VERSION = 5
FIRST_VERSION_BY_ID = 6
NO_SUCH_ID = "This server does not host this topic ID."
NAMED_BY_ID_TOO = "The provided topic name maps to an ID that was already supplied."


def _requested_topics(exchange: Exchange, request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    if exchange.api_version >= FIRST_VERSION_BY_ID:
        return request.topics
    return [DeleteTopicState(name) for name in request.topic_names]


def _failed(exchange: Exchange, request: DeleteTopicsRequest, error_code: int) -> Reply:
    topics = _requested_topics(exchange, request)
    return Reply(
        DeleteTopicsResponse(responses=[DeletableTopicResult(t.name, t.topic_id, int(error_code)) for t in topics])
    )


@register(ApiKey.DELETE_TOPICS, _failed)
def delete_topics(exchange: Exchange, request: DeleteTopicsRequest) -> Reply:
    if not exchange.node.config["delete.topic.enable"]:
        is_old = exchange.api_version < FIRST_VERSION_WITH_DISABLED_ERROR
        raise KafkaError(ErrorCode.INVALID_REQUEST if is_old else ErrorCode.TOPIC_DELETION_DISABLED)
    topics = _requested_topics(exchange, request)
    name_counts = Counter(t.name for t in topics if t.name is not None and t.topic_id == NO_TOPIC_ID)
    id_counts = Counter(t.topic_id for t in topics if t.name is None and t.topic_id != NO_TOPIC_ID)
    names = [name for name, times in name_counts.items() if times == 1]
    ids = [topic_id for topic_id, times in id_counts.items() if times == 1]
    if names or ids:
        check_timeout(request.timeout_ms)
    mutations, image = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION), exchange.node.image
    results = []
    for name in names:
        topic = image.topics.get(name)
        if topic is None:
            results.append(_error(name, NO_TOPIC_ID, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED))
        elif topic.topic_id in id_counts:
            results.append(_error(name, topic.topic_id, ErrorCode.INVALID_REQUEST, NAMED_BY_ID_TOO))
        else:
            results.append(_charged(mutations, topic))
    for topic_id in ids:
        topic = image.topic_by_id(topic_id)
        if topic is None:
            results.append(_error(None, topic_id, ErrorCode.UNKNOWN_TOPIC_ID, NO_SUCH_ID))
        elif topic.name not in names:
            results.append(_charged(mutations, topic))
    results = _delete(exchange, results)
    results += [_repeated(name, NO_TOPIC_ID, "name") for name, times in name_counts.items() if times > 1]
    results += [_repeated(None, topic_id, "id") for topic_id, times in id_counts.items() if times > 1]
    results += [_neither_or_both(t) for t in topics if (t.name is None) == (t.topic_id == NO_TOPIC_ID)]
    return Reply(DeleteTopicsResponse(responses=results))


def _charged(mutations: MutationCharge, topic: Topic) -> DeletableTopicResult:
    """Charge the partitions of a topic to the controller mutation quota. Returns the topic's result, with an error if the quota is exceeded."""
    try:
        mutations.take(len(topic.partitions))
    except KafkaError as error:
        return _error(topic.name, topic.topic_id, error.error_code, error.message)
    return DeletableTopicResult(topic.name, topic.topic_id)


def _delete(exchange: Exchange, results: list[DeletableTopicResult]) -> list[DeletableTopicResult]:
    """Delete all topics whose result has no error, together (GO-9), and return the results. If that fails, each of these topics gets the error."""
    names = tuple(result.name for result in results if not result.error_code and result.name is not None)
    try:
        if names:
            exchange.node.cluster.controller.delete_topic(*names)
    except KafkaError as error:
        return [
            result if result.error_code else _error(result.name, result.topic_id, error.error_code, error.message)
            for result in results
        ]
    return results


def _repeated(name: str | None, topic_id: bytes, what: str) -> DeletableTopicResult:
    return _error(name, topic_id, ErrorCode.INVALID_REQUEST, f"Duplicate topic {what}.")


def _neither_or_both(topic: DeleteTopicState) -> DeletableTopicResult:
    """Return the error result for an entry that has neither a name nor an id, or that has both."""
    message = (
        "Neither topic name nor id were specified."
        if topic.name is None
        else "You may not specify both topic name and topic id."
    )
    return _error(topic.name, topic.topic_id, ErrorCode.INVALID_REQUEST, message)


def _error(name: str | None, topic_id: bytes, error_code: int, message: str | None) -> DeletableTopicResult:
    return DeletableTopicResult(name, topic_id, int(error_code), message)
