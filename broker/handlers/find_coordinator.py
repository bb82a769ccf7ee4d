"""FindCoordinator (key 10, versions 0-6): the broker that coordinates a group or a transactional id.

v1 adds key types (0 group, 1 transaction) and messages; v3 is flexible; v4 takes many keys, each with its own error; v5 and v6 change no layout.
Behaviour: the first request for a group creates the topic `__consumer_offsets`, and the first for a transactional id creates `__transaction_state`.
With profile `kafka` this request gets error COORDINATOR_NOT_AVAILABLE, as in Kafka. With profile `test` it gets the coordinator, so that no client
has to retry (M-8, TX-1).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import MALFORMED, KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_MANY_KEYS = 4
GROUP, TRANSACTION, SHARE = 0, 1, 2
FIRST_VERSION_WITH_SHARE_GROUPS = 6
TOPICS = {GROUP: "__consumer_offsets", TRANSACTION: "__transaction_state"}
NOWHERE = (-1, "", -1)


def _failed(exchange: Exchange, request: FindCoordinatorRequest, error_code: int) -> Reply:
    return _response(exchange, [_error(key, error_code) for key in _keys(exchange, request)])


@register(ApiKey.FIND_COORDINATOR, _failed)
def find_coordinator(exchange: Exchange, request: FindCoordinatorRequest) -> Reply:
    if request.key_type == SHARE and exchange.api_version >= FIRST_VERSION_WITH_MANY_KEYS:
        is_early = exchange.node.is_release_4 or exchange.api_version < FIRST_VERSION_WITH_SHARE_GROUPS
        error = ErrorCode.INVALID_REQUEST if is_early else ErrorCode.COORDINATOR_NOT_AVAILABLE
        return _response(exchange, [Coordinator(key, *NOWHERE, int(error), "") for key in request.coordinator_keys])
    if request.key_type not in TOPICS:
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    keys, cluster = _keys(exchange, request), exchange.node.cluster
    if request.key_type == GROUP and exchange.node.events.feature_requested is not None:
        exchange.node.events.feature_requested(exchange, "group", keys)
    comes_later = cluster.profile == "kafka" and TOPICS[request.key_type] not in exchange.node.image.topics
    find = _finder(exchange, request.key_type)
    return _response(exchange, [_find(exchange, key, find, comes_later) for key in keys])


def _finder(exchange: Exchange, key_type: int) -> Callable[[str], int]:
    """Return a function that takes a group or transactional id, and returns the id of the broker that coordinates it.

    key_type: the type of the ids, as in the request: 0 for groups, 1 for transactional ids.

    The coordinator is the leader of the id's partition of `__consumer_offsets` or `__transaction_state`. Partitions that were added to this topic
    after the broker started are ignored (M-8).
    """
    node = exchange.node
    if key_type == TRANSACTION:
        return node.transactions.coordinator_id
    return partial(node.cluster.coordinator_of, partition_count=node.groups.ownership.partition_count)


def _keys(exchange: Exchange, request: FindCoordinatorRequest) -> list[str]:
    """Return the group ids or transactional ids in a FindCoordinator request of any version."""
    return request.coordinator_keys if exchange.api_version >= FIRST_VERSION_WITH_MANY_KEYS else [request.key]


def _find(exchange: Exchange, key: str, find: Callable[[str], int], comes_later: bool) -> Coordinator:
    node = exchange.node
    try:
        broker_id = find(key)
    except KafkaError:
        return _unavailable(exchange, key)
    endpoint = node.image.endpoint(broker_id, exchange.peer.listener_name)
    if comes_later or endpoint is None:
        return _unavailable(exchange, key)
    return Coordinator(key, *endpoint[:3])


def _unavailable(exchange: Exchange, key: str) -> Coordinator:
    """Return the error COORDINATOR_NOT_AVAILABLE (15), which has a message only before version 4."""
    has_message = exchange.api_version < FIRST_VERSION_WITH_MANY_KEYS
    message = "The coordinator is not available." if has_message else ""
    return Coordinator(key, *NOWHERE, int(ErrorCode.COORDINATOR_NOT_AVAILABLE), message)


def _error(key: str, error_code: int) -> Coordinator:
    name = ErrorCode(error_code).name.replace("_", " ").capitalize()
    message = MALFORMED if error_code == ErrorCode.INVALID_REQUEST else f"{name}."
    return Coordinator(key, *NOWHERE, error_code=int(error_code), error_message=message)


def _response(exchange: Exchange, coordinators: list[Coordinator]) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_KEYS:
        return Reply(FindCoordinatorResponse(coordinators=coordinators))
    first = coordinators[0]
    # Kafka has a message even for success.
    message = first.error_message or ErrorCode.NONE.name
    response = FindCoordinatorResponse(
        error_code=first.error_code, error_message=message, node_id=first.node_id, host=first.host, port=first.port
    )
    return Reply(response)
