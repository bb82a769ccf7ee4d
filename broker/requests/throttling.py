"""The two strategies for throttling. A broker has one, chosen by its release (KIP-219).

- `MuteThrottling`, from 2.0 on: respond at once with the throttle time, then do not read the connection for that time.
- `DelayedResponseThrottling`, before 2.0: hold the response back for that time, and mute nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from kafkaproto.broker.quota.client_quotas import QuotaManager
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.quota.sensors import LONGEST_THROTTLE_MS
from kafkaproto.broker.requests.charges import charge, charge_fetch_reply, charge_replication, request_percent
from kafkaproto.broker.requests.exchange import NOT_THROTTLED, Charged, Exchange
from kafkaproto.broker.requests.outcomes import Charge, FetchReply, NoReply, Outcome, Reply, Throttling
from kafkaproto.broker.requests.responses import (
    Frame,
    charged_bytes,
    complete_fetch,
    encode,
    send,
    send_nothing,
    without_data,
)
from kafkaproto.broker.requests.undeliverable import note_delivered, report_undeliverable
from kafkaproto.broker.runtime.timers import Timer

logger = logging.getLogger("kafkaproto.requests")


def strategy(delays_responses: bool) -> Throttling:
    """Return the throttling strategy for a release. delays_responses: whether the release is before 2.0."""
    return DelayedResponseThrottling() if delays_responses else MuteThrottling()


class MuteThrottling:
    """A throttling strategy that responds at once and then mutes the connection (T-6, T-7).

    A throttled fetch gets a response without data. The client's quota was already charged for the bytes of the data; this charge is taken back (T-4).
    """

    def settle(self, exchange: Exchange, outcome: Outcome, forced: ForcedThrottle | None) -> None:
        if isinstance(outcome, FetchReply):
            self._settle_fetch(exchange, outcome, forced)
            return
        charged = exchange.charged
        if charged is None:
            charged = exchange.charged = charge(exchange, outcome, forced)
            if charged.reason is not None:
                _note(exchange, charged)
        if isinstance(outcome, NoReply):
            send_nothing(exchange, outcome.close, charged.throttle_ms, held=False)
            return
        _report_throttle(outcome.message, charged.throttle_ms)
        send(exchange, encode(exchange, outcome.message), charged.throttle_ms, held=False)

    def _settle_fetch(self, exchange: Exchange, reply: FetchReply, forced: ForcedThrottle | None) -> None:
        """Encode the response of a fetch, charge its size, remove its data if the client is throttled, and send it.

        reply: the handler's result, with the response. forced: the throttle that a test forces on the request, or None.
        """
        frame = encode(exchange, reply.message)
        if reply.charge is Charge.EXEMPT:
            charge(exchange, reply, None)
            charge_replication(exchange, reply, frame)
        else:
            charged = charge_fetch_reply(exchange, frame, forced)
            if charged.reason is not None:
                _note(exchange, charged)
                report_undeliverable(exchange, reply.message, charged.reason)
                frame = without_data(exchange, frame)
                complete_fetch(exchange, frame, charged.throttle_ms, *reply.emptied())
                send(exchange, frame, charged.throttle_ms, held=False)
                return
            if exchange.node.quotas.fetch.undeliverable:
                note_delivered(exchange, reply.message)
        complete_fetch(exchange, frame, 0, *reply.delivered())
        send(exchange, frame, 0, held=False)


def _note(exchange: Exchange, charged: Charged) -> None:
    events = exchange.node.events
    if events.throttled is not None:
        events.throttled(exchange, charged.throttle_ms, charged.reason, False)


def _report_throttle(message: Any, throttle_ms: int) -> None:
    """Set the throttle time of a response message. Does nothing if the message has no such field, as in DescribeQuorum."""
    if throttle_ms and hasattr(message, "throttle_time_ms"):
        message.throttle_time_ms = throttle_ms


class DelayedResponseThrottling:
    """A throttling strategy that delays the response by its throttle time, and then sends it with its data, as before KIP-219 (D9b)."""

    def __init__(self) -> None:
        self._others = MuteThrottling()

    def settle(self, exchange: Exchange, outcome: Outcome, forced: ForcedThrottle | None) -> None:
        if outcome.charge is Charge.EXEMPT or exchange.charged is not None:
            self._others.settle(exchange, outcome, None)  # never throttled, or already charged, so not delayed
        else:
            DelayedResponse(exchange, outcome).begin(forced)


class DelayedResponse:
    """A response of a release before 2.0 that may be delayed twice in a row: first for the produce or fetch quota, then for the request-time quota.

    Request time is charged after the first delay. The throttle time in the response is the sum of both delays. If a test forces a throttle, one delay
    of that time replaces both. The response to a throttled fetch keeps its records: the client need not fetch them again, so their bytes are charged
    only once (`KafkaApis` and `ClientQuotaManager` of 1.1). If the connection closes during a delay, the response is never sent.
    """

    __slots__ = ("_exchange", "_frame", "_outcome", "_percent", "_timer", "_waited_ms")

    def __init__(self, exchange: Exchange, outcome: Outcome) -> None:
        self._exchange = exchange
        self._outcome = outcome
        self._frame: Frame | None = encode(exchange, outcome.message) if isinstance(outcome, FetchReply) else None
        self._percent = request_percent(exchange)
        self._waited_ms = 0
        self._timer: Timer | None = None

    def begin(self, forced: ForcedThrottle | None) -> None:
        exchange, quotas = self._exchange, self._exchange.node.quotas
        if forced is not None:
            self._wait(forced.throttle_ms, forced, self._finish)
        elif self._frame is not None:
            self._charge(quotas.fetch, charged_bytes(exchange, self._frame), self._pay_time)
        elif self._outcome.charge is Charge.PRODUCE:
            self._charge(quotas.produce, exchange.size_bytes, self._pay_time)
        else:
            self._pay_time()

    def _pay_time(self) -> None:
        if isinstance(self._outcome, NoReply):
            self._finish()
        else:
            self._charge(self._exchange.node.quotas.request, self._percent, self._finish)

    def _charge(self, quota: QuotaManager, value: float, on_charged: Callable[[], None]) -> None:
        exchange = self._exchange
        user = exchange.peer.principal
        wait_ms = quota.record(user, exchange.client_id, value, exchange.now_ms)
        if wait_ms == 0:
            on_charged()
            return
        self._wait(wait_ms, quota.throttled(user, exchange.client_id, value, wait_ms, exchange.now_ms), on_charged)

    def _wait(self, wait_ms: int, reason: Any, on_charged: Callable[[], None]) -> None:
        exchange = self._exchange
        events, peer = exchange.node.events, exchange.peer
        if events.throttled is not None:
            events.throttled(exchange, wait_ms, reason, True)
        self._waited_ms += wait_ms
        peer.parked = self

        def end_throttle(now_ms: int) -> None:
            if events.throttle_ended is not None:
                events.throttle_ended(peer.connection_id, now_ms)
            exchange.now_ms = now_ms
            self._timer = None
            peer.parked = None
            try:
                on_charged()
            except Exception:
                # As with a waiting request, a response that cannot be built closes only its own connection (W-8).
                logger.exception(
                    "the delayed response to a %s v%d request cannot be sent, so its connection is closed; please report this traceback",
                    exchange.codec.name,
                    exchange.codec.version,
                )
                peer.refuse("the response cannot be sent")

        self._timer = exchange.node.timers.at(exchange.now_ms + wait_ms, end_throttle)

    def _finish(self) -> None:
        exchange, outcome = self._exchange, self._outcome
        throttle_ms = min(self._waited_ms, LONGEST_THROTTLE_MS)
        if isinstance(outcome, NoReply):
            send_nothing(exchange, outcome.close, throttle_ms, held=True)
            return
        frame = self._frame
        if isinstance(outcome, FetchReply) and frame is not None:
            complete_fetch(exchange, frame, throttle_ms, *outcome.delivered())
        elif isinstance(outcome, Reply):
            _report_throttle(outcome.message, throttle_ms)
            exchange.charged = NOT_THROTTLED  # If encoding fails, the error response is neither charged nor delayed.
            frame = encode(exchange, outcome.message)
        assert frame is not None
        send(exchange, frame, throttle_ms, held=True)

    def abandon(self) -> None:
        """Drop the response, because the connection closed."""
        if self._timer is not None:
            self._timer.cancel()
            node = self._exchange.node
            if node.events.throttle_ended is not None:
                node.events.throttle_ended(self._exchange.peer.connection_id, node.actions.now_ms)
