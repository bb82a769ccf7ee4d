"""DescribeCluster (key 60, versions 0-2): cluster id, controller, brokers.

v1 adds the endpoint type: brokers (1) or controllers (2). v2 adds stopped brokers on request (KIP-1073).
Behaviour: this cluster has no separate controllers, so endpoint type 2 gets error MISMATCHED_ENDPOINT_TYPE (114), and an unknown type gets error
UNSUPPORTED_ENDPOINT_TYPE (115) (M-7).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

BROKERS, CONTROLLERS = 1, 2
MISMATCH = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
ALL_CLUSTER_OPERATIONS = 0b1_1111_1010_0000
"""The operations that clients may use on a cluster, as bits of `AclEntry.supportedOperations`. Without access control, clients may use all."""


def _failed(exchange: Exchange, request: DescribeClusterRequest, error_code: int) -> Reply:
    return Reply(DescribeClusterResponse(error_code=int(error_code)))


@register(ApiKey.DESCRIBE_CLUSTER, _failed)
def describe_cluster(exchange: Exchange, request: DescribeClusterRequest) -> Reply:
    if request.endpoint_type != BROKERS:
        error, message = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE, f"Unsupported endpoint type {request.endpoint_type}"
        if request.endpoint_type == CONTROLLERS:
            error, message = ErrorCode.MISMATCHED_ENDPOINT_TYPE, MISMATCH
        return Reply(DescribeClusterResponse(error_code=int(error), error_message=message))
    image, listener = exchange.node.image, exchange.peer.listener_name
    live_brokers = image.alive_on(listener)
    brokers = live_brokers
    if request.include_fenced_brokers:
        brokers = [b for b in image.brokers.values() if b.registered and listener in b.listeners]
    response = DescribeClusterResponse(
        cluster_id=image.cluster_id,
        controller_id=live_brokers[0].broker_id if live_brokers else -1,
        brokers=[DescribeClusterBroker(b.broker_id, *b.listeners[listener], b.rack, not b.alive) for b in brokers],
    )
    if request.include_cluster_authorized_operations:
        response.cluster_authorized_operations = ALL_CLUSTER_OPERATIONS
    return Reply(response)
