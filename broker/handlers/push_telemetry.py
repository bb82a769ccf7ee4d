"""PushTelemetry (key 72, version 0): the metrics of a client (KIP-714).

Behaviour: the broker checks these points, in this order (AD-15): the client instance id; that the client's last push was not its terminating one;
that the push interval has passed; the subscription id; the compression type; the size. It reports the metrics to observers if
`kafkaproto.client.telemetry.enable` is set, and drops them otherwise (AD-10).
"""

from __future__ import annotations

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.client_attributes import attributes_of
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.telemetry import receives_telemetry
from kafkaproto.broker.telemetry.instances import PushRequest
from kafkaproto.messages.push_telemetry import PushTelemetryRequest, PushTelemetryResponse


def _failed(exchange: Exchange, request: PushTelemetryRequest, error_code: int) -> Reply:
    return Reply(PushTelemetryResponse(error_code=int(error_code)))


@register(ApiKey.PUSH_TELEMETRY, _failed)
def push_telemetry(exchange: Exchange, request: PushTelemetryRequest) -> Reply:
    node = exchange.node
    push_request = PushRequest(
        request.client_instance_id,
        request.subscription_id,
        request.terminating,
        request.compression_type,
        bytes(request.metrics),
    )
    try:
        push = node.telemetry.push(push_request, attributes_of(exchange), exchange.peer.connection_id, exchange.now_ms)
    except KafkaError as error:
        return _failed(exchange, request, error.error_code)
    if push is not None and node.events.telemetry_pushed is not None and receives_telemetry(node):
        node.events.telemetry_pushed(node.broker_id, push, exchange.now_ms)
    return Reply(PushTelemetryResponse())
