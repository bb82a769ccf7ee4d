"""The results of request handlers: a reply, the reply to a fetch, or no reply. If the request must wait, its handler returns a `Delayed` instead."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from kafkaproto.broker.fetch.session import FetchContext
    from kafkaproto.broker.quota.forced import ForcedThrottle
    from kafkaproto.messages.fetch import FetchResponse


class Charge(Enum):
    """Which client quotas a request is charged to (KIP-13, KIP-124). The handler chooses the kind of charge, and `requests.charges` applies it."""

    TIME = auto()
    """The request is charged its handler time only: all client APIs except Produce and Fetch."""
    PRODUCE = auto()
    """The request is charged its bytes, then its handler time (Q-11); with acks=0 its bytes only (T-3)."""
    FETCH = auto()
    """The request is charged its handler time, then the bytes of the response (Q-12).

    If the client is throttled, the response is sent without its records, and the charge for the bytes is taken back (Q-13).
    """
    EXEMPT = auto()
    """The request is not charged to a client and is never throttled: requests of followers and other brokers (Q-15, Q-16)."""


@dataclass(slots=True)
class Reply:
    """The outcome of a request that gets a response message. The throttle time is set in the message before it is encoded.

    message: the response message. charge: the kind of quota that the request is charged to.
    """

    message: Any
    charge: Charge = Charge.TIME


@dataclass(slots=True)
class NoReply:
    """The outcome of a Produce with acks=0, which gets no response (P-14). close: True if it failed, so that the connection is closed (T-12)."""

    close: bool = False
    charge: Charge = Charge.PRODUCE


class FetchReply:
    """The outcome of a Fetch. The response is encoded before its bytes are charged (Q-12). Sending it changes the fetch session (S-10).

    - message: the response, with its records and without a session id.
    - session: the fetch session; None if the request failed before its session was known.
    - results: (key of the partition in the session, result of the read) for each partition.
    - read: a function that is called with a bool when the response is sent; None to call nothing. For a client's fetch, the function reports the
      fetch to observers. For a follower's fetch, it records the high watermarks that the follower gets. The bool is True if the response has its
      records, False if they were removed because the client is throttled.
    """

    __slots__ = ("_now_ms", "_read", "_results", "_session", "charge", "message")

    def __init__(
        self,
        message: FetchResponse,
        charge: Charge = Charge.FETCH,
        *,
        session: FetchContext[Any, Any] | None = None,
        results: Sequence[tuple[Any, Any]] = (),
        read: Callable[[bool], None] | None = None,
        now_ms: int = 0,
    ) -> None:
        self.message = message
        self.charge = charge
        self._session = session
        self._results = results
        self._read = read
        self._now_ms = now_ms

    def delivered(self) -> tuple[int, int]:
        """Update the fetch session for a response that is sent with its records. Returns (error code, session id) to write into the response."""
        error_code, session_id = self.message.error_code, 0
        if self._session is not None:
            fields = self._session.commit(self._results, self._now_ms)
            error_code, session_id = int(fields.error_code), fields.session_id
        if self._read is not None:
            self._read(True)
        return error_code, session_id

    def emptied(self) -> tuple[int, int]:
        """Return (error code, session id) to write into a response that is sent without records because the client is throttled.

        The fetch session stays unchanged (T-4).
        """
        if self._read is not None:
            self._read(False)
        if self._session is None:
            return 0, 0
        fields = self._session.throttled()
        return int(fields.error_code), fields.session_id


Outcome = Reply | FetchReply | NoReply


class Throttling(Protocol):
    """Interface of the ways to throttle a client: mute its connection after the response, or hold the response back (KIP-219)."""

    def settle(self, exchange: Any, outcome: Outcome, forced: ForcedThrottle | None) -> None:
        """Charge the quotas of a request's client, throttle the client if necessary, and send the response.

        outcome: the handler's result. forced: a rule that throttles this request regardless of its quotas; None if no rule matches.
        """
