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
    for seen in kafka.journal.throttles(api):
        assert isinstance(seen.reason, ThrottleReason)
        values[seen.connection_id, seen.correlation_id] = int(seen.reason.value)
    return [
        Charge(
            seen.at_ms,
            seen.connection_id,
            values.get((seen.connection_id, seen.correlation_id), _charged_bytes(seen)),
            seen.throttle_time_ms,
            api == PRODUCE or not seen.throttle_time_ms,
        )
        for seen in kafka.journal.requests(api, broker=broker)
        if seen.client_id in client_ids and seen.at_ms >= since_ms
    ]


def _charged_bytes(seen: RequestSeen) -> int:
    """Return the bytes to charge (Q-11, Q-12).

    For a produce request: header and body. For a fetch response: its body plus 4, although the header has 4 or 5 bytes.
    """
    if seen.api == PRODUCE:
        return seen.request_bytes
    return seen.response_bytes - (1 if seen.api_version >= FLEXIBLE_FETCH else 0)


def wrong(seen: Sequence[Charge], bound: float, samples: int) -> list[tuple[Charge, int]]:
    """Return the requests whose throttle time differs from the transcription, with the expected time (X-6)."""
    rate = SlowRate(samples)
    mistakes = []
    for charge in seen:
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


def replayed(seen: Sequence[Charge], bound: float, samples: int) -> list[Sent]:
    """Return the same requests with throttle times from the transcription and the clients' own delays.

    A request follows the previous one of its connection after that one's throttle time and the client's own delay. If a broker mutes a
    client for too short a time or throttles it wrongly, its client sends more than this.
    """
    rate, sent = SlowRate(samples), []
    begin_ms = seen[0].at_ms
    following: dict[int, int] = {}
    latest: dict[int, int] = {}
    for i, earlier in enumerate(seen):
        if earlier.connection_id in latest:
            following[latest[earlier.connection_id]] = i
        latest[earlier.connection_id] = i
    # Requests of the same millisecond keep the broker's order.
    due = sorted((seen[i].at_ms - begin_ms, i) for i in set(range(len(seen))) - set(following.values()))
    while due:
        now_ms, i = heappop(due)
        charge = seen[i]
        rate.record(charge.value, now_ms)
        wait_ms = rate.throttle_ms(now_ms, bound)
        if not charge.given:
            rate.record(-charge.value, now_ms)
        sent.append(Sent(now_ms, charge.value, charge.given))
        if i in following:
            beside_ms = max(0, seen[following[i]].at_ms - charge.at_ms - charge.throttle_ms)
            heappush(due, (now_ms + wait_ms + beside_ms, following[i]))
    return sent


def bytes_within(sent: Sequence[Charge] | Sequence[Sent], within_ms: int) -> int:
    """Return the bytes charged, and not taken back, within `within_ms` of the first request."""
    return sum(charge.value for charge in sent if charge.given and charge.at_ms - sent[0].at_ms < within_ms)


def lateness_ms(kafka: Handle, client_ids: Sequence[str]) -> list[int]:
    """Return, for each throttle that has ended, how many ms it lasted longer than its throttle time; negative if it was too short (X-5)."""
    return [
        seen.ended_ms - seen.at_ms - seen.throttle_time_ms
        for seen in kafka.journal.throttles()
        if seen.client_id in client_ids and seen.ended_ms is not None
    ]
