"""GetTelemetrySubscriptions (key 71, version 0): the metrics that a client should push to this broker, and how often (KIP-714).

Behaviour: a client without an id gets one. The response combines all subscriptions that match the client (AD-11 to AD-13). A client that repeats the
request before its push interval has passed gets error THROTTLING_QUOTA_EXCEEDED (89) (AD-14).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.client_attributes import attributes_of
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.messages.get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from kafkaproto.records.compression import Compression

ACCEPTED_COMPRESSION = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The compression types that clients may use, in the order of preference. Uncompressed metrics are accepted, too."""


def _failed(exchange: Exchange, request: GetTelemetrySubscriptionsRequest, error_code: int) -> Reply:
    return Reply(GetTelemetrySubscriptionsResponse(error_code=int(error_code)))


@register(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, _failed)
def get_telemetry_subscriptions(exchange: Exchange, request: GetTelemetrySubscriptionsRequest) -> Reply:
    telemetry, connection_id = exchange.node.telemetry, exchange.peer.connection_id
    try:
        instance = telemetry.subscribe(
            request.client_instance_id, attributes_of(exchange), connection_id, exchange.now_ms
        )
    except KafkaError as error:
        return _failed(exchange, request, error.error_code)
    return Reply(
        GetTelemetrySubscriptionsResponse(
            client_instance_id=instance.client_instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=[int(kind) for kind in ACCEPTED_COMPRESSION],
            push_interval_ms=instance.interval_ms,
            telemetry_max_bytes=telemetry.max_bytes,
            delta_temporality=True,
            requested_metrics=list(instance.metrics),
        )
    )
