"""DescribeQuorum (key 55, versions 0-2): the controllers and the brokers as replicas of the metadata log (KIP-595, KIP-836).

v1 adds the times of the last fetch; v2 adds directory ids, error messages and the addresses of the controllers.
Behaviour: the cluster has one controller, whose id is the lowest broker id; the other brokers are observers. Running brokers are up to date, because
they share its metadata image. A stopped broker is listed until 5 minutes after its stop. The end of the log is the number of changes of the metadata.
A request must name exactly `__cluster_metadata`, partition 0; otherwise each partition gets error UNKNOWN_TOPIC_OR_PARTITION (3) (AD-24, AD-25).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import NOT_HOSTED
from kafkaproto.broker.metadata.broker_sessions import LastFetch
from kafkaproto.broker.metadata.image import CLUSTER_METADATA_TOPIC
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.quorum import observer_directory, own_voter
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Node,
    ReplicaState,
)

FIRST_VERSION_WITH_NODES = 2
LEADER_EPOCH = 1
"""The leader epoch of the metadata log. It is always 1, because the cluster's only controller is never replaced while the cluster runs."""

OBSERVER_SESSION_MS = 300_000
"""How long an observer is listed after its last fetch of the metadata log (`LeaderState.OBSERVER_SESSION_TIMEOUT_MS`)."""


def _failed(exchange: Exchange, request: DescribeQuorumRequest, error_code: int) -> Reply:
    return Reply(DescribeQuorumResponse(error_code=int(error_code)))


@register(ApiKey.DESCRIBE_QUORUM, _failed)
def describe_quorum(exchange: Exchange, request: DescribeQuorumRequest) -> Reply:
    requested_topics = [(t.topic_name, [p.partition_index for p in t.partitions]) for t in request.topics]
    if requested_topics != [(CLUSTER_METADATA_TOPIC, [0])]:
        return Reply(DescribeQuorumResponse(topics=[_unknown(name, indexes) for name, indexes in requested_topics]))
    image, now_ms = exchange.node.image, exchange.now_ms
    controller = own_voter(exchange.node)
    end = exchange.node.cluster.controller.no_op_records.last_offset(image.offset) + 1
    controller_id = controller.voter_id

    up_to_date = LastFetch(now_ms, end)

    def replica(broker_id: int, directory_id: bytes, fetch: LastFetch) -> ReplicaState:
        state = ReplicaState(
            broker_id,
            log_end_offset=fetch.log_end_offset,
            last_fetch_timestamp=fetch.at_ms,
            last_caught_up_timestamp=fetch.at_ms,
        )
        if exchange.api_version >= FIRST_VERSION_WITH_NODES:
            state.replica_directory_id = directory_id
        return state

    stopped = exchange.node.cluster.sessions.last_fetches
    fetches = {i: stopped.get(i, up_to_date) for i in image.brokers if i != controller_id}
    observers = [
        replica(broker_id, observer_directory(exchange.node, broker_id), fetch)
        for broker_id, fetch in fetches.items()
        if now_ms - fetch.at_ms < OBSERVER_SESSION_MS
    ]
    partition = DescribeQuorumResponsePartitionData(
        0,
        leader_id=controller_id,
        leader_epoch=LEADER_EPOCH,
        high_watermark=end,
        current_voters=[replica(controller_id, controller.directory_id, up_to_date)],
        observers=observers,
    )
    topic = DescribeQuorumResponseTopicData(CLUSTER_METADATA_TOPIC, [partition])
    nodes = [Node(controller_id)] if exchange.api_version >= FIRST_VERSION_WITH_NODES else []
    return Reply(DescribeQuorumResponse(topics=[topic], nodes=nodes))


def _unknown(name: str, indexes: list[int]) -> DescribeQuorumResponseTopicData:
    error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return DescribeQuorumResponseTopicData(
        name, [DescribeQuorumResponsePartitionData(index, error, NOT_HOSTED) for index in indexes]
    )
