"""Error codes of responses: the journal and the trace find each field that can contain one, whatever its name and depth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.api import APIS
from kafkaproto.arrays import ArrayType
from kafkaproto.broker.observe.details import RequestDetails, response_details
from kafkaproto.client import response_frame
from kafkaproto.error_codes import ErrorCode
from kafkaproto.header import RequestHeader, encode_request_header
from kafkaproto.message import Message, NullableStruct
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Exchange
from kafkaproto.wire_type import WireType
from tests.support.codec.catalogue import Entry, entries
from tests.support.codec.values import Values

ERROR = ErrorCode.CONCURRENT_TRANSACTIONS
LENGTH_BYTES = 4
API_KEYS = {f"{info.name}Response": info.key for info in APIS.values()}
RESPONSES = [entry for entry in entries() if entry.name in API_KEYS]


def error_fields(wire_type: WireType, value: Any) -> Iterator[tuple[Any, str]]:
    """Yield (structure, name) of each field with an error code in a value of this type."""
    if isinstance(wire_type, ArrayType):
        for item in value:
            yield from error_fields(wire_type.item, item)
    layout = wire_type.struct if isinstance(wire_type, NullableStruct) else wire_type
    if isinstance(layout, Message):
        tagged = [(field.name, field.type) for field in layout.tags.fields] if layout.tags else []
        for name, field_type in (*layout.fields, *tagged):
            if name.endswith("error_code"):
                yield value, name
            yield from error_fields(field_type, getattr(value, name))


def responses_with_one_error(entry: Entry) -> Iterator[tuple[str, Any]]:
    """Yield (name of a field, response) for each field with an error code. All other error codes of the response are 0."""
    response = Values(entry).object(entry.layout, "tiny")
    places = list(error_fields(entry.layout, response))
    for structure, name in places:
        setattr(structure, name, 0)
    for structure, name in places:
        setattr(structure, name, ERROR.value)
        yield f"{type(structure).__name__}.{name}", response
        setattr(structure, name, 0)


def recorded(entry: Entry, response: Any) -> Exchange:
    """Return the trace entry of a response, with a request that has no body."""
    key = API_KEYS[entry.name]
    request = bytearray()
    encode_request_header(RequestHeader(key, entry.version, 1, None), request)
    frame = response_frame(response, key, entry.version)[LENGTH_BYTES:]
    sizes = len(request), len(frame)
    return Exchange(1, 0, 1, 0, 0, 0, 0, 0, 0, True, False, False, *sizes, bytes(request), frame, (), ())


@pytest.mark.parametrize("entry", RESPONSES, ids=lambda entry: entry.id)
def test_error_code_in_any_field_of_a_response_is_found_by_journal_and_trace(entry: Entry) -> None:
    for name, response in responses_with_one_error(entry):
        assert response_details(response, RequestDetails(), bytes.hex).errors == (ERROR.name,), name
        assert list(Decoded(recorded(entry, response)).errors()) == [ERROR], name
