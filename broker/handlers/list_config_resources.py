"""ListConfigResources (key 74, versions 0-1): the names of resources that have settings. Before Kafka 4.1 the API is ListClientMetricsResources.

v1 adds the types of resources, in request and response; v0 lists subscriptions to client metrics only.
Behaviour: a request without types lists resources of all types. Groups and subscriptions to client metrics are listed if they have settings of their
own. A broker also lists each group that has had settings since the broker started. An unknown type gets error UNSUPPORTED_VERSION (35) (AD-18).
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import concurrent_order, java_order
from kafkaproto.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from kafkaproto.partitioner import java_hash_bits

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
TYPES = GROUP, CLIENT_METRICS, BROKER_LOGGER, BROKER, TOPIC
"""The types of resources that a request can list. As in Kafka, the response lists the resources by type, in this order of types."""
FIRST_VERSION_WITH_TYPES = 1
SIGN_BIT = 1 << 31
EMPTY_TABLE = 1
"""The number of buckets of the empty Java `HashMap` to which Kafka adds the brokers."""


def _failed(exchange: Exchange, request: ListConfigResourcesRequest, error_code: int) -> Reply:
    return Reply(ListConfigResourcesResponse(error_code=int(error_code)))


@register(ApiKey.LIST_CONFIG_RESOURCES, _failed)
def list_config_resources(exchange: Exchange, request: ListConfigResourcesRequest) -> Reply:
    if exchange.api_version < FIRST_VERSION_WITH_TYPES:
        types: Iterable[int] = (CLIENT_METRICS,)
    else:
        if any(kind not in TYPES for kind in request.resource_types):
            return _failed(exchange, request, ErrorCode.UNSUPPORTED_VERSION)
        types = [kind for kind in TYPES if kind in request.resource_types] or TYPES
    resources = [ConfigResource(name, kind) for kind in types for name in _names(exchange, kind)]
    return Reply(ListConfigResourcesResponse(config_resources=resources))


def _names(exchange: Exchange, kind: int) -> Iterable[str]:
    """Return the names of the resources of one type, in the order in which Kafka lists them.

    Kafka keeps topics in a tree that is sorted by the hashes of their names as signed numbers, brokers in a `HashMap` of their ids, and groups and
    client metrics subscriptions in a `ConcurrentHashMap` of their names. kind: the number of the type.
    """
    node = exchange.node
    if kind == TOPIC:
        return sorted(node.image.topics, key=lambda name: java_hash_bits(name) ^ SIGN_BIT)
    if kind in (BROKER, BROKER_LOGGER):
        ids = (broker.broker_id for broker in node.image.brokers.values() if broker.registered)
        return [str(broker_id) for broker_id in java_order(ids, lambda broker_id: broker_id, EMPTY_TABLE)]
    config = node.config.cluster
    if kind == GROUP:
        emptied = (name for name, number in config.emptied_groups.items() if number > node.group_removals_at_start)
        return concurrent_order((*config.groups, *emptied), java_hash_bits)
    return concurrent_order(config.applied_client_metrics, java_hash_bits)
