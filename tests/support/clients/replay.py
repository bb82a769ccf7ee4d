"""A journal replayed in the transcription of Q-2 to Q-6: what each throttle time must have been, and what the clients could do with it.

Reads the journal of a cluster that it did not make; must never know the broker's own arithmetic.
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
    """One request under a quota. value: its bytes. given: they count; those of a throttled fetch are taken back (Q-13)."""

    at_ms: int
    connection_id: int
    value: int
    throttle_ms: int
    given: bool


def charges(kafka: Handle, api: str, client_ids: Sequence[str], broker: int = 0, since_ms: int = 0) -> list[Charge]:
    """What one broker charged some clients for Produce or Fetch, in its order. since_ms: when their quota began."""
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
    """Q-11, Q-12: header and body of a produce request; 4 and the body of a fetch answer, whose header is 4 or 5 bytes."""
    if seen.api == PRODUCE:
        return seen.request_bytes
    return seen.response_bytes - (1 if seen.api_version >= FLEXIBLE_FETCH else 0)


def wrong(seen: Sequence[Charge], bound: float, samples: int) -> list[tuple[Charge, int]]:
    """X-6: the requests whose throttle time is not that of the transcription, with what it should have been."""
    rate = SlowRate(samples)
    found = []
    for charge in seen:
        rate.record(charge.value, charge.at_ms)
        wanted = rate.throttle_ms(charge.at_ms, bound)
        if wanted != charge.throttle_ms:
            found.append((charge, wanted))
        if not charge.given:
            rate.record(-charge.value, charge.at_ms)
    return found


@dataclass(frozen=True, slots=True)
class Sent:
    """A request of the replay. at_ms: since the first one. given: its bytes count."""

    at_ms: int
    value: int
    given: bool


def replayed(seen: Sequence[Charge], bound: float, samples: int) -> list[Sent]:
    """The same requests, with throttles from the transcription alone and each client as quick as it was.

    A request follows the one before on its connection after that one's throttle time, and after what its client took beside it. So
    a broker that mutes for too short, or throttles otherwise, lets its clients do more than this.
    """
    rate, sent = SlowRate(samples), []
    begin_ms = seen[0].at_ms
    following: dict[int, int] = {}
    latest: dict[int, int] = {}
    for i, one in enumerate(seen):
        if one.connection_id in latest:
            following[latest[one.connection_id]] = i
        latest[one.connection_id] = i
    # Who comes at the same millisecond comes in the broker's order.
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
    """What was charged, and stayed so, in the time from the first request on."""
    return sum(one.value for one in sent if one.given and one.at_ms - sent[0].at_ms < within_ms)


def lateness_ms(kafka: Handle, client_ids: Sequence[str]) -> list[int]:
    """How much longer than said each connection was muted; below zero: not long enough (X-5)."""
    return [
        seen.ended_ms - seen.at_ms - seen.throttle_time_ms
        for seen in kafka.journal.throttles()
        if seen.client_id in client_ids and seen.ended_ms is not None
    ]
