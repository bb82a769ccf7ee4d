"""A request in progress: its client, its header, and the state that is kept until its response is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from kafkaproto.api import Codec

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.quota.forced import ForcedThrottle
    from kafkaproto.broker.quota.mutations import MutationCharge
    from kafkaproto.broker.quota.sensors import ThrottleReason


class Waiting(Protocol):
    """Interface of a delayed request or response that can be abandoned when its connection closes."""

    def abandon(self) -> None: ...


class Peer(Protocol):
    """Interface of a client connection, as request handling uses it.

    It has data about the client, the name of the listener, the request in progress, and methods that send the response or close the connection.
    """

    connection_id: int
    listener_name: str
    client_address: str
    client_port: int
    """The port of the client's socket; 0 if the client has no socket."""
    client_software: tuple[str, str]
    """(name, version) of the client's software, from its last ApiVersions request; ("unknown", "unknown") before the first one."""
    principal: str
    received_ns: int
    """When the connection last received bytes, in ns of the monotonic clock. It stays 0 unless an observer of the event `bytes_received` sets it."""
    exchange: Exchange | None
    """The request in progress; None if every request has its response."""
    parked: Waiting | None
    """The request or response of this connection that waits, for example for records or for a throttle; None if none waits.

    It is abandoned when the connection closes.
    """

    def respond(self, buffers: Sequence[object] | None, throttle_ms: int, close: bool, now_ms: int) -> None:
        """Send the response, which consists of all `buffers` in sequence, and mute the connection for `throttle_ms`.

        buffers: None for a request without a response. close: whether to close the connection afterwards.
        """

    def refuse(self, reason: str) -> None:
        """Close the connection without a response. reason: a text for the log."""


@dataclass(slots=True)
class Charged:
    """The result of charging a request to its client's quotas.

    throttle_ms: how long to throttle the client in ms, 0 for not at all. reason: the exceeded quota, None if the client is not throttled.
    """

    throttle_ms: int
    reason: ThrottleReason | ForcedThrottle | None = None


NOT_THROTTLED = Charged(0)


@dataclass(slots=True)
class Exchange:
    """One request and its response.

    size_bytes: the size of header and body without the 4-byte length; the produce quota charges these bytes (Q-11). now_ms: when the broker
    handles the request, or when it resumed the request after a wait.
    """

    node: Node
    peer: Peer
    codec: Codec
    """The codec of the request's API and version. It encodes the response."""
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size_bytes: int
    now_ms: int
    handling_ms: float = 0.0
    """The handler time of the request so far, in ms; 0 while no client has a request-time quota, because it is then not measured (Q-15)."""
    mutations: MutationCharge | None = None
    """The tokens of the controller mutation quota that the request has taken (Q-18); None if its handler takes none."""
    charged: Charged | None = None
    """The result of charging the request to its client's quotas, which happens only once. None before that, and for a Fetch."""
    recording: Any = None
    """What the traffic recorder stores about the request until its response is sent; None if nothing is recorded."""

    def open_mutations(self, strict: bool) -> MutationCharge:
        """Return a new object with which a handler charges created or deleted partitions to the client's controller mutation quota (Q-18).

        strict: whether topics are rejected with THROTTLING_QUOTA_EXCEEDED (89) while the quota is exceeded, because the client's version of the API
        knows this error. If False, the client is only throttled.
        """
        self.mutations = self.node.cluster.mutations.begin(self.peer.principal, self.client_id, strict, self.now_ms)
        return self.mutations
