"""Charges requests to their clients' quotas, in Kafka's order (T-2 to T-5, Q-11 to Q-16, R-5; `KafkaApis`, `RequestHandlerHelper`).

A Produce request is charged its bytes and then its handler time, a Fetch request its handler time and then its bytes, any other request its handler
time. This module does not depend on connections: the throttling strategy mutes the connection for `throttle_ms`, or delays the response.
"""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.quota.client_quotas import ClientQuotas
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.quota.mutations import MutationCharge
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.requests import fetch_versions
from kafkaproto.broker.requests.exchange import NOT_THROTTLED, Charged, Exchange
from kafkaproto.broker.requests.outcomes import Charge, FetchReply, NoReply, Outcome
from kafkaproto.broker.requests.responses import Frame, charged_bytes
from kafkaproto.frame import LENGTH_BYTES, finish_frame, start_frame

NANOS_PER_MS = 1_000_000
PERCENT_PER_NANO = 100.0 / 1_000_000_000
"""The factor that converts nanoseconds of handler time to percent of one second (Q-15).

Kafka uses the same factor, so the results are equal to the last bit.
"""


def request_percent(exchange: Exchange) -> float:
    """Return the handler time of a request in percent of one second of one thread."""
    return exchange.handling_ms * NANOS_PER_MS * PERCENT_PER_NANO


def charge(exchange: Exchange, outcome: Outcome, forced: ForcedThrottle | None) -> Charged:
    """Charge any request except a client's fetch to the client's quotas.

    outcome: the result of the handler, which names the quotas to charge. forced: a test's rule whose throttle time replaces
    the throttle time of the quotas; None if no rule matches the request.
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
    """Charge a Produce request: first the bytes of header and body (Q-11), then the request time.

    With acks=0 only the bytes are charged (T-3); the time counts as exempt (Q-15). If both quotas are exceeded, the longer throttle time applies. If
    the two times are equal, the request quota is reported as exceeded. request_percent: handler time in percent of one second of one thread.
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
    """Charge only the request time, as for every client API except Produce and Fetch. Error responses are charged, too (T-2).

    request_percent: the handler time in percent of one second of one thread.
    """
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
    """Charge the handler time of a request that has taken tokens of the controller mutation quota (Q-18).

    The mutation quota and the request quota each have a throttle time, and the longer one applies. If they are equal, the request quota is reported
    as exceeded.

    mutations: the tokens that the request has taken, and the throttle time that they cause. request_percent: the handler time in percent of one
    second of one thread.
    """
    if mutations.throttle_ms == 0:
        return charge_request(quotas, user, client_id, request_percent, now_ms)
    time_ms = quotas.request.record(user, client_id, request_percent, now_ms)
    if mutations.throttle_ms > time_ms:
        return Charged(mutations.throttle_ms, mutations.reason())
    return Charged(time_ms, quotas.request.throttled(user, client_id, request_percent, time_ms, now_ms))


def charge_exempt(quotas: ClientQuotas, request_percent: float, now_ms: int) -> Charged:
    """Record the time of a request that is exempt from the request quota, in the metric exempt-request-time. Never throttles (Q-15, T-5).

    request_percent: the handler time in percent of one second of one thread.
    """
    if quotas.request.enabled:
        quotas.exempt_request_time.record(request_percent, now_ms)
    return NOT_THROTTLED


# ---- fetch -------------------------------------------------------------------------------------------------------------------------


def charge_fetch_reply(exchange: Exchange, frame: Frame, forced: ForcedThrottle | None) -> Charged:
    """Charge a client's fetch to the client's quotas.

    frame: the encoded response, with its records. forced: a test's rule that throttles the request; None if no rule matches.
    """
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
    """Charge a client's fetch. If the client is throttled, the response is sent without data, so the charge for its bytes is taken back (T-4, Q-13).

    The client is charged for the data when it fetches the data again. The throttle time is computed as if the data were sent, as in KIP-219. Request
    time is charged first, then bytes. The longer of the two throttle times applies. If they are equal, the request quota is reported as exceeded
    (Q-12, Q-17).

    response_bytes: 4 plus the size of the encoded body with data. request_percent: the handler time in percent of one second of one thread. forced:
    the throttle from a test's rule, which replaces the computed one; None if no rule matches.
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
    """Charge the response to a follower's fetch to the leader's replication quota (R-5).

    reply, frame: the response, decoded and encoded. The charge is 4 bytes plus the body of a response that contains only the throttled partitions.
    """
    quota = exchange.node.replicas.leader_quota
    if quota.active:
        quota.record(_listed_bytes(exchange, reply.message, frame, quota), exchange.now_ms)


def _listed_bytes(exchange: Exchange, message: Any, frame: Frame, quota: ReplicationQuota) -> int:
    """Return 4 plus the size in bytes of the body that a Fetch response would have if it contained only its throttled partitions.

    message, frame: the response, decoded and encoded. quota: the replication quota, which lists the throttled partitions.
    """
    image, by_id = exchange.node.image, exchange.api_version >= fetch_versions.FIRST_BY_ID
    topic_responses, is_whole = [], not message.node_endpoints
    for topic in message.responses:
        topic_in_image = image.topic_by_id(topic.topic_id) if by_id else image.topics.get(topic.topic)
        name = "" if topic_in_image is None else topic_in_image.name
        partitions = [p for p in topic.partitions if quota.lists(name, p.partition_index)]
        is_whole = is_whole and len(partitions) == len(topic.partitions)
        if partitions:
            topic_responses.append(type(topic)(topic.topic, topic.topic_id, partitions))
    if is_whole:
        return charged_bytes(exchange, frame)
    out, splices = start_frame(), list[tuple[int, Any]]()
    exchange.codec.encode_response(type(message)(responses=topic_responses), out, splices)
    return LENGTH_BYTES + finish_frame(out, splices)
