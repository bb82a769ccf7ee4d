"""ApiVersions (key 18, versions 0-4): the APIs and versions that this broker serves.

v1 adds throttle time; v3 is flexible, names the client's software and adds the features of the cluster; v4 also lists features whose lowest supported
level is 0.
Behaviour: the response lists the APIs with registered handlers (M-9). The APIs of client telemetry are listed only if the broker keeps client metrics
(AD-10). A request in an unsupported version of this API gets a response in version 0, with error UNSUPPORTED_VERSION (35) and the supported versions,
so that a client can use a lower one. If the emulated Kafka release is before 2.4, this response lists no versions, and clients then use version 0
(W-3). From v3 on the response has the levels of features that the broker supports and those that the cluster uses (AD-22). An invalid software name
or version gets error INVALID_REQUEST (42) and no APIs (W-4).
"""

from __future__ import annotations

import re
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.config.features import supported_features
from kafkaproto.broker.config.release import lists_api_versions_in_error
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.telemetry import TELEMETRY_APIS, receives_telemetry
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

FIRST_VERSION_WITH_SOFTWARE = FIRST_VERSION_WITH_FEATURES = 3
FIRST_VERSION_WITH_LEVEL_0 = 4
_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.\-]*[a-zA-Z0-9])?\Z")


def _failed(exchange: Exchange, request: Any, error_code: int) -> Reply:
    response = ApiVersionsResponse(error_code=error_code)
    if error_code == ErrorCode.UNSUPPORTED_VERSION and lists_api_versions_in_error(exchange.node.cluster.release_name):
        own = exchange.node.apis[ApiKey.API_VERSIONS]
        response.api_keys = [ApiVersion(own.api_key, own.min_version, own.max_version)]
    return Reply(response)


@register(ApiKey.API_VERSIONS, _failed)
def api_versions(exchange: Exchange, request: ApiVersionsRequest) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.match(request.client_software_name) and _SOFTWARE.match(request.client_software_version)
    ):
        return _failed(exchange, request, ErrorCode.INVALID_REQUEST)
    if exchange.api_version >= FIRST_VERSION_WITH_SOFTWARE:
        exchange.peer.client_software = request.client_software_name, request.client_software_version
    hidden = () if receives_telemetry(exchange.node) else TELEMETRY_APIS
    offered_apis = [r for r in exchange.node.apis.values() if r.api_key not in hidden]
    response = ApiVersionsResponse(api_keys=[ApiVersion(r.api_key, r.min_version, r.max_version) for r in offered_apis])
    if exchange.api_version >= FIRST_VERSION_WITH_FEATURES:
        _add_features(exchange, response)
    return Reply(response)


def _add_features(exchange: Exchange, response: ApiVersionsResponse) -> None:
    supported = supported_features(exchange.node.cluster.release_name)
    if not supported:
        return
    image, knows_level_0 = exchange.node.image, exchange.api_version >= FIRST_VERSION_WITH_LEVEL_0
    response.supported_features = [
        SupportedFeatureKey(name, lowest, highest)
        for name, (lowest, highest) in supported.items()
        if lowest > 0 or knows_level_0
    ]
    response.finalized_features = [FinalizedFeatureKey(name, level, level) for name, level in image.features.items()]
    no_op_records = exchange.node.cluster.controller.no_op_records
    response.finalized_features_epoch = no_op_records.last_offset(image.offset)
