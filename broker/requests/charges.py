"""What a request costs its client, in Kafka's order (T-2 to T-5, Q-11 to Q-16, R-5; `KafkaApis`, `RequestHandlerHelper`).

Produce pays for its bytes and then for its time, fetch for its time and then for its bytes, all others for their time. Knows no connection:
whoever calls mutes it for `throttle_ms`, or keeps the response back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.quota.sensors import ThrottleReason
from kafkaproto.broker.requests import fetch_versions
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Charge, FetchReply, NoReply, Outcome
from kafkaproto.broker.requests.responses import Frame, charged_bytes
from kafkaproto.frame import LENGTH_BYTES, finish_frame, start_frame

NANOS_PER_MS = 1_000_000
PERCENT_PER_NANO = 100.0 / 1_000_000_000
"""One thread for one second is 100 percent (Q-15). By nanoseconds, as Kafka counts, for equal doubles."""


@dataclass(slots=True)
class Charged:
    """What charging one request came to: throttle its client for `throttle_ms`. 0, and no reason: not at all."""

    throttle_ms: int
    reason: ThrottleReason | ForcedThrottle | None = None


NOT_THROTTLED = Charged(0)


def request_percent(exchange: Exchange) -> float:
    """Return the handler time of a request in percent of one thread for one second."""
    return exchange.handling_ms * NANOS_PER_MS * PERCENT_PER_NANO


def charge(exchange: Exchange, outcome: Outcome, forced: ForcedThrottle | None) -> Charged:
    """Charge a request whose response size does not count: any but a client's fetch.

    forced: the rule that throttles it instead, whatever it is charged.
    """
    quotas = exchange.node.quotas
    produces = outcome.charge is Charge.PRODUCE and quotas.produce.enabled
    charged = NOT_THROTTLED
    if quotas.request.enabled or produces or exchange.mutations is not None:
        charged = _charge_quotas(exchange, outcome, quotas)
    return charged if forced is None else Charged(forced.throttle_ms, forced)


def _charge_quotas(exchange: Exchange, outcome: Outcome, quotas: ClientQuotas) -> Charged:
    percent, user, now_ms = request_percent(exchange), exchange.peer.principal, exchange.now_ms
    if outcome.charge is Charge.PRODUCE:
        acks = 0 if isinstance(outcome, NoReply) else 1
        return charge_produce(quotas, user, exchange.client_id, exchange.size_bytes, percent, acks, now_ms)
    if outcome.charge is Charge.EXEMPT:
        return charge_exempt(quotas, percent, now_ms)
    if exchange.mutations is not None:
        return charge_mutations(quotas, user, exchange.client_id, exchange.mutations, percent, now_ms)
    return charge_request(quotas, user, exchange.client_id, percent, now_ms)


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


# ---- fetch -------------------------------------------------------------------------------------------------------------------------


def charge_fetch_reply(exchange: Exchange, frame: Frame, forced: ForcedThrottle | None) -> Charged:
    """Charge the encoded response of a client's fetch. forced: the rule that throttles it instead, whatever it is charged."""
    quotas = exchange.node.quotas
    if forced is None and not (quotas.fetch.enabled or quotas.request.enabled):
        return NOT_THROTTLED
    return charge_fetch(
        quotas,
        exchange.peer.principal,
        exchange.client_id,
        charged_bytes(exchange, frame),
        request_percent(exchange),
        exchange.now_ms,
        None if forced is None else Charged(forced.throttle_ms, forced),
    )


def charge_fetch(
    quotas: ClientQuotas,
    user: str,
    client_id: str | None,
    response_bytes: int,
    request_percent: float,
    now_ms: int,
    forced: Charged | None = None,
) -> Charged:
    """Charge a fetch: if and only if `throttle_ms` > 0 its bytes are taken back, and the response must go out without data (T-4, Q-13).

    Nothing is sent then, so the bytes are un-recorded at the same instant; the same data is charged again when it is fetched again. The
    client waits as if the data had been sent (KIP-219). Request time first, then bytes; the larger counts, request time when equal (Q-12, Q-17).
    response_bytes: 4 + the serialized body of the response that would be sent. forced: how it is throttled whatever the quotas say.
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


def charge_replication(exchange: Exchange, reply: FetchReply, frame: Frame) -> None:
    """Count a follower's fetch against the leader's quota: 4 and the size of the response with the listed partitions only (R-5)."""
    quota = exchange.node.replicas.leader_quota
    if quota.active:
        quota.record(_listed_bytes(exchange, reply.message, frame, quota), exchange.now_ms)


def _listed_bytes(exchange: Exchange, message: Any, frame: Frame, quota: ReplicationQuota) -> int:
    """Return the size of the frame that was encoded if all of it counts, else that of the part that does."""
    image, by_id = exchange.node.image, exchange.api_version >= fetch_versions.FIRST_BY_ID
    listed, is_whole = [], not message.node_endpoints
    for topic in message.responses:
        known = image.topic_by_id(topic.topic_id) if by_id else image.topics.get(topic.topic)
        name = "" if known is None else known.name
        partitions = [p for p in topic.partitions if quota.lists(name, p.partition_index)]
        is_whole = is_whole and len(partitions) == len(topic.partitions)
        if partitions:
            listed.append(type(topic)(topic.topic, topic.topic_id, partitions))
    if is_whole:
        return charged_bytes(exchange, frame)
    out, splices = start_frame(), list[tuple[int, Any]]()
    exchange.codec.encode_response(type(message)(responses=listed), out, splices)
    return LENGTH_BYTES + finish_frame(out, splices)
