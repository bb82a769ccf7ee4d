"""Throttling as it was before release 2.0 (KIP-219 calls it the old behaviour): the answer itself is kept back, and nothing is muted.

Bytes first: the answer waits until they are paid. Then its request time is recorded, and it waits again. What the client reads as
throttle time is the sum; a fetch keeps its data and pays for it once. `KafkaApis` and `ClientQuotaManager` of 1.1. Must never know
how an answer is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from kafkaproto.broker.quota.sensors import LONGEST_THROTTLE_MS
from kafkaproto.broker.requests.registry import Charge, NoAnswer, Peer, RequestContext, Result

if TYPE_CHECKING:
    from kafkaproto.broker.quota.client_quotas import QuotaManager
    from kafkaproto.broker.runtime.timers import Timer

logger = logging.getLogger("kafkaproto.requests")


class DelayingPeer(Peer, Protocol):
    """The connection that waits for the answer."""

    parked: Any

    def refuse(self, why: str) -> None: ...


class DelayedResponse:
    """size_bytes: what Produce or Fetch pays. percent: request time, of one thread for one second. send: called once, with the
    milliseconds that the answer was held for; never when the connection has gone."""

    __slots__ = (
        "_asker",
        "_charge",
        "_context",
        "_is_answered",
        "_percent",
        "_send",
        "_size_bytes",
        "_timer",
        "_waited_ms",
    )

    def __init__(
        self,
        context: RequestContext,
        asker: DelayingPeer,
        result: Result,
        size_bytes: int,
        percent: float,
        send: Callable[[int], None],
    ) -> None:
        self._context = context
        self._asker = asker
        self._charge = result.charge
        self._is_answered = not isinstance(result, NoAnswer)
        self._size_bytes = size_bytes
        self._percent = percent
        self._send = send
        self._waited_ms = 0
        self._timer: Timer | None = None

    def begin(self) -> None:
        context, quotas = self._context, self._context.node.quotas
        rule = context.node.forced.strike(context) if context.node.forced.active else None
        if rule is not None:
            self._wait(rule.throttle_ms, rule, self._finish)
        elif self._charge is Charge.PRODUCE:
            self._pay(quotas.produce, self._size_bytes, self._pay_time)
        elif self._charge is Charge.FETCH:
            self._pay(quotas.fetch, self._size_bytes, self._pay_time)
        else:
            self._pay_time()

    def _pay_time(self) -> None:
        if self._is_answered:
            self._pay(self._context.node.quotas.request, self._percent, self._finish)
        else:
            self._finish()

    def _pay(self, quota: QuotaManager, value: float, then: Callable[[], None]) -> None:
        context, user = self._context, self._asker.principal
        wait_ms = quota.record(user, context.client_id, value, context.now_ms)
        if wait_ms == 0:
            then()
            return
        self._wait(wait_ms, quota.throttled(user, context.client_id, value, wait_ms, context.now_ms), then)

    def _wait(self, wait_ms: int, reason: Any, then: Callable[[], None]) -> None:
        context = self._context
        events = context.node.events
        if events.throttled is not None:
            events.throttled(context, wait_ms, reason, True)
        self._waited_ms += wait_ms
        self._asker.parked = self

        def over(now_ms: int) -> None:
            if events.throttle_ended is not None:
                events.throttle_ended(context.peer.connection_id, now_ms)
            context.now_ms = now_ms
            self._timer = None
            self._asker.parked = None
            try:
                then()
            except Exception:
                # As with a parked request: an answer that cannot be built ends its own connection (W-8).
                logger.exception("a delayed response cannot be sent")
                self._asker.refuse("its answer cannot be sent")

        self._timer = context.node.timers.at(context.now_ms + wait_ms, over)

    def _finish(self) -> None:
        self._send(min(self._waited_ms, LONGEST_THROTTLE_MS))

    def abandon(self) -> None:
        """The connection has gone."""
        if self._timer is not None:
            self._timer.cancel()
            node = self._context.node
            if node.events.throttle_ended is not None:
                node.events.throttle_ended(self._context.peer.connection_id, node.actions.now_ms)
