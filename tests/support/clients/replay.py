"""Replay a journal in the transcription of Q-2 to Q-6, to check every throttle time and its effect on the clients.

Reads the journal of a cluster and uses none of the broker's own arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush

from kafkaproto.broker.observe.journal import RequestSeen
from kafkaproto.broker.quota.sensors import ThrottleReason
from kafkaproto.broker.testing.handle import Handle
from kafkaproto.conformance.slow_rate import SlowRate

PRODUCE, FETCH = "Produce", "Fetch"
FLEXIBLE_FETCH = 12


@dataclass(frozen=True, slots=True)
class Charge:
    """One request under a quota, with `value` bytes. `given` is False for a throttled fetch, whose bytes are taken back (Q-13)."""

    at_ms: int
    connection_id: int
    value: int
    throttle_ms: int
    given: bool


def charges(kafka: Handle, api: str, client_ids: Sequence[str], broker: int = 0, since_ms: int = 0) -> list[Charge]:
    """Return the requests that one broker charged to `client_ids` for Produce or Fetch, in order, since their quota began at `since_ms`."""
    values = {}
    for throttle in kafka.journal.throttles(api):
        assert isinstance(throttle.reason, ThrottleReason)
        values[throttle.connection_id, throttle.correlation_id] = int(throttle.reason.value)
    return [
        Charge(
            request.at_ms,
            request.connection_id,
            values.get((request.connection_id, request.correlation_id), _charged_bytes(request)),
            request.throttle_time_ms,
            api == PRODUCE or not request.throttle_time_ms,
        )
        for request in kafka.journal.requests(api, broker=broker)
        if request.client_id in client_ids and request.at_ms >= since_ms
    ]


def _charged_bytes(request: RequestSeen) -> int:
    """Return the bytes to charge (Q-11, Q-12).

    For a produce request: header and body. For a fetch response: its body plus 4, although the header has 4 or 5 bytes.
    """
    if request.api == PRODUCE:
        return request.request_bytes
    return request.response_bytes - (1 if request.api_version >= FLEXIBLE_FETCH else 0)


def wrong(charged: Sequence[Charge], bound: float, samples: int) -> list[tuple[Charge, int]]:
    """Return the requests whose throttle time differs from the transcription, with the expected time (X-6)."""
    rate = SlowRate(samples)
    mistakes = []
    for charge in charged:
        rate.record(charge.value, charge.at_ms)
        throttle_ms = rate.throttle_ms(charge.at_ms, bound)
        if throttle_ms != charge.throttle_ms:
            mistakes.append((charge, throttle_ms))
        if not charge.given:
            rate.record(-charge.value, charge.at_ms)
    return mistakes


@dataclass(frozen=True, slots=True)
class Sent:
    """A replayed request, `at_ms` after the first one. `given` is whether its bytes count."""

    at_ms: int
    value: int
    given: bool


def replayed(charged: Sequence[Charge], bound: float, samples: int) -> list[Sent]:
    """Return the same requests with throttle times from the transcription and the clients' own delays.

    A request follows the previous one of its connection after that one's throttle time and the client's own delay. If a broker mutes a
    client for too short a time or throttles it wrongly, its client sends more than this.
    """
    rate, sent = SlowRate(samples), []
    start_ms = charged[0].at_ms
    following: dict[int, int] = {}
    latest: dict[int, int] = {}
    for i, earlier in enumerate(charged):
        if earlier.connection_id in latest:
            following[latest[earlier.connection_id]] = i
        latest[earlier.connection_id] = i
    # Requests of the same millisecond keep the broker's order.
    due = sorted((charged[i].at_ms - start_ms, i) for i in set(range(len(charged))) - set(following.values()))
    while due:
        now_ms, i = heappop(due)
        charge = charged[i]
        rate.record(charge.value, now_ms)
        wait_ms = rate.throttle_ms(now_ms, bound)
        if not charge.given:
            rate.record(-charge.value, now_ms)
        sent.append(Sent(now_ms, charge.value, charge.given))
        if i in following:
            beside_ms = max(0, charged[following[i]].at_ms - charge.at_ms - charge.throttle_ms)
            heappush(due, (now_ms + wait_ms + beside_ms, following[i]))
    return sent


def bytes_within(sent: Sequence[Charge] | Sequence[Sent], within_ms: int) -> int:
    """Return the bytes charged, and not taken back, within `within_ms` of the first request."""
    return sum(charge.value for charge in sent if charge.given and charge.at_ms - sent[0].at_ms < within_ms)


def lateness_ms(kafka: Handle, client_ids: Sequence[str]) -> list[int]:
    """Return, for each throttle that has ended, how many ms it lasted longer than its throttle time; negative if it was too short (X-5)."""
    return [
        throttle.ended_ms - throttle.at_ms - throttle.throttle_time_ms
        for throttle in kafka.journal.throttles()
        if throttle.client_id in client_ids and throttle.ended_ms is not None
    ]
