"""The addresses of brokers in answers: which messages have them, and the same frames with others in their places.

For whoever stands between clients and brokers. Must never know sockets, nor why an address is to be another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.header import decode_response_header, response_version

Replace = Callable[[int, str, int], tuple[str, int]]
"""(broker id, host, port) to what is to be told instead."""


Places = Iterable[tuple[int, Any]]
"""(broker id, what has its `host` and `port`)."""


def _of_nodes(nodes: Iterable[Any]) -> Places:
    return ((node.node_id, node) for node in nodes)


def _coordinators(message: Any) -> Places:
    """Of FindCoordinator: one in itself, since version 4 a list (KIP-699)."""
    return _of_nodes(message.coordinators or [message])


def _endpoints(message: Any) -> Places:
    """Since KIP-951 answers to who asked the wrong broker name the right one."""
    return _of_nodes(message.node_endpoints)


def _of_cluster(message: Any) -> Places:
    return ((broker.broker_id, broker) for broker in message.brokers)


def _of_quorum(message: Any) -> Places:
    """Of DescribeQuorum: the listeners of controllers, which who administers a cluster may go to (KIP-853)."""
    return ((node.node_id, listener) for node in message.nodes for listener in node.listeners)


_PLACES: dict[int, Callable[[Any], Places]] = {
    ApiKey.METADATA: lambda message: _of_nodes(message.brokers),
    ApiKey.FIND_COORDINATOR: _coordinators,
    ApiKey.DESCRIBE_CLUSTER: _of_cluster,
    ApiKey.DESCRIBE_QUORUM: _of_quorum,
    ApiKey.PRODUCE: _endpoints,
    ApiKey.FETCH: _endpoints,
    ApiKey.SHARE_FETCH: _endpoints,
    ApiKey.SHARE_ACKNOWLEDGE: _endpoints,
}


def names_brokers(api_key: int) -> bool:
    """Whether answers of this API can have addresses."""
    return api_key in _PLACES


def replaced(api_key: int, api_version: int, frame: memoryview, replace: Replace) -> bytes | None:
    """An answer, without its length, with other addresses; None where it has none. Raises ProtocolError when it cannot be read."""
    if api_key not in _PLACES:
        return None
    _, at = decode_response_header(api_key, api_version, frame, 0, len(frame))
    api = codec(api_key, api_version)
    message, _ = api.decode_response(frame, at, len(frame))
    found = [(node, place) for node, place in _PLACES[api_key](message) if place.host]
    for node, place in found:
        place.host, place.port = replace(node, place.host, place.port)
    if not found:
        return None
    out = bytearray(frame[:at])
    api.encode_response(message, out, None)
    return bytes(out)


def capped(api_version: int, frame: memoryview) -> bytes | None:
    """An answer to ApiVersions in which APIs that name brokers end where `replaced` can read them; None where nothing has to change.

    Raises ProtocolError when it cannot be read.
    """
    _, at = decode_response_header(ApiKey.API_VERSIONS, api_version, frame, 0, len(frame))
    api = codec(ApiKey.API_VERSIONS, response_version(ApiKey.API_VERSIONS, api_version, frame))
    message, _ = api.decode_response(frame, at, len(frame))
    above = [
        one for one in message.api_keys if one.api_key in _PLACES and one.max_version > APIS[one.api_key].max_version
    ]
    for one in above:
        one.max_version = APIS[one.api_key].max_version
    if not above:
        return None
    out = bytearray(frame[:at])
    api.encode_response(message, out, None)
    return bytes(out)
