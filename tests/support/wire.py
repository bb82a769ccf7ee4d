"""Requests for tests in virtual time: those of the conformance suite, and quotas set without a request."""

from __future__ import annotations

from kafkaproto.broker.quota.entities import parse_entity
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.conformance.wire import (
    FETCH_VERSION,
    PRODUCE_VERSION,
    batch,
    batch_of_bytes,
    errors,
    fetch,
    flat,
    metadata,
    produce,
    produce_of_bytes,
    produced,
    sizes,
)
from kafkaproto.frame import LENGTH_BYTES

__all__ = [
    "FETCH_VERSION",
    "LENGTH_BYTES",
    "PRODUCE_VERSION",
    "batch",
    "batch_of_bytes",
    "errors",
    "fetch",
    "flat",
    "limit",
    "metadata",
    "produce",
    "produce_of_bytes",
    "produced",
    "sizes",
]


def limit(
    cluster: VirtualCluster, client_id: str | None = "test", user: str | None = None, **values: float | None
) -> None:
    """Set quotas of a client-id, a user, or both."""
    components = [(kind, name) for kind, name in (("user", user), ("client-id", client_id)) if name is not None]
    for key, value in values.items():
        cluster.state.quota_store.set(parse_entity(components), key, value)
