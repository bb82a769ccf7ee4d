"""An exchange of a trace as the objects of its frames, as far as they can be read. Must never know what is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from kafkaproto.api import APIS, codec
from kafkaproto.errors import ProtocolError
from kafkaproto.header import RequestHeader, decode_request_header, decode_response_header
from kafkaproto.structs import Struct
from kafkaproto.trace.format import Exchange


class Decoded:
    """`header`, `request` and `response` of an exchange, None where they are not there or cannot be read: then `trouble` says why.

    request_at, response_at: where their bodies begin in the frames.
    """

    def __init__(self, entry: Exchange) -> None:
        self.entry = entry
        self.header: RequestHeader | None = None
        self.request: Any = None
        self.response: Any = None
        self.trouble = ""
        self.request_at = self.response_at = 0
        try:
            self._decode()
        except (ProtocolError, ValueError) as error:
            self.trouble = str(error)

    def _decode(self) -> None:
        view = memoryview(self.entry.request)
        header, at = decode_request_header(view, 0, len(view))
        self.header = header
        self.request_at = at
        api = codec(header.api_key, header.api_version)
        self.request, _ = api.decode_request(view, at, len(view))
        if self.entry.answered:
            view = memoryview(self.entry.response)
            told, at = decode_response_header(header.api_key, header.api_version, view, 0, len(view))
            self.response_at = at
            self.response, _ = api.decode_response(view, at, len(view))
            if told.correlation_id != header.correlation_id:
                self.trouble = f"the answer's correlation id is {told.correlation_id}"

    @property
    def api(self) -> str:
        """Its name, "?" where the header cannot be read."""
        return "?" if self.header is None else APIS[self.header.api_key].name

    @property
    def client(self) -> str | None:
        return None if self.header is None else self.header.client_id

    def errors(self) -> Iterator[int]:
        """Every error code but 0 of the response, wherever it stands; its own first."""
        return _errors(self.response)


def _errors(value: Any) -> Iterator[int]:
    if isinstance(value, Struct):
        own = getattr(value, "error_code", 0)
        if own:
            yield own
        for field in fields(value):  # type: ignore[arg-type]  # every Struct is a dataclass
            yield from _errors(getattr(value, field.name))
    elif isinstance(value, list):
        for inner in value:
            yield from _errors(inner)
