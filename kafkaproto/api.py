"""Lookup from an API key and version to the codec of its messages.

A message module is imported when its API is first looked up, and its fast decoders and encoders are compiled on first use, so a process pays only for
the APIs that it uses. This module does not depend on the meaning of any message.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from kafkaproto.errors import UnsupportedVersion
from kafkaproto.message import Message
from kafkaproto.messages import APIS, ApiInfo, ApiKey
from kafkaproto.primitives import Splices

__all__ = ["APIS", "ApiInfo", "ApiKey", "Codec", "codec", "request_header_version", "response_header_version"]

Decode = Callable[[memoryview, int, int], tuple[Any, int]]
Encode = Callable[[Any, bytearray, Splices | None], None]


class Codec:
    """The codec of requests and responses of one version of one API.

    Its four functions are generated code. ``decode_*(view, pos, end)`` returns the object and the position after it, and reads nothing at or after
    ``end``; records are returned as slices of ``view``. ``encode_*(obj, out, splices)`` appends the encoded object to ``out``. Records in a file are
    not copied: the function appends each range of the file to ``splices`` as ``(position in out, range)``. The program that sends ``out`` can then
    send the range directly from the file, at this position. The functions raise only DecodeError and EncodeError.
    """

    def __init__(self, info: ApiInfo, version: int) -> None:
        module = import_module(f"kafkaproto.messages.{info.module}")
        self.key = info.key
        self.version = version
        self.name = info.name
        self.flexible = is_flexible(info.key, version)
        self.request_header_version = request_header_version(info.key, version)
        self.response_header_version = response_header_version(info.key, version)
        self.request: Message[Any] = module.REQUESTS[version]
        self.response: Message[Any] = module.RESPONSES[version]

    def __repr__(self) -> str:
        return f"<{self.name} v{self.version}>"

    @cached_property
    def decode_request(self) -> Decode:
        """Return the function that decodes a request: ``(view, pos, end) -> (request, position after the request)``.

        pos, end: the positions in bytes at which the request begins and ends in ``view``. The request has no header.
        """
        return self.request.decode_flat

    @cached_property
    def encode_request(self) -> Encode:
        """Return the function that encodes a request: ``(request, out, splices) -> None``.

        out: the bytearray to which the encoded bytes are appended. splices: a list for records that are in a file. The function does not copy such
        records into ``out``, but appends (position in ``out``, range of the file) to this list. None if all records are bytes.
        """
        return self.request.encode_flat

    @cached_property
    def decode_response(self) -> Decode:
        """Return the function that decodes a response: ``(view, pos, end) -> (response, position after the response)``.

        pos, end: the positions in bytes at which the response begins and ends in ``view``. The response has no header.
        """
        return self.response.decode_flat

    @cached_property
    def encode_response(self) -> Encode:
        """Return the function that encodes a response: ``(response, out, splices) -> None``.

        out: the bytearray to which the encoded bytes are appended. splices: a list for records that are in a file. The function does not copy such
        records into ``out``, but appends (position in ``out``, range of the file) to this list. None if all records are bytes.
        """
        return self.response.encode_flat


@cache
def codec(api_key: int, version: int) -> Codec:
    """Return the codec of one version of an API, the same object every time. Raises UnsupportedVersion for an unknown key or version."""
    info = api_info(api_key)
    if not info.min_version <= version <= info.max_version:
        raise UnsupportedVersion(api_key, version, f"{info.name} v{info.min_version} to v{info.max_version}")
    return Codec(info, version)


def api_info(api_key: int) -> ApiInfo:
    """Return name and versions of an API. Raises UnsupportedVersion if the package has no messages for the key."""
    info = APIS.get(api_key)
    if info is None:
        raise UnsupportedVersion(api_key)
    return info


def request_header_version(api_key: int, version: int) -> int:
    """Return the version of the request header: 2 if the API version is flexible, else 1.

    Version 0 was used only by ControlledShutdown v0. Raises UnsupportedVersion for an unknown key.
    """
    return 2 if is_flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """Return the version of the response header: 1 if the API version is flexible, else 0.

    It is always 0 for ApiVersions, because the client does not know the broker's versions yet (KIP-511). Raises UnsupportedVersion for an
    unknown key.
    """
    return 1 if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS else 0


NEVER = 0x8000
"""The first flexible version of an API that has no flexible version: a number above every possible version."""
_FIRST_FLEXIBLE = {
    int(key): NEVER if info.first_flexible is None else info.first_flexible for key, info in APIS.items()
}


def is_flexible(api_key: int, version: int) -> bool:
    """Return whether a version has compact types and tag sections (KIP-482).

    Versions above the newest known one count as flexible if the newest one is. Raises UnsupportedVersion for an unknown key.
    """
    try:
        return version >= _FIRST_FLEXIBLE[api_key]
    except KeyError:
        raise UnsupportedVersion(api_key) from None
