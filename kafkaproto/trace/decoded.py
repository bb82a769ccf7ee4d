"""An exchange of a trace as the objects of its frames, as far as they can be read. Must never know what is made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from struct import Struct
from typing import Any

from kafkaproto.api import APIS, codec
from kafkaproto.arrays import ArrayType
from kafkaproto.errors import ProtocolError
from kafkaproto.header import RequestHeader, decode_request_header, decode_response_header, response_version
from kafkaproto.message import Message, NullableStruct
from kafkaproto.trace.format import Exchange
from kafkaproto.wire_type import WireType

_CORRELATION_ID = Struct(">i")


class Decoded:
    """`header`, `request` and `response` of an exchange, None where they are not there or cannot be read: then `trouble` says why.

    request_at, response_at: where their bodies begin in the frames. response_version: what the answer is written in.
    """

    def __init__(self, entry: Exchange) -> None:
        self.entry = entry
        self.header: RequestHeader | None = None
        self.request: Any = None
        self.response: Any = None
        self.trouble = ""
        self.request_at = self.response_at = self.response_version = 0
        self._try(self._decode)

    def _try(self, decode: Callable[[], None]) -> None:
        """What is told first is what is wrong: it may be why the rest cannot be read."""
        try:
            decode()
        except (ProtocolError, ValueError) as error:
            self.trouble = self.trouble or str(error)

    def _decode(self) -> None:
        view = memoryview(self.entry.request)
        self.header, self.request_at = decode_request_header(view, 0, len(view))
        self._try(partial(self._decode_request, self.header, view))
        if self.entry.answered:
            self._try(partial(self._decode_response, self.header))

    def _decode_request(self, header: RequestHeader, view: memoryview) -> None:
        api = codec(header.api_key, header.api_version)
        self.request, _ = api.decode_request(view, self.request_at, len(view))

    def _decode_response(self, header: RequestHeader) -> None:
        view = memoryview(self.entry.response)
        if (
            len(view) >= _CORRELATION_ID.size
            and (told := _CORRELATION_ID.unpack_from(view)[0]) != header.correlation_id
        ):
            self.trouble = f"the answer's correlation id is {told}"
        self.response_version = response_version(header.api_key, header.api_version, view)
        _, at = decode_response_header(header.api_key, header.api_version, view, 0, len(view))
        self.response_at = at
        self.response, _ = codec(header.api_key, self.response_version).decode_response(view, at, len(view))

    @property
    def api(self) -> str:
        """Its name, "?" where the header cannot be read."""
        return "?" if self.header is None else APIS[self.header.api_key].name

    @property
    def client(self) -> str | None:
        return None if self.header is None else self.header.client_id

    def errors(self) -> Iterator[int]:
        """Every error code but 0 of the response, wherever it stands; its own first."""
        if self.header is None or self.response is None:
            return iter(())
        return _errors(codec(self.header.api_key, self.response_version).response, self.response)


def _errors(layout: Message[Any], value: Any) -> Iterator[int]:
    """Looks only where a layout can have one: most of a large answer is passed over."""
    own, inner = _error_places(layout)
    if own and value.error_code:
        yield value.error_code
    for name, below in inner:
        found = getattr(value, name)
        for one in found if type(found) is list else () if found is None else (found,):
            yield from _errors(below, one)


@cache
def _error_places(layout: Message[Any]) -> tuple[bool, tuple[tuple[str, Message[Any]], ...]]:
    """Whether it has an error code itself, and its fields with structs that may have one, each or as items of a list."""
    named = [*layout.fields, *((field.name, field.type) for field in (layout.tags.fields if layout.tags else ()))]
    structs = [(name, struct) for name, kind in named if (struct := _struct_of(kind)) is not None]
    inner = tuple((name, struct) for name, struct in structs if any(_error_places(struct)))
    return any(name == "error_code" for name, _ in named), inner


def _struct_of(kind: WireType) -> Message[Any] | None:
    match kind:
        case Message():
            return kind
        case NullableStruct():
            return kind.struct
        case ArrayType():
            return _struct_of(kind.item)
    return None
