"""ApiVersions (key 18, versions 0-4): what this broker really serves.

v1 adds throttle time; v3 is flexible and names the client's software; v4 fixes the encoding of feature levels of 0.
Behaviour: the table is made from the registry (M-9). A version that is not offered is answered in version 0 with error 35 and the
versions of this API, so that a client can step down (W-3). A bad software name or version is error 42 with an empty table (W-4).
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
    offered = exchange.node.apis.values()
    return Reply(ApiVersionsResponse(api_keys=[ApiVersion(r.api_key, r.min_version, r.max_version) for r in offered]))
