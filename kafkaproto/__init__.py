"""Codec for Kafka's wire protocol: converts bytes to objects and back.

The package uses no socket, clock, asyncio or broker. Importing it imports nothing else: the names below are imported on first use, and
`kafkaproto.codec` imports the messages of one API at a time.

    from kafkaproto import ApiKey, read_response, request_frame
    from kafkaproto.messages.metadata import MetadataRequest

    data = request_frame(MetadataRequest([]), 9, correlation_id=1, client_id="me")      # a whole frame: length, header and body
    response = read_response(ApiKey.METADATA, 9, frame)                                  # a whole frame without its length
"""

__version__ = "0.1.0"

TYPE_CHECKING = False  # as typing.TYPE_CHECKING, without importing typing; type checkers know the name
if TYPE_CHECKING:
    from kafkaproto.api import APIS, ApiKey, Codec, codec
    from kafkaproto.client import (
        Client,
        NoCommonVersion,
        Response,
        UnexpectedResponse,
        read_response,
        request_frame,
        response_frame,
    )
    from kafkaproto.error_codes import ErrorCode
    from kafkaproto.errors import DecodeError, EncodeError, ProtocolError, UnsupportedVersion
    from kafkaproto.records.batch import build_batch
    from kafkaproto.records.entries import entries
    from kafkaproto.records.record import NewRecord, Record
    from kafkaproto.versions import VersionRange

__all__ = [
    "APIS",
    "ApiKey",
    "Client",
    "Codec",
    "DecodeError",
    "EncodeError",
    "ErrorCode",
    "NewRecord",
    "NoCommonVersion",
    "ProtocolError",
    "Record",
    "Response",
    "UnexpectedResponse",
    "UnsupportedVersion",
    "VersionRange",
    "__version__",
    "build_batch",
    "codec",
    "entries",
    "read_response",
    "request_frame",
    "response_frame",
]

_MODULES = {
    "api": ("APIS", "ApiKey", "Codec", "codec"),
    "client": (
        "Client",
        "NoCommonVersion",
        "Response",
        "UnexpectedResponse",
        "read_response",
        "request_frame",
        "response_frame",
    ),
    "error_codes": ("ErrorCode",),
    "errors": ("DecodeError", "EncodeError", "ProtocolError", "UnsupportedVersion"),
    "records.batch": ("build_batch",),
    "records.entries": ("entries",),
    "records.record": ("NewRecord", "Record"),
    "versions": ("VersionRange",),
}
"""Maps each submodule to the names that the package exports from it."""


if not TYPE_CHECKING:  # with `__getattr__`, a type checker would accept any name

    def __getattr__(name: str) -> object:
        """Load a name of `__all__` from its module. Raises AttributeError if the package has no such name."""
        for module, names in _MODULES.items():
            if name in names:
                from importlib import import_module

                value: object = getattr(import_module(f"kafkaproto.{module}"), name)
                globals()[name] = value
                return value
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
