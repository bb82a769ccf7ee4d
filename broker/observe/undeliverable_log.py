"""Warnings about clients that can never fetch the next batch of a partition, because their quota is too small for it (Q-14)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from kafkaproto.broker.runtime.events import UNDELIVERABLE, Observer

logger = logging.getLogger("kafkaproto.quotas")


def undeliverable_text(facts: Mapping[str, Any]) -> str:
    """Return a sentence about a client that can never fetch the next batch of a partition: which partition, why, and how to fix this.

    facts: client_id, topic, partition, response_bytes (the size of a response with this batch), quota (the client's consumer_byte_rate),
    largest_bytes (the largest response that the quota allows) and window_ms (the longest time over which the client's rate is measured).
    """
    needed_rate = facts["response_bytes"] * 1000 // facts["window_ms"] + 1
    return (
        f"client-id {facts['client_id']!r} can never fetch {facts['topic']}-{facts['partition']}: its next batch makes a response of "
        f"{facts['response_bytes']} bytes, and consumer_byte_rate={facts['quota']:g} allows at most {facts['largest_bytes']} bytes within "
        f"{facts['window_ms']} ms; set consumer_byte_rate to {needed_rate} or more, or produce smaller batches"
    )


class UndeliverableLog(Observer):
    """An observer that logs a warning when a client can never fetch the next batch of a partition, because the client's quota is too small."""

    def noted(self, now_ms: int, broker_id: int, kind: str, facts: Mapping[str, Any]) -> None:
        if kind == UNDELIVERABLE:
            logger.warning("broker %d: %s", broker_id, undeliverable_text(facts))
