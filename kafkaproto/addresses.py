"""The addresses of brokers in answers: which messages have them, and the same frames with others in their places.

For whoever stands between clients and brokers. Must never know sockets, nor why an address is to be another one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from kafkaproto.api import APIS, ApiKey, codec
from kafkaproto.header import decode_response_header

Replace = Callable[[int, str, int], tuple[str, int]]
"""(broker id, host, port) to what is to be told instead."""


def _coordinators(message: Any) -> Iterable[Any]:
    """Of FindCoordinator: one in itself, since version 4 a list (KIP-699)."""
    return message.coordinators or [message]


_PLACES: dict[int, Callable[[Any], Iterable[Any]]] = {
    ApiKey.METADATA: lambda message: message.brokers,
    ApiKey.FIND_COORDINATOR: _coordinators,
    ApiKey.DESCRIBE_CLUSTER: lambda message: message.brokers,
    ApiKey.PRODUCE: lambda message: message.node_endpoints,
    ApiKey.FETCH: lambda message: message.node_endpoints,
    ApiKey.SHARE_FETCH: lambda message: message.node_endpoints,
    ApiKey.SHARE_ACKNOWLEDGE: lambda message: message.node_endpoints,
}
"""Since KIP-951 answers to who asked the wrong broker name the right one. DescribeQuorum names controllers, which clients do not ask."""


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
    found = [place for place in _PLACES[api_key](message) if place.host]
    for place in found:
        node = place.broker_id if api_key == ApiKey.DESCRIBE_CLUSTER else place.node_id
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
    api = codec(ApiKey.API_VERSIONS, api_version)
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
