"""What a request costs its client, in Kafka's order: produce, and every other request but fetch (T-2, T-3, Q-11, Q-15).

Fetch has a rule of its own: `throttled_fetch`. Knows no connection: whoever calls mutes it for `throttle_ms` (KIP-219).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.quota.sensors import ThrottleReason

if TYPE_CHECKING:
    from kafkaproto.broker.quota.forced import ForcedThrottle


@dataclass(slots=True)
class Charged:
    """What charging one request came to: throttle its client for `throttle_ms`. 0, and no reason: not at all."""

    throttle_ms: int
    reason: ThrottleReason | ForcedThrottle | None = None


NOT_THROTTLED = Charged(0)


def charge_produce(
    quotas: ClientQuotas,
    user: str,
    client_id: str | None,
    request_bytes: int,
    request_percent: float,
    acks: int,
    now_ms: int,
) -> Charged:
    """Bytes of header and body (Q-11), then request time; acks=0 pays for its bytes only (T-3), its time is exempt (Q-15).

    request_percent: handler time in percent of one thread for one second.
    """
    bytes_ms = quotas.produce.record(user, client_id, request_bytes, now_ms)
    if acks == 0:
        charge_exempt(quotas, request_percent, now_ms)
        time_ms = 0
    else:
        time_ms = quotas.request.record(user, client_id, request_percent, now_ms)
    if bytes_ms > time_ms:
        return Charged(bytes_ms, quotas.produce.throttled(user, client_id, request_bytes, bytes_ms, now_ms))
    if time_ms > 0:
        return Charged(time_ms, quotas.request.throttled(user, client_id, request_percent, time_ms, now_ms))
    return NOT_THROTTLED


def charge_request(
    quotas: ClientQuotas, user: str, client_id: str | None, request_percent: float, now_ms: int
) -> Charged:
    """Request time only: every client API but produce and fetch, error answers too (T-2)."""
    time_ms = quotas.request.record(user, client_id, request_percent, now_ms)
    if time_ms == 0:
        return NOT_THROTTLED
    return Charged(time_ms, quotas.request.throttled(user, client_id, request_percent, time_ms, now_ms))


def charge_mutations(
    quotas: ClientQuotas,
    user: str,
    client_id: str | None,
    mutations: MutationCharge,
    request_percent: float,
    now_ms: int,
) -> Charged:
    """What the request has taken of its mutations, and request time: the larger, request time when equal (Q-18)."""
    if mutations.throttle_ms == 0:
        return charge_request(quotas, user, client_id, request_percent, now_ms)
    time_ms = quotas.request.record(user, client_id, request_percent, now_ms)
    if mutations.throttle_ms > time_ms:
        return Charged(mutations.throttle_ms, mutations.reason())
    return Charged(time_ms, quotas.request.throttled(user, client_id, request_percent, time_ms, now_ms))


def charge_exempt(quotas: ClientQuotas, request_percent: float, now_ms: int) -> Charged:
    """Followers and other brokers: their time is counted under exempt-request-time, and they never wait (Q-15, T-5)."""
    if quotas.request.enabled:
        quotas.exempt_request_time.record(request_percent, now_ms)
    return NOT_THROTTLED
