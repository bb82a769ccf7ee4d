"""The attributes of the client of a request that subscriptions to client metrics can match."""

from __future__ import annotations

from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.telemetry.instances import ClientAttributes


def attributes_of(exchange: Exchange) -> ClientAttributes:
    """Return the attributes of the client of a request."""
    peer = exchange.peer
    return ClientAttributes(exchange.client_id or "", *peer.client_software, peer.client_address, str(peer.client_port))
