"""What a handler is, what it gets and what it may return. `register` fills the table; ApiVersions is made from it.

Imports nothing of the broker: every handler and `apis` stand on this file, so it stands on nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node
    from kafkaproto.broker.quota.mutations import MutationCharge


class Peer(Protocol):
    """What a handler may know of the connection: who asks, and through which listener it came."""

    connection_id: int
    listener_name: str
    client_address: str
    principal: str
    received_ns: int
    """When its last bytes came (monotonic clock), set by an observer of `bytes_received`; else 0."""
    exchange: RequestContext | None
    """The request in progress, until its response is out."""


@dataclass(slots=True)
class RequestContext:
    """One request on its way. `size_bytes` counts header and body, not the 4-byte length (what Q-11 charges)."""

    node: Node
    peer: Peer
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    size_bytes: int
    now_ms: int
    handling_ms: float = 0.0
    """Handler time so far, in milliseconds; 0 unless a request-time quota can be charged (house §4, "Request time")."""
    mutations: MutationCharge | None = None
    """What a request that creates or deletes partitions has taken of its client's quota (Q-18)."""
    recording: Any = None
    """What the recorder keeps of the request until its response is out."""

    def open_mutations(self, strict: bool) -> MutationCharge:
        """For a handler that creates or deletes partitions: where it pays. strict: clients of this version know error 89."""
        self.mutations = self.node.cluster.mutations.begin(self.peer.principal, self.client_id, strict, self.now_ms)
        return self.mutations


class Charge(Enum):
    """Which client quotas a request counts against (§4.3). The handler says which; `apis.finish` charges."""

    TIME = auto()
    """Request time only: every API but the two below."""
    PRODUCE = auto()
    """Request bytes, then request time (Q-11); acks=0: bytes only (T-3)."""
    FETCH = auto()
    """Request time, then response bytes, taken back when either throttles (Q-12, Q-13)."""
    EXEMPT = auto()
    """Followers and other brokers: never throttled (Q-15, Q-16)."""


@dataclass(slots=True)
class Response:
    """An answer that may still be replaced: when it is throttled, `emptied()` is sent in its place and `accepted` is not called.

    emptied: builds the answer without data (Fetch only, T-4).
    accepted: runs when `message` itself goes out, and may complete it without changing its size: a fetch session is made, or learns
    what it has told its client (S-10).
    """

    message: Any
    charge: Charge = Charge.TIME
    emptied: Callable[[], Any] | None = None
    accepted: Callable[[], None] | None = None


@dataclass(slots=True)
class NoAnswer:
    """No bytes go back (acks=0, P-14). `close`: a failed acks=0 produce ends the connection, after it was charged (T-12)."""

    close: bool = False
    charge: Charge = Charge.PRODUCE


Result = Response | NoAnswer
Build = Callable[[], Result]
"""Makes an answer when its time has come."""


class DelayedOperation:
    """A request that waits for an event or a deadline; answered exactly once, whoever comes first (`DelayedOperation` in Kafka).

    The handler keeps it and calls `complete(build, now_ms)`: building the answer is handling time of its own request, whoever's
    event it was. `apis` attaches where the answer goes. `abandoned` is called when the connection is gone, so that the waiting side
    can forget it.
    """

    __slots__ = ("_sink", "_stored", "abandoned", "done")

    def __init__(self, abandoned: Callable[[], None] | None = None) -> None:
        self._sink: Callable[[Build, int], None] | None = None
        self._stored: tuple[Result, int] | None = None
        self.abandoned = abandoned
        self.done = False

    def complete(self, build: Build, now_ms: int) -> None:
        if self.done:
            return
        self.done = True
        if self._sink is None:
            self._stored = (build(), now_ms)
        else:
            self._sink(build, now_ms)

    def attach(self, sink: Callable[[Build, int], None]) -> None:
        """Where the answer goes; an operation that completed inside its handler is delivered here and now."""
        self._sink = sink
        if self._stored is not None:
            result, now_ms = self._stored
            sink(lambda: result, now_ms)

    def abandon(self) -> None:
        """The asker is gone. Completing later is harmless and does nothing."""
        if not self.done:
            self.done = True
            if self.abandoned is not None:
                self.abandoned()


Handler = Callable[[RequestContext, Any], "Result | DelayedOperation"]
H = TypeVar("H", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Registration:
    """One API: the versions that its handler really serves, and how it reports a failure of its own (W-7)."""

    api_key: int
    min_version: int
    max_version: int
    handler: Handler
    failed: Callable[[RequestContext, Any, int], Result]


REGISTRY: dict[int, Registration] = {}


def register(
    api_key: int, min_version: int, max_version: int, failed: Callable[[RequestContext, Any, int], Result]
) -> Callable[[H], H]:
    """Decorate the handler of `api_key`.

    failed: `(context, request, error_code) -> result`: the request's own error answer, sent when the handler raises.
    """

    def note(handler: H) -> H:
        if api_key in REGISTRY:
            raise ValueError(f"api key {api_key} is registered twice")
        REGISTRY[api_key] = Registration(api_key, min_version, max_version, handler, failed)
        return handler

    return note
