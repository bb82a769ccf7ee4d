"""From an API key and a version to the codec of its messages.

Message modules are imported when they are first asked for, and flat code is made when it is first used, so a process
pays for the APIs that it speaks. This module must never know what a message means.
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
    """One version of one API, in both directions.

    The four functions are flat code: ``decode_*(view, pos, end)`` returns the object and the position behind it and
    reads nothing at or behind ``end``; records come out as slices of ``view``. ``encode_*(obj, out, splices)`` appends
    to ``out``; a records value that is neither None nor bytes leaves ``(position in out, value)`` in ``splices``.
    They raise DecodeError and EncodeError, nothing else.
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
        """``(view, pos, end) -> (request, position behind it)``"""
        return self.request.decode_flat

    @cached_property
    def encode_request(self) -> Encode:
        """``(request, out, splices) -> None``"""
        return self.request.encode_flat

    @cached_property
    def decode_response(self) -> Decode:
        """``(view, pos, end) -> (response, position behind it)``"""
        return self.response.decode_flat

    @cached_property
    def encode_response(self) -> Encode:
        """``(response, out, splices) -> None``"""
        return self.response.encode_flat


@cache
def codec(api_key: int, version: int) -> Codec:
    """The codec of one version of an API, the same object every time. Raises UnsupportedVersion."""
    info = api_info(api_key)
    if not info.min_version <= version <= info.max_version:
        raise UnsupportedVersion(api_key, version, f"{info.name} v{info.min_version} to v{info.max_version}")
    return Codec(info, version)


def api_info(api_key: int) -> ApiInfo:
    """Name and versions of an API. Raises UnsupportedVersion for a key that there are no messages for."""
    info = APIS.get(api_key)
    if info is None:
        raise UnsupportedVersion(api_key)
    return info


def request_header_version(api_key: int, version: int) -> int:
    """2 if the version is flexible, else 1. (0 was for ControlledShutdown v0 only.) Raises UnsupportedVersion."""
    return 2 if is_flexible(api_key, version) else 1


def response_header_version(api_key: int, version: int) -> int:
    """1 if the version is flexible, else 0; always 0 for ApiVersions, whose asker knows no versions yet (KIP-511)."""
    return 1 if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS else 0


NEVER = 0x8000
"""Above every version."""
_FIRST_FLEXIBLE = {
    int(key): NEVER if info.first_flexible is None else info.first_flexible for key, info in APIS.items()
}


def is_flexible(api_key: int, version: int) -> bool:
    """Whether a version has compact types and tag sections (KIP-482), also for versions that are not known yet."""
    try:
        return version >= _FIRST_FLEXIBLE[api_key]
    except KeyError:
        raise UnsupportedVersion(api_key) from None
