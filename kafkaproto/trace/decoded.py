"""Decoding of a recorded request and its response, as far as possible.

If the request's body or the response cannot be decoded, the other one is decoded nevertheless, and the first error is stored. If the header of the
request cannot be decoded, neither is decoded.
"""

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
    """A recorded request and response with the decoded `header`, `request` and `response`.

    Each of these three is None if it is missing or cannot be decoded. problem: the first error of decoding, or empty. request_at, response_at: byte
    positions in the frames at which the bodies begin. response_version: the version in which the response is encoded.
    """

    def __init__(self, entry: Exchange) -> None:
        self.entry = entry
        self.header: RequestHeader | None = None
        self.request: Any = None
        self.response: Any = None
        self.problem = ""
        self.request_at = self.response_at = self.response_version = 0
        self._try(self._decode)

    def _try(self, decode: Callable[[], None]) -> None:
        """Run `decode` and store its error in `problem`. The first error is kept, because it may cause the later ones."""
        try:
            decode()
        except (ProtocolError, ValueError) as error:
            self.problem = self.problem or str(error)

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
            and (correlation_id := _CORRELATION_ID.unpack_from(view)[0]) != header.correlation_id
        ):
            self.problem = f"the correlation id of the response is {correlation_id}"
        self.response_version = response_version(header.api_key, header.api_version, view)
        _, at = decode_response_header(header.api_key, header.api_version, view, 0, len(view))
        self.response_at = at
        self.response, _ = codec(header.api_key, self.response_version).decode_response(view, at, len(view))

    @property
    def api(self) -> str:
        """Return the name of the API, or "?" if the header cannot be decoded."""
        return "?" if self.header is None else APIS[self.header.api_key].name

    @property
    def client(self) -> str | None:
        return None if self.header is None else self.header.client_id

    def errors(self) -> Iterator[int]:
        """Return every non-zero error code of the response at any depth, top level first."""
        if self.header is None or self.response is None:
            return iter(())
        return _errors(codec(self.header.api_key, self.response_version).response, self.response)


def _errors(layout: Message[Any], value: Any) -> Iterator[int]:
    """Yield the non-zero error codes in a value. Only fields whose layout can contain an error code are visited."""
    own, inner = _error_places(layout)
    for name in own:
        if code := getattr(value, name):
            yield code
    for name, layout_below in inner:
        nested = getattr(value, name)
        for struct in nested if type(nested) is list else () if nested is None else (nested,):
            yield from _errors(layout_below, struct)


@cache
def _error_places(layout: Message[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, Message[Any]], ...]]:
    """Find the error codes in a message or struct with this layout. Returns (fields with error codes, fields to search further).

    The first value has the names of the fields that are error codes. The second has the nested structs, and lists of structs, that can contain error
    codes: a pair (name of the field, layout of the struct) for each.
    """
    named_types = [*layout.fields, *((field.name, field.type) for field in (layout.tags.fields if layout.tags else ()))]
    structs = [(name, struct) for name, kind in named_types if (struct := _struct_of(kind)) is not None]
    inner = tuple((name, struct) for name, struct in structs if any(_error_places(struct)))
    return tuple(name for name, _ in named_types if name.endswith("error_code")), inner


def _struct_of(kind: WireType) -> Message[Any] | None:
    match kind:
        case Message():
            return kind
        case NullableStruct():
            return kind.struct
        case ArrayType():
            return _struct_of(kind.item)
    return None
