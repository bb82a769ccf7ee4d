"""Which replica a consumer should read from (KIP-392): `replica.selector.class`.

A selector sees a rack, addresses and how far replicas are, and names one. Must never know logs or wire messages.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

logger = logging.getLogger("kafkaproto.selector")

_PACKAGE = "org.apache.kafka.common.replica."


@dataclass(frozen=True, slots=True)
class ClientMetadata:
    """Who asks (`ClientMetadata`)."""

    rack_id: str
    client_id: str
    client_address: str
    principal: str
    listener_name: str


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One replica that could serve the offset (`ReplicaView`). caught_up_age_ms: time since it was last caught up, 0 for the leader."""

    broker_id: int
    rack: str | None
    host: str
    port: int
    log_end_offset: int
    log_start_offset: int
    caught_up_age_ms: int


@dataclass(frozen=True, slots=True)
class PartitionView:
    """All replicas that could serve, the leader among them (`PartitionView`)."""

    replicas: Sequence[ReplicaView]
    leader: ReplicaView


class ReplicaSelector(Protocol):
    """KIP-392's pluggable selector. None, or an exception, means the leader (N-14)."""

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView | None: ...


class LeaderSelector:
    """Always the leader."""

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView | None:
        return partition_view.leader


class RackAwareReplicaSelector:
    """N-4: the leader if it is in the client's rack, else the most caught-up replica of that rack, else the leader."""

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView | None:
        leader = partition_view.leader
        rack = client_metadata.rack_id
        if not rack:
            return leader
        near = [replica for replica in partition_view.replicas if replica.rack == rack]
        if not near or leader in near:
            return leader
        return max(near, key=lambda r: (r.log_end_offset, -r.caught_up_age_ms, r.broker_id))


_BUILT_IN: dict[str, type[LeaderSelector] | type[RackAwareReplicaSelector]] = {
    "LeaderSelector": LeaderSelector,
    "RackAwareReplicaSelector": RackAwareReplicaSelector,
}


def load_selector(name: str | None, settings: Mapping[str, object]) -> ReplicaSelector | None:
    """The selector that `replica.selector.class` names: a Kafka class name or `package.module:Class`; None when unset (N-1).

    Raises ValueError for what cannot be loaded, saying what could.
    """
    if not name:
        return None
    short = name.removeprefix(_PACKAGE)
    if short in _BUILT_IN:
        return _BUILT_IN[short]()
    module, colon, attribute = name.partition(":")
    try:
        if not colon:
            raise ImportError("it is no Python class of the form package.module:Class")
        selector = getattr(importlib.import_module(module), attribute)()
    except (ImportError, AttributeError) as error:
        raise ValueError(
            f"replica.selector.class={name}: {error}; allowed are {_PACKAGE}LeaderSelector, "
            f"{_PACKAGE}RackAwareReplicaSelector or a Python class, for example mypackage.racks:NearestSelector"
        ) from None
    configure = getattr(selector, "configure", None)
    if configure is not None:
        configure(settings)
    return selector  # type: ignore[no-any-return]


class GuardedSelector:
    """Calls somebody else's selector: what it raises is logged once and means the leader (N-14)."""

    def __init__(self, selector: ReplicaSelector) -> None:
        self._selector = selector
        self._complained = False

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView:
        try:
            chosen = self._selector.select(topic_partition, client_metadata, partition_view)
        except Exception:
            if not self._complained:
                self._complained = True
                logger.exception("the replica selector failed; its clients read from the leader (said once)")
            chosen = None
        return chosen or partition_view.leader
