"""The APIs of client telemetry, and the setting that makes a broker advertise them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafkaproto.api import ApiKey

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

TELEMETRY_APIS = frozenset({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
"""The APIs of client telemetry. Every broker handles them; only a broker that keeps the metrics of clients advertises them (AD-10)."""


def receives_telemetry(node: Node) -> bool:
    """Return whether a broker keeps the metrics of clients. Only such a broker advertises the APIs of client telemetry."""
    is_enabled: bool = node.config["kafkaproto.client.telemetry.enable"]
    return is_enabled
