"""Fetch (key 1, versions 0-17): records from partitions, for consumers and followers.

v1 throttle time; v3 a limit for the whole answer; v4 isolation level, magic 2; v5 log start offsets; v7 sessions; v9 the leader epoch that
the client knows; v11 racks; v12 flexible, diverging epochs; v13 topic ids instead of names; v15 replica id in a tagged struct;
v16 endpoints of leaders that moved; v17 directory ids.
Behaviour: limits F-4 to F-14 and visibility in `fetch.read`, waiting in `fetch.fetch_condition`, sessions in `fetch.session`.
Clients before v4 get the records converted, those before v10 no zstd (`fetch.conversion`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.fetch.conversion import knows_all, told
from kafkaproto.broker.fetch.fetch_condition import FetchCondition, must_answer_now
from kafkaproto.broker.fetch.read import (
    FIRST_VERSION_WITH_CLIENT_METADATA,
    FetchParams,
    PartitionFetch,
    PartitionRead,
    failed,
)
from kafkaproto.broker.fetch.session import FetchContext, PartitionRequest
from kafkaproto.broker.metadata.image import Image
from kafkaproto.broker.replication.selector import ClientMetadata
from kafkaproto.broker.requests import fetch_versions
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Charge, FetchReply
from kafkaproto.broker.requests.registry import register
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    SnapshotId,
)

READ_COMMITTED = 1
ISOLATION_LEVELS = (0, READ_COMMITTED)
NEW_SESSION_EPOCH = 0
# Shared by all answers that do not say otherwise; never written to.
NO_DIVERGENCE, NO_LEADER, NO_SNAPSHOT = EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId()
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Key = tuple[Any, int]
"""(topic name or topic id, partition index), as the request names it."""


def _failed(exchange: Exchange, request: FetchRequest, error_code: int) -> FetchReply:
    """The error stands at the top where there is room for it, and at every partition but where those have ids."""
    version = exchange.api_version
    at_top = int(error_code) if version >= fetch_versions.FIRST_WITH_SESSIONS else 0
    topics = request.topics if version < fetch_versions.FIRST_BY_ID else []
    results = [((t.topic, p.partition), failed(error_code)) for t in topics for p in t.partitions]
    response = FetchResponse(error_code=at_top, responses=_grouped(exchange, results))
    return FetchReply(response)


@register(ApiKey.FETCH, 0, 17, _failed)
def fetch(exchange: Exchange, request: FetchRequest) -> FetchReply | Delayed:
    node, now_ms = exchange.node, exchange.now_ms
    if request.isolation_level not in ISOLATION_LEVELS:
        return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    params = _params(exchange, request)
    by_id = exchange.api_version >= fetch_versions.FIRST_BY_ID
    session: FetchContext[Key, Any] = node.sessions.begin(
        request.session_id,
        request.session_epoch,
        _asked(request, by_id),
        [(t.topic_id if by_id else t.topic, p) for t in request.forgotten_topics_data for p in t.partitions],
        by_id,
        params.from_follower,
        now_ms,
    )
    keys, fetches = _resolve(exchange, session, by_id, params.from_follower)
    results = node.reader.read_all(params, fetches, node.image, now_ms)
    answer = _Answer(exchange, params, session, keys, fetches)
    if params.from_follower:
        _note_follower(exchange, params, fetches, results)
    min_bytes = min(params.min_bytes, params.max_bytes)  # F-5
    first_of_session = request.session_epoch == NEW_SESSION_EPOCH
    if must_answer_now(params, min_bytes, fetches, results):
        return answer.build(results, now_ms)
    if answer.owed_at_once(first_of_session):
        # As if it had parked and been woken: read afresh, for the high watermark that this very fetch may have moved.
        return answer.build(node.reader.read_all(params, fetches, node.image, now_ms), now_ms)
    condition = FetchCondition(params, min_bytes, fetches, node.reader, node.replicas)
    if condition.is_due(now_ms):
        return answer.build(results, now_ms)

    def build(at_ms: int) -> FetchReply:
        condition.note_gone_partitions()
        return answer.build(node.reader.read_all(params, fetches, node.image, at_ms), at_ms)

    delayed = Delayed().wait(condition.watchers, condition.is_due, node.timers, now_ms + params.max_wait_ms, build)
    if node.events.noted is not None:
        node.events.noted(now_ms, node.broker_id, "parked", {"api": "Fetch", "client_id": exchange.client_id})
    return delayed


def _params(exchange: Exchange, request: FetchRequest) -> FetchParams:
    version = exchange.api_version
    in_state = version >= fetch_versions.FIRST_WITH_REPLICA_STATE
    replica_id = request.replica_state.replica_id if in_state else request.replica_id
    client = None
    if replica_id < 0 and version >= FIRST_VERSION_WITH_CLIENT_METADATA and exchange.node.replicas.selector is not None:
        peer = exchange.peer
        client = ClientMetadata(
            request.rack_id, exchange.client_id or "", peer.client_address, peer.principal, peer.listener_name
        )
    return FetchParams(
        version,
        replica_id,
        request.max_wait_ms,
        request.min_bytes,
        _max_bytes(exchange, request, replica_id),
        request.isolation_level == READ_COMMITTED,
        client,
    )


def _max_bytes(exchange: Exchange, request: FetchRequest, replica_id: int) -> int:
    """F-4: the client's wish, the broker's limit, and what the client's quota has room for in its window."""
    node = exchange.node
    limit = min(request.max_bytes, node.fetch_max_bytes)
    if replica_id < 0 and node.quotas.fetch.enabled:
        limit = min(limit, node.quotas.fetch.max_bytes_in_window(exchange.peer.principal, exchange.client_id))
    return limit


