"""Broker addresses are replaced in every response of every version that contains one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.addresses import names_brokers, replaced
from kafkaproto.api import APIS, Codec, codec
from kafkaproto.arrays import ArrayType
from kafkaproto.header import decode_response_header, encode_response_header
from kafkaproto.message import Message, NullableStruct
from kafkaproto.wire_type import WireType

FAR_PORT, HERE = 9092, ("here.example", 5000)
OTHERS = {
    "DescribeAcls": "hosts in ACLs",
    "DeleteAcls": "hosts that an ACL was about",
    "DescribeGroups": "where a member of a group is",
    "ConsumerGroupDescribe": "where a member of a group is",
    "ShareGroupDescribe": "where a member of a group is",
    "StreamsGroupDescribe": "locations of group members, and endpoints that applications exchange",
    "StreamsGroupHeartbeat": "endpoints that applications exchange",
}
"""Responses with hosts that are not brokers, to which no client connects through a proxy."""
CASES = [codec(key, version) for key, info in APIS.items() for version in range(info.min_version, info.max_version + 1)]


def fields(layout: Message[Any]) -> Iterator[tuple[str, WireType]]:
    yield from ((name, kind) for name, kind in layout.fields)
    yield from ((field.name, field.type) for field in (layout.tags.fields if layout.tags else ()))


def full(layout: Message[Any]) -> Any:
    """Return an object with one item in every list and an address in every suitable field."""
    message = layout.cls()
    for name, kind in fields(layout):
        if isinstance(kind, ArrayType) and isinstance(kind.item, Message):
            setattr(message, name, [full(kind.item)])
        elif isinstance(kind, Message | NullableStruct):
            setattr(message, name, full(kind if isinstance(kind, Message) else kind.struct))
        elif "host" in name:
            setattr(message, name, f"{name}.far.example")
        elif name == "port":
            message.port = FAR_PORT
        elif name == "records":
            message.records = b""
    return message


def addresses(layout: Message[Any], value: Any) -> Iterator[tuple[str, int | None]]:
    """Yield (host, port or None) of every address in a message."""
    for name, kind in fields(layout):
        addressed = getattr(value, name)
        if isinstance(kind, ArrayType) and isinstance(kind.item, Message):
            for address in addressed or ():
                yield from addresses(kind.item, address)
        elif isinstance(kind, Message | NullableStruct) and addressed is not None:
            yield from addresses(kind if isinstance(kind, Message) else kind.struct, addressed)
        elif "host" in name:
            yield addressed, getattr(value, "port", None)


@pytest.mark.parametrize("api", CASES, ids=lambda api: f"{api.name}-{api.version}")
def test_proxy_replaces_every_broker_address_in_responses_of_every_api_version(api: Codec) -> None:
    frame = bytearray()
    encode_response_header(api.key, api.version, 1, frame)
    api.encode_response(full(api.response), frame, None)
    addresses_found = list(addresses(api.response, full(api.response)))
    out = replaced(api.key, api.version, memoryview(bytes(frame)), lambda node, host, port: HERE)
    if not addresses_found or api.name in OTHERS:
        assert out is None and not (api.name in OTHERS and names_brokers(api.key))
        return
    assert out is not None
    view = memoryview(out)
    _, at = decode_response_header(api.key, api.version, view, 0, len(view))
    message, _ = api.decode_response(view, at, len(view))
    assert set(addresses(api.response, message)) == {HERE}


def test_proxy_replaces_broker_addresses_in_the_responses_of_exactly_eight_apis() -> None:
    """Keeps the list of exceptions and the eight modified APIs correct."""
    having = {api.name for api in CASES if list(addresses(api.response, full(api.response)))}
    assert having >= OTHERS.keys() and len(having - OTHERS.keys()) == 8
