"""The selection of the replica that a consumer should read from (KIP-392, `replica.selector.class`).

A selector gets the client's rack and address and the offsets of the replicas, and returns a replica. This module does not depend on logs or wire
messages.
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
    """The client that sends a Fetch request: rack, client id, address and other fields of Kafka's `ClientMetadata`."""

    rack_id: str
    client_id: str
    client_address: str
    principal: str
    listener_name: str


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """A replica from which a consumer may fetch, because it has the requested offset (Kafka's `ReplicaView`).

    caught_up_age_ms: ms since the replica last had all records of the leader; 0 for the leader.
    """

    broker_id: int
    rack: str | None
    host: str
    port: int
    log_end_offset: int
    log_start_offset: int
    caught_up_age_ms: int


@dataclass(frozen=True, slots=True)
class PartitionView:
    """All replicas that have the requested offset, including the leader (Kafka's `PartitionView`)."""

    replicas: Sequence[ReplicaView]
    leader: ReplicaView


class ReplicaSelector(Protocol):
    """Interface of KIP-392's pluggable selector. If it returns None or raises, the client reads from the leader (N-14)."""

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView | None: ...


class LeaderSelector:
    """A selector that always returns the leader."""

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView | None:
        return partition_view.leader


class RackAwareReplicaSelector:
    """A selector that returns a replica in the client's rack: of several, the one that has the most records (N-4).

    It returns the leader if the leader is in the client's rack, if no replica is in that rack, or if the client has no rack.
    """

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
    """Return the selector that `replica.selector.class` names; None if this setting has no value (N-1).

    name: the value of the setting: the name of a class of Kafka, or `package.module:Class` for a Python class. settings: passed to the method
    `configure` of the Python class, if the class has this method. Raises ValueError, which names the possible values, for a class that cannot be
    imported, created or configured, or that has no method `select`.
    """
    if not name:
        return None
    short = name.removeprefix(_PACKAGE)
    if short in _BUILT_IN:
        return _BUILT_IN[short]()
    module, colon, attribute = name.partition(":")
    if not colon:
        raise _unusable(name, "a Python class must be given as package.module:Class")
    try:
        selector = getattr(importlib.import_module(module), attribute)()
        configure = getattr(selector, "configure", None)
        if configure is not None:
            configure(settings)
    except (ImportError, AttributeError) as error:
        raise _unusable(name, str(error)) from error
    except Exception as error:
        raise _unusable(name, f"{type(error).__name__}: {error}") from error
    if not callable(getattr(selector, "select", None)):
        raise _unusable(name, "the class lacks the method select, which every replica selector must have")
    return selector  # type: ignore[no-any-return]


def _unusable(name: str, reason: str) -> ValueError:
    return ValueError(
        f"replica.selector.class={name}: {reason}; allowed are {_PACKAGE}LeaderSelector, "
        f"{_PACKAGE}RackAwareReplicaSelector or a Python class, for example mypackage.racks:NearestSelector"
    )


class GuardedSelector:
    """A selector that calls another selector, and returns the leader if the other selector raises an exception or returns None (N-14).

    Only the first exception is logged.
    """

    def __init__(self, selector: ReplicaSelector) -> None:
        self._selector = selector
        self._complained = False

    def select(
        self, topic_partition: tuple[str, int], client_metadata: ClientMetadata, partition_view: PartitionView
    ) -> ReplicaView:
        try:
            replica = self._selector.select(topic_partition, client_metadata, partition_view)
        except Exception:
            if not self._complained:
                self._complained = True
                logger.exception(
                    "the class in replica.selector.class raised an exception, so clients read from the leader; fix the class "
                    "(later exceptions are not logged)"
                )
            replica = None
        return replica or partition_view.leader
