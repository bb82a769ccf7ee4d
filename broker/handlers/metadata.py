"""Metadata (key 3, versions 0-13): topics with their leaders, and brokers with their addresses.

In v0 an empty list means all topics; from v1 on null means all, and an empty list means none. v1 adds racks, the controller and a flag for internal
topics; v2 adds the cluster id; v4 adds a flag for automatic creation; v5 adds offline replicas; v7 adds leader epochs; v8 adds authorised operations;
v10 adds topic ids; v12 adds look-up by id; v13 adds an error code for the whole response.
Behaviour: a missing topic gets error UNKNOWN_TOPIC_OR_PARTITION (3); if client and broker allow it, it is created for the next request (M-1 to M-6).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import (
    COORDINATOR_TOPICS,
    INTERNAL_TOPICS,
    NO_TOPIC_ID,
    SHARE_GROUP_TOPIC,
    BrokerState,
    Image,
    PartitionState,
    Topic,
)
from kafkaproto.broker.metadata.planning import topic_name_is_legal
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

FIRST_VERSION_WITH_LISTENER_ERROR = 6
FIRST_VERSION_BY_ID = 12
ALL_TOPIC_OPERATIONS, ALL_CLUSTER_OPERATIONS = 0b1101_1111_1000, 0b1_1111_1010_0000
"""The operations that a topic and a cluster support, as bits of `AclEntry.supportedOperations`. Without access control all are authorised."""


def _failed(exchange: Exchange, request: MetadataRequest, error_code: int) -> Reply:
    topics = [
        MetadataResponseTopic(error_code=error_code, name=t.name, topic_id=t.topic_id) for t in request.topics or ()
    ]
    for topic in topics:
        topic.name = topic.name or ""
    return Reply(MetadataResponse(topics=topics, error_code=int(error_code)))


@register(ApiKey.METADATA, _failed)
def metadata(exchange: Exchange, request: MetadataRequest) -> Reply:
    image = exchange.node.image
    version = exchange.api_version
    if _is_invalid(request, version):
        # Kafka 3.9 fails for a topic without name and id.
        error_code = ErrorCode.INVALID_REQUEST if version < FIRST_VERSION_BY_ID else ErrorCode.UNKNOWN_SERVER_ERROR
        return _failed(exchange, request, error_code)
    live_brokers = image.alive_on(exchange.peer.listener_name)
    response = MetadataResponse(
        brokers=[_broker(b, exchange.peer.listener_name) for b in live_brokers],
        cluster_id=image.cluster_id,
        controller_id=live_brokers[0].broker_id if live_brokers else -1,
        topics=_topics(exchange, request, image),
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS
    return Reply(response)


def _is_invalid(request: MetadataRequest, version: int) -> bool:
    """Return whether an entry of the request makes the whole request invalid (M-2).

    From version 12 on, an entry without a name is invalid if no entry has a topic id. Before version 12, an entry without a name or with a topic id
    is invalid.
    """
    if not request.topics:
        return False
    if version >= FIRST_VERSION_BY_ID:
        has_ids = any(t.topic_id != NO_TOPIC_ID for t in request.topics)
        return not has_ids and any(t.name is None for t in request.topics)
    return any(t.name is None or t.topic_id != NO_TOPIC_ID for t in request.topics)


def _broker(broker: BrokerState, listener: str) -> MetadataResponseBroker:
    host, port = broker.listeners[listener]
    return MetadataResponseBroker(broker.broker_id, host, port, broker.rack)


def _topics(exchange: Exchange, request: MetadataRequest, image: Image) -> list[MetadataResponseTopic]:
    wants_all = request.topics is None or (exchange.api_version == 0 and not request.topics)
    if wants_all:
        return [_topic(exchange, request, image, topic) for topic in image.topics.values()]
    assert request.topics is not None
    topic_ids = dict.fromkeys(t.topic_id for t in request.topics if t.topic_id != NO_TOPIC_ID)
    if topic_ids:
        return [_by_id(exchange, request, image, topic_id) for topic_id in topic_ids]
    names = dict.fromkeys(t.name or "" for t in request.topics)
    missing = [name for name in names if name not in image.topics and topic_name_is_legal(name)]
    if missing and request.allow_auto_topic_creation and exchange.node.config["auto.create.topics.enable"]:
        _create(exchange, missing)
    return [_by_name(exchange, request, image, name) for name in names]


def _by_id(exchange: Exchange, request: MetadataRequest, image: Image, topic_id: bytes) -> MetadataResponseTopic:
    topic = image.topic_by_id(topic_id)
    if topic is None:
        return MetadataResponseTopic(error_code=int(ErrorCode.UNKNOWN_TOPIC_ID), name=None, topic_id=topic_id)
    return _topic(exchange, request, image, topic)


def _by_name(exchange: Exchange, request: MetadataRequest, image: Image, name: str) -> MetadataResponseTopic:
    topic = image.topics.get(name)
    if topic is not None:
        return _topic(exchange, request, image, topic)
    is_legal = topic_name_is_legal(name)
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_legal else ErrorCode.INVALID_TOPIC_EXCEPTION
    topic_response = MetadataResponseTopic(error_code=int(error), name=name, is_internal=name in INTERNAL_TOPICS)
    _add_operations(topic_response, request)
    return topic_response


def _create(exchange: Exchange, names: Sequence[str]) -> None:
    """Create the missing topics `names`, except those that cannot be created. The client sees the new topics in its next request (M-3).

    As in Kafka, errors and throttle times are not reported (Q-18), and all topics are checked before the first one is created: a KRaft broker sends
    one CreateTopics request to the controller, and does not wait for the response.
    """
    node, controller = exchange.node, exchange.node.cluster.controller
    if node.is_release_4:
        names = [name for name in names if name != SHARE_GROUP_TOPIC]
    mutations = node.cluster.mutations.begin(exchange.peer.principal, exchange.client_id, True, exchange.now_ms)
    planned_topics = []
    for name in names:
        if name not in COORDINATOR_TOPICS:
            with suppress(KafkaError):
                topic = controller.plan_topic(name)
                mutations.take(len(topic.partitions))
                planned_topics.append(topic)
    for topic in planned_topics:
        with suppress(KafkaError):
            controller.put_topic(topic)
    for name in COORDINATOR_TOPICS.intersection(names):
        with suppress(KafkaError):
            controller.ensure_internal(name)


def _topic(exchange: Exchange, request: MetadataRequest, image: Image, topic: Topic) -> MetadataResponseTopic:
    reachable = {b.broker_id for b in image.alive_on(exchange.peer.listener_name)}
    topic_response = MetadataResponseTopic(
        0,
        topic.name,
        topic.topic_id,
        topic.internal,
        [_partition(exchange.api_version, image, reachable, p) for p in topic.partitions],
    )
    _add_operations(topic_response, request)
    return topic_response


def _add_operations(topic_response: MetadataResponseTopic, request: MetadataRequest) -> None:
    """Add the authorised operations to a topic of the response if the request asks for them.

    As in Kafka, the operations are added to missing topics and to topics with illegal names, too (M-1).
    """
    if request.include_topic_authorized_operations:
        topic_response.topic_authorized_operations = ALL_TOPIC_OPERATIONS


def _partition(version: int, image: Image, reachable: set[int], state: PartitionState) -> MetadataResponsePartition:
    """Return the entry of one partition with its own error (M-4).

    version: the version of the request. reachable: the ids of the running brokers that have an address on the client's listener; other brokers stay
    in the lists of replicas, except in version 0.
    """
    error: int = 0
    leader = state.leader
    if leader < 0 or not image.is_alive(leader):
        error, leader = ErrorCode.LEADER_NOT_AVAILABLE, -1
    elif leader not in reachable:
        is_supported = version >= FIRST_VERSION_WITH_LISTENER_ERROR
        error, leader = ErrorCode.LISTENER_NOT_FOUND if is_supported else ErrorCode.LEADER_NOT_AVAILABLE, -1
    replicas, isr = list(state.replicas), list(state.isr)
    offline = [r for r in replicas if r not in reachable]
    if version == 0 and offline:
        replicas = [r for r in replicas if r in reachable]
        isr = [r for r in isr if r in reachable]
        error = error or ErrorCode.REPLICA_NOT_AVAILABLE
    return MetadataResponsePartition(int(error), state.index, leader, state.leader_epoch, replicas, isr, offline)
