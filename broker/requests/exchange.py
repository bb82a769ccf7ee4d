"""A request on its way: who asks, what its header says, and what is gathered until its response is out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kafkaproto.api import Codec

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.quota.mutations import MutationCharge


class Waiting(Protocol):
    """What is in progress for a connection that may close first."""

    def abandon(self) -> None: ...


class Peer(Protocol):
    """A connection as requests know it: who asks, through which listener, and where the response goes."""

    connection_id: int
    listener_name: str
    client_address: str
    principal: str
    received_ns: int
    """When its last bytes came (monotonic clock), set by an observer of `bytes_received`; else 0."""
    exchange: Exchange | None
    """The request in progress, until its response is out."""
    parked: Waiting | None
    """What the request in progress waits for, to be abandoned when the connection closes."""

    def answer(self, buffers: Sequence[object] | None, throttle_ms: int, close: bool, now_ms: int) -> None:
        """Send a response, None for no bytes, and mute the connection for `throttle_ms`."""

    def refuse(self, why: str) -> None:
        """Close the connection without a response."""


@dataclass(slots=True)
class Exchange:
    """One request and its response. `size_bytes` counts header and body, not the 4-byte length (what Q-11 charges)."""

    node: Node
    peer: Peer
    codec: Codec
    """Of the version in which the request is answered."""
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size_bytes: int
    now_ms: int
    handling_ms: float = 0.0
    """Handler time so far, in milliseconds; 0 unless a request-time quota can be charged (Q-15)."""
    mutations: MutationCharge | None = None
    """What a request that creates or deletes partitions has taken of its client's quota (Q-18)."""
    recording: Any = None
    """What the recorder keeps of the request until its response is out."""

    def open_mutations(self, strict: bool) -> MutationCharge:
        """For a handler that creates or deletes partitions: where it pays. strict: clients of this version know error 89."""
        self.mutations = self.node.cluster.mutations.begin(self.peer.principal, self.client_id, strict, self.now_ms)
        return self.mutations
