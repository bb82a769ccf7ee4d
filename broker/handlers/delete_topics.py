"""DeleteTopics (key 20, versions 0-6).

v1 throttle time; v4 flexible; v5 messages, and may be answered with 89 (KIP-599); v6 topics by name or by id.
Behaviour: each topic stands for itself; a topic asked for twice, which is answered once, or by neither or both of name and id, is refused with 42.
A topic that can be deleted pays for its partitions (Q-18).
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


def _asked(exchange: Exchange, request: DeleteTopicsRequest) -> list[DeleteTopicState]:
    if exchange.api_version >= FIRST_VERSION_BY_ID:
        return request.topics
    return [DeleteTopicState(name) for name in request.topic_names]


def _failed(exchange: Exchange, request: DeleteTopicsRequest, error_code: int) -> Reply:
    asked = _asked(exchange, request)
    return Reply(
        DeleteTopicsResponse(responses=[DeletableTopicResult(t.name, t.topic_id, int(error_code)) for t in asked])
    )


@register(ApiKey.DELETE_TOPICS, 0, 6, _failed)
def delete_topics(exchange: Exchange, request: DeleteTopicsRequest) -> Reply:
    asked = _asked(exchange, request)
    mutations = exchange.open_mutations(exchange.api_version >= FIRST_STRICT_VERSION)
    times = Counter((t.name, t.topic_id) for t in asked)
    once = {(t.name, t.topic_id): t for t in asked}
    results = [_delete(exchange, mutations, t, times[key]) for key, t in once.items()]
    return Reply(DeleteTopicsResponse(responses=results))


def _delete(exchange: Exchange, mutations: MutationCharge, asked: DeleteTopicState, times: int) -> DeletableTopicResult:
    result = DeletableTopicResult(asked.name, asked.topic_id)
    try:
        result.name, result.topic_id = _find(exchange, asked, times)
        if not exchange.node.config["delete.topic.enable"]:
            raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "delete.topic.enable is false.")
        mutations.take(len(exchange.node.image.topics[result.name].partitions))
        exchange.node.cluster.controller.delete_topic(result.name)
    except KafkaError as error:
        result.error_code, result.error_message = error.error_code, error.message
    return result


def _find(exchange: Exchange, asked: DeleteTopicState, times: int) -> tuple[str, bytes]:
    image = exchange.node.image
    by_id = asked.topic_id != NO_TOPIC_ID
    if times > 1 or by_id == (asked.name is not None):
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Name each topic once, by its name or by its id.")
    if by_id:
        topic = image.topic_by_id(asked.topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)
    else:
        found = image.topics.get(asked.name or "")
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        topic = found
    return topic.name, topic.topic_id
