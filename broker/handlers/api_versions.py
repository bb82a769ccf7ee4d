"""ApiVersions (key 18, versions 0-4): the APIs and versions that this broker serves.

v1 adds throttle time; v3 is flexible and names the client's software; v4 fixes the encoding of feature levels of 0.
Behaviour: the table is made from the registry (M-9). An unsupported version of this API is answered in version 0 with error UNSUPPORTED_VERSION (35)
and the supported versions, so that a client can use a lower one (W-3). An invalid software name or version gets error INVALID_REQUEST (42) and no
APIs (W-4).
"""

from __future__ import annotations

import re
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsRequest, ApiVersionsResponse

FIRST_VERSION_WITH_SOFTWARE = 3
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?\Z")


def _failed(exchange: Exchange, request: Any, error_code: int) -> Reply:
    response = ApiVersionsResponse(error_code=error_code)
    if error_code == ErrorCode.UNSUPPORTED_VERSION:
        own = exchange.node.apis[ApiKey.API_VERSIONS]
        response.api_keys = [ApiVersion(own.api_key, own.min_version, own.max_version)]
    return Reply(response)


@register(ApiKey.API_VERSIONS, 0, 4, _failed)
def api_versions(exchange: Exchange, request: ApiVersionsRequest) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.match(request.client_software_name) and _SOFTWARE.match(request.client_software_version)
    ):
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    if exchange.node.events.feature_asked is not None:
        exchange.node.events.feature_asked(exchange, "versions", [])
    offered = exchange.node.apis.values()
    return Reply(ApiVersionsResponse(api_keys=[ApiVersion(r.api_key, r.min_version, r.max_version) for r in offered]))
