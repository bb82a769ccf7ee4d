"""A throttled fetch is empty and its bytes are taken back (T-4, Q-13; KIP-219).

When a consumer's fetch goes over a quota, the broker answers at once, with no data, and tells how long the client must
wait, computed as if the data had been sent. Nothing was sent, so the bytes are un-recorded at the same instant; the
same data is charged again when it is fetched again. `handleFetchRequest` in Kafka. Knows quotas only: the caller sends
the empty answer and mutes.
"""

from __future__ import annotations

from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.requests.charges import NOT_THROTTLED, Charged


def charge_fetch(
    quotas: ClientQuotas,
    user: str,
    client_id: str | None,
    response_bytes: int,
    request_percent: float,
    now_ms: int,
    forced: Charged | None = None,
) -> Charged:
    """A throttled fetch is empty and its bytes are taken back: send the answer without data if and only if
    `throttle_ms` > 0.

    Request time first, then bytes; the larger counts, request time when equal (Q-12, Q-17).
    response_bytes: 4 + the serialized body of the answer that would be sent. request_percent: handler time in percent
    of one thread for one second. forced: how the answer is throttled whatever the quotas say.
    """
    time_ms = quotas.request.record(user, client_id, request_percent, now_ms)
    bytes_ms = quotas.fetch.record(user, client_id, response_bytes, now_ms)
    if forced is not None:
        charged = forced
    elif time_ms == 0 and bytes_ms == 0:
        return NOT_THROTTLED
    elif bytes_ms > time_ms:
        charged = Charged(bytes_ms, quotas.fetch.throttled(user, client_id, response_bytes, bytes_ms, now_ms))
    else:
        charged = Charged(time_ms, quotas.request.throttled(user, client_id, request_percent, time_ms, now_ms))
    quotas.fetch.unrecord(user, client_id, response_bytes, now_ms)
    return charged
