"""Broker addresses in responses: functions that find them, and that replace them in an encoded response.

A proxy uses this module to put its own address in place of the brokers' addresses. The module uses no sockets and does not choose the new addresses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.header import decode_response_header, response_version

Replace = Callable[[int, str, int], tuple[str, int]]
"""A function that maps (broker id, host, port) in a response to the (host, port) that replaces them."""


Places = Iterable[tuple[int, Any]]
"""Pairs (broker id, object with attributes `host` and `port`), one for each address in a response."""


def _of_nodes(nodes: Iterable[Any]) -> Places:
    return ((node.node_id, node) for node in nodes)


def _coordinators(message: Any) -> Places:
    """Return the coordinators in a FindCoordinator response: one before version 4, any number from version 4 on (KIP-699)."""
    return _of_nodes(message.coordinators or [message])


def _endpoints(message: Any) -> Places:
    """Return the addresses of new leaders in a response to Produce, Fetch, ShareFetch or ShareAcknowledge.

    A broker adds the address of the leader of each partition with the error NOT_LEADER_OR_FOLLOWER or FENCED_LEADER_EPOCH (KIP-951).
    """
    return _of_nodes(message.node_endpoints)


def _of_cluster(message: Any) -> Places:
    return ((broker.broker_id, broker) for broker in message.brokers)


def _of_quorum(message: Any) -> Places:
    """Return the controllers' addresses in a DescribeQuorum response. Admin clients may connect to these addresses (KIP-853)."""
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
    """Return whether responses of an API can contain broker addresses."""
    return api_key in _PLACES


def replaced(api_key: int, api_version: int, frame: memoryview, replace: Replace) -> bytes | None:
    """Return a response frame with its broker addresses replaced, or None if the response contains no broker address.

    frame: the response without its length prefix. The returned frame has no length prefix either. Raises ProtocolError if the frame cannot be
    decoded. api_key, api_version: those of the request. replace: maps (broker id, host, port) to the new (host, port).
    """
    if api_key not in _PLACES:
        return None
    _, at = decode_response_header(api_key, api_version, frame, 0, len(frame))
    message_codec = codec(api_key, api_version)
    message, _ = message_codec.decode_response(frame, at, len(frame))
    endpoints = [(node, endpoint) for node, endpoint in _PLACES[api_key](message) if endpoint.host]
    for node, endpoint in endpoints:
        endpoint.host, endpoint.port = replace(node, endpoint.host, endpoint.port)
    if not endpoints:
        return None
    out = bytearray(frame[:at])
    message_codec.encode_response(message, out, None)
    return bytes(out)


def capped(api_version: int, frame: memoryview) -> bytes | None:
    """Return an ApiVersions response with lower maximum versions for APIs whose responses contain broker addresses.

    A maximum above the highest version that this package can decode is lowered to that version, because addresses in responses of a later version
    could not be replaced. Returns None if no maximum is lowered. api_version: that of the request. frame: the response without its length prefix. The
    returned frame has no length prefix either. Raises ProtocolError if the frame cannot be decoded.
    """
    _, at = decode_response_header(ApiKey.API_VERSIONS, api_version, frame, 0, len(frame))
    message_codec = codec(ApiKey.API_VERSIONS, response_version(ApiKey.API_VERSIONS, api_version, frame))
    message, _ = message_codec.decode_response(frame, at, len(frame))
    above = [
        api for api in message.api_keys if api.api_key in _PLACES and api.max_version > APIS[api.api_key].max_version
    ]
    for api in above:
        api.max_version = APIS[api.api_key].max_version
    if not above:
        return None
    out = bytearray(frame[:at])
    message_codec.encode_response(message, out, None)
    return bytes(out)