def _asked(request: FetchRequest, by_id: bool) -> list[tuple[Key, PartitionRequest]]:
    return [
        (
            (topic.topic_id if by_id else topic.topic, p.partition),
            PartitionRequest(
                p.fetch_offset,
                p.partition_max_bytes,
                p.log_start_offset,
                max(-1, p.current_leader_epoch),  # anything below means none here, as in `FetchRequest`
                p.last_fetched_epoch,
            ),
        )
        for topic in request.topics
        for p in topic.partitions
    ]


def _resolve(
    exchange: Exchange, session: FetchContext[Key, Any], by_id: bool, from_follower: bool
) -> tuple[list[Key], list[PartitionFetch]]:
    """What to read, readable partitions first: those found wrong before reading are answered after them (F-23).

    Of the wrong ones a consumer is told unknown ids first; `KafkaApis` looks at the names of a follower's as they come.
    """
    image = exchange.node.image
    good: list[tuple[Key, PartitionFetch]] = []
    bad: list[tuple[Key, PartitionFetch]] = []
    for key, asked in session.partitions():
        topic = image.topic_by_id(key[0]) if by_id else image.topics.get(key[0])
        error = 0
        if topic is None:
            error = int(
                _unknown_id(image, session.names.get(key[0])) if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        elif not 0 <= key[1] < len(topic.partitions):
            error = int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        name = "" if topic is None else topic.name
        if name and by_id:
            session.names[key[0]] = name
        (bad if error else good).append((key, PartitionFetch(name, key[1], *asked, error)))
    if not from_follower:
        bad.sort(key=lambda one: one[1].error != ErrorCode.UNKNOWN_TOPIC_ID)
    ordered = good + bad
    return [key for key, _ in ordered], [one for _, one in ordered]


def _unknown_id(image: Image, name: str | None) -> ErrorCode:
    """S-11: a session knows what a topic was called that is gone; there may be another of that name now."""
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.INCONSISTENT_TOPIC_ID if name in image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _note_follower(
    exchange: Exchange, params: FetchParams, fetches: Sequence[PartitionFetch], results: Sequence[PartitionRead]
) -> None:
    """N-11: what a follower asks for tells how far it is; only when it asks, not when it is answered, and not where logs part."""
    for one, result in zip(fetches, results, strict=True):
        if not result.error_code and not result.diverging:
            partition = exchange.node.replicas.partitions[(one.topic, one.index)]
            partition.follower_fetched(params.replica_id, one.offset, one.log_start_offset, exchange.now_ms)
            own = partition.fetchers.get(params.replica_id)
            if own is not None:  # somebody asked in its name (N-12): its own next fetch tells the truth again
                own.refetch_soon(partition, exchange.now_ms)


class _Answer:
    """Builds the response of one fetch, now or when it has waited."""

    __slots__ = ("_exchange", "_fetches", "_keys", "_params", "_session")

    def __init__(
        self,
        exchange: Exchange,
        params: FetchParams,
        session: FetchContext[Key, Any],
        keys: list[Key],
        fetches: list[PartitionFetch],
    ) -> None:
        self._exchange = exchange
        self._params = params
        self._session = session
        self._keys = keys
        self._fetches = fetches

    def owed_at_once(self, first_of_session: bool) -> bool:
        """D5: under `kip` a follower's first fetch of a session, and one with a stale high watermark, never wait."""
        node, params = self._exchange.node, self._params
        if not params.from_follower or not node.cluster.strict_kip:
            return False
        return first_of_session or any(
            node.reader.has_stale_high_watermark(params, node.replicas.partitions[(f.topic, f.index)])
            for f in self._fetches
            if not f.error
        )

    def build(self, results: list[PartitionRead], now_ms: int) -> FetchReply:
        exchange, from_follower = self._exchange, self._params.from_follower
        paired = list(zip(self._keys, results, strict=True))
        news = self._session.included(paired)
        if not knows_all(self._params.version):
            news = self._as_told(news)
        message = FetchResponse(responses=_grouped(exchange, news))
        if exchange.api_version >= fetch_versions.FIRST_WITH_ENDPOINTS:
            _name_leaders(exchange, message)

        def read(delivered: bool) -> None:
            if from_follower:
                self._told(results)
            elif exchange.node.events.records_read is not None:
                exchange.node.events.records_read(exchange, self._fetches, results, delivered)

        charge = Charge.EXEMPT if from_follower else Charge.FETCH
        return FetchReply(message, charge, session=self._session, results=paired, read=read, now_ms=now_ms)

    def _as_told(self, news: Sequence[tuple[Key, PartitionRead]]) -> list[tuple[Key, PartitionRead]]:
        fetches = dict(zip(self._keys, self._fetches, strict=True))
        find = self._exchange.node.replicas.find
        return [
            (key, told(self._params, fetches[key], read, find(fetches[key].topic, fetches[key].index)))
            for key, read in news
        ]

    def _told(self, results: list[PartitionRead]) -> None:
        for one, result in zip(self._fetches, results, strict=True):
            partition = self._exchange.node.replicas.find(one.topic, one.index)
            follower = None if partition is None else partition.followers.get(self._params.replica_id)
            if follower is not None:
                follower.high_watermark = result.high_watermark


def _grouped(exchange: Exchange, results: Sequence[tuple[Key, PartitionRead]]) -> list[FetchableTopicResponse]:
    """F-27: the order of the results stays; neighbours of one topic share its entry."""
    by_id = exchange.api_version >= fetch_versions.FIRST_BY_ID
    topics: list[FetchableTopicResponse] = []
    last: object = None
    for (topic, index), result in results:
        if not topics or topic != last:
            topics.append(FetchableTopicResponse(topic_id=topic) if by_id else FetchableTopicResponse(topic))
            last = topic
        topics[-1].partitions.append(_partition(index, result))
    return topics


def _partition(index: int, result: PartitionRead) -> PartitionData:
    data = PartitionData(
        index,
        result.error_code,
        result.high_watermark,
        result.last_stable_offset,
        result.log_start_offset,
        NO_DIVERGENCE,
        NO_LEADER,
        NO_SNAPSHOT,
        [] if result.lists_aborted else None,  # F-20
        result.preferred_read_replica,
        result.records,
    )
    if result.diverging_end is not None:
        data.diverging_epoch = EpochEndOffset(*result.diverging_end)
    return data


def _name_leaders(exchange: Exchange, message: FetchResponse) -> None:
    """KIP-951: a partition that moved says who leads it now, and where that is (F-2)."""
    image, listener = exchange.node.image, exchange.peer.listener_name
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in message.responses:
        known = image.topic_by_id(topic.topic_id)
        for data in topic.partitions:
            if data.error_code not in MOVED or known is None:
                continue
            leader, epoch = image.leader_of(known.name, data.partition_index)
            data.current_leader = LeaderIdAndEpoch(leader, epoch)
            endpoint = image.endpoint(leader, listener)
            if endpoint is not None:
                endpoints[leader] = NodeEndpoint(*endpoint)
    message.node_endpoints = list(endpoints.values())
