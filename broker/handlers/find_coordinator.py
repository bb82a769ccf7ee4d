"""FindCoordinator (key 10, versions 0-6): which broker speaks for a group.

v1 key types (0 group, 1 transaction) and messages; v3 flexible; v4 many keys, each with its own error; v5 and v6 change
no layout. Behaviour: M-8. Without the internal topic the answer is 15, and it is created for the next one. Transactions
have no coordinator until
a later issue: they are refused with 53, which no client retries.
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse

FIRST_VERSION_WITH_MANY_KEYS = 4
GROUP, TRANSACTION = 0, 1
OFFSETS_TOPIC = "__consumer_offsets"
NOWHERE = (-1, "", -1)


def _failed(exchange: Exchange, request: FindCoordinatorRequest, error_code: int) -> Reply:
    keys = request.coordinator_keys if exchange.api_version >= FIRST_VERSION_WITH_MANY_KEYS else [request.key]
    return _response(exchange, [_error(key, error_code) for key in keys])


@register(ApiKey.FIND_COORDINATOR, 0, 6, _failed)
def find_coordinator(exchange: Exchange, request: FindCoordinatorRequest) -> Reply:
    if request.key_type == TRANSACTION:
        return _failed(exchange, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if request.key_type != GROUP:
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    keys = request.coordinator_keys if exchange.api_version >= FIRST_VERSION_WITH_MANY_KEYS else [request.key]
    is_new = OFFSETS_TOPIC not in exchange.node.image.topics
    return _response(exchange, [_find(exchange, key, is_new) for key in keys])


def _find(exchange: Exchange, group_id: str, is_new: bool) -> Coordinator:
    node = exchange.node
    try:
        broker_id = node.cluster.coordinator_of(group_id)
    except KafkaError as error:
        return _error(group_id, error.error_code)
    endpoint = node.image.endpoint(broker_id, exchange.peer.listener_name)
    if is_new or endpoint is None:
        return _error(group_id, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    return Coordinator(group_id, *endpoint[:3])


def _error(key: str, error_code: int) -> Coordinator:
    name = ErrorCode(error_code).name.replace("_", " ").capitalize()
    return Coordinator(key, *NOWHERE, error_code=int(error_code), error_message=f"{name}.")


def _response(exchange: Exchange, found: list[Coordinator]) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_MANY_KEYS:
        return Reply(FindCoordinatorResponse(coordinators=found))
    one = found[0]
    # Kafka names even success here.
    message = one.error_message or ErrorCode.NONE.name
    answer = FindCoordinatorResponse(
        error_code=one.error_code, error_message=message, node_id=one.node_id, host=one.host, port=one.port
    )
    return Reply(answer)
