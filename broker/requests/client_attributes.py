"""The attributes of a client, such as its software and address, by which subscriptions select the clients that send metrics (KIP-714)."""

from __future__ import annotations

from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.telemetry.instances import ClientAttributes


def attributes_of(exchange: Exchange) -> ClientAttributes:
    """Return the attributes of the client that sent a request, such as its software and address."""
    peer = exchange.peer
    return ClientAttributes(exchange.client_id or "", *peer.client_software, peer.client_address, str(peer.client_port))
