"""DeleteTopics (key 20, versions 0-6): delete topics by name or id.

v1 adds throttle time; v4 is flexible; v5 adds messages and may return THROTTLING_QUOTA_EXCEEDED (KIP-599); v6 accepts topic ids as well as names.
Behaviour: each topic is handled independently. A topic that is named twice gets one result, with error INVALID_REQUEST (42). An entry with both name
and id, or with neither, gets the same error. The partitions of a topic that can be deleted are charged to the controller mutation quota (Q-18).
"""

from __future__ import annotations

from collections import Counter

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import NO_TOPIC_ID
from kafkaproto.broker.quota.mutations import MutationCharge
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

FIRST_STRICT_VERSION = 5
FIRST_VERSION_BY_ID = 6


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
    topics = _requested_topics(exchange, request)
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    times = Counter((t.name, t.topic_id) for t in topics)
    once = {(t.name, t.topic_id): t for t in topics}
    results = [_delete(exchange, mutations, t, times[key]) for key, t in once.items()]
    return Reply(DeleteTopicsResponse(responses=results))


def _delete(
    exchange: Exchange, mutations: MutationCharge, requested: DeleteTopicState, times: int
) -> DeletableTopicResult:
    result = DeletableTopicResult(requested.name, requested.topic_id)
    try:
        result.name, result.topic_id = _find(exchange, requested, times)
        if not exchange.node.config["delete.topic.enable"]:
            raise KafkaError(
                ErrorCode.TOPIC_DELETION_DISABLED, "Topic deletion is disabled: delete.topic.enable is false."
            )
        mutations.take(len(exchange.node.image.topics[result.name].partitions))
        exchange.node.cluster.controller.delete_topic(result.name)
    except KafkaError as error:
        result.error_code, result.error_message = error.error_code, error.message
    return result


def _find(exchange: Exchange, requested: DeleteTopicState, times: int) -> tuple[str, bytes]:
    image = exchange.node.image
    by_id = requested.topic_id != NO_TOPIC_ID
    if times > 1 or by_id == (requested.name is not None):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Name each topic once, by its name or by its id.")
    if by_id:
        topic = image.topic_by_id(requested.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        by_name = image.topics.get(requested.name or "")
        if by_name is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = by_name
    return topic.name, topic.topic_id
