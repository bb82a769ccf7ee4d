"""Fetch (key 1, versions 0-18): records from partitions, for consumers and followers.

v1 adds throttle time; v3 adds a limit for the whole response; v4 adds the isolation level and magic 2; v5 adds log start offsets; v7 adds sessions;
v9 adds the client's leader epoch; v11 adds racks; v12 is flexible and adds diverging epochs; v13 identifies topics by id; v15 has the replica id in a
tagged struct; v16 adds endpoints of moved leaders; v17 adds directory ids; v18 adds the high watermark of a
follower of the metadata log (KIP-1166), which brokers ignore for topics.
Behaviour: `fetch.read` applies byte limits and visibility (F-4 to F-14), `fetch.fetch_condition` decides how long a fetch waits, `fetch.session`
handles sessions. Up to release 3.9, `fetch.conversion` converts records for clients before v4, and clients before v10 get no zstd.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.fetch.conversion import for_client, knows_all
from kafkaproto.broker.fetch.fetch_condition import FetchCondition, must_respond_now
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
    AbortedTransaction,
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
# Shared by all responses without values of their own; never written to.
NO_DIVERGENCE, NO_LEADER, NO_SNAPSHOT = EpochEndOffset(), LeaderIdAndEpoch(), SnapshotId()
MOVED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)

Key = tuple[Any, int]
"""A partition as the request identifies it: (topic name, partition index), from version 13 on (topic id, partition index)."""


def _failed(exchange: Exchange, request: FetchRequest, error_code: int) -> FetchReply:
    """Return the reply to a fetch that failed as a whole.

    The response has the error at its top level from version 7 on. Up to version 12, the last version that identifies topics by name, each partition
    has the error.
    """
    version = exchange.api_version
    at_top = int(error_code) if version >= fetch_versions.FIRST_WITH_SESSIONS else 0
    topics = request.topics if version < fetch_versions.FIRST_BY_ID else []
    results = [((t.topic, p.partition), failed(error_code)) for t in topics for p in t.partitions]
    response = FetchResponse(error_code=at_top, responses=_grouped(exchange, results))
    return FetchReply(response)


@register(ApiKey.FETCH, _failed)
def fetch(exchange: Exchange, request: FetchRequest) -> FetchReply | Delayed:
    node, now_ms = exchange.node, exchange.now_ms
    if request.isolation_level not in ISOLATION_LEVELS:
        return _failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)
    params = _params(exchange, request)
    by_id = exchange.api_version >= fetch_versions.FIRST_BY_ID
    session: FetchContext[Key, Any] = node.sessions.begin(
        request.session_id,
        request.session_epoch,
        _requested_partitions(request, by_id),
        [(t.topic_id if by_id else t.topic, p) for t in request.forgotten_topics_data for p in t.partitions],
        by_id,
        params.from_follower,
        now_ms,
    )
    keys, fetches = _resolve(exchange, session, by_id, params.from_follower)
    results = node.reader.read_all(params, fetches, node.image, now_ms)
    builder = _ReplyBuilder(exchange, params, session, keys, fetches)
    if params.from_follower:
        _note_follower(exchange, params, fetches, results)
    min_bytes = min(params.min_bytes, params.max_bytes)  # F-5
    first_of_session = request.session_epoch == NEW_SESSION_EPOCH
    if must_respond_now(params, min_bytes, fetches, results):
        return builder.build(results, now_ms)
    if builder.must_respond_at_once(first_of_session):
        # Read again, as after parking: this very fetch may have moved the high watermark.
        return builder.build(node.reader.read_all(params, fetches, node.image, now_ms), now_ms)
    condition = FetchCondition(params, min_bytes, fetches, node.reader, node.replicas)
    if condition.is_due(now_ms):
        return builder.build(results, now_ms)

    def build(at_ms: int) -> FetchReply:
        condition.note_gone_partitions()
        return builder.build(node.reader.read_all(params, fetches, node.image, at_ms), at_ms)

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
    """Return the byte limit for the response: the lowest of the client's limit, the broker's limit, and the limit of the client's fetch quota (F-4).

    replica_id: the broker id of a follower, for which no client quota applies; negative for a client.
    """
    node = exchange.node
    limit = min(request.max_bytes, node.fetch_max_bytes)
    if replica_id < 0 and node.quotas.fetch.enabled:
        limit = min(limit, node.quotas.fetch.max_bytes_in_window(exchange.peer.principal, exchange.client_id))
    return limit


def _requested_partitions(request: FetchRequest, by_id: bool) -> list[tuple[Key, PartitionRequest]]:
    return [
        (
            (topic.topic_id if by_id else topic.topic, p.partition),
            PartitionRequest(
                p.fetch_offset,
                p.partition_max_bytes,
                p.log_start_offset,
                max(-1, p.current_leader_epoch),  # any value below means none, as in `FetchRequest`
                p.last_fetched_epoch,
            ),
        )
        for topic in request.topics
        for p in topic.partitions
    ]


def _resolve(
    exchange: Exchange, session: FetchContext[Key, Any], by_id: bool, from_follower: bool
) -> tuple[list[Key], list[PartitionFetch]]:
    """Return the partitions of a fetch as two lists in the same order: the key of each partition, and what to read from each partition.

    Both lists have the order in which the broker handles the partitions: first the partitions to read, then the partitions with an error that was
    detected before reading (F-23). For a follower, the partitions with errors are in the order of the request, as in `KafkaApis`. For a consumer,
    those of them with error UNKNOWN_TOPIC_ID (100) come before the others.

    by_id: whether the keys have topic ids instead of names. from_follower: whether a follower fetches. session: the context of the fetch, with the
    partitions of its fetch session or, without a session, of the request.
    """
    image = exchange.node.image
    valid_fetches: list[tuple[Key, PartitionFetch]] = []
    invalid_fetches: list[tuple[Key, PartitionFetch]] = []
    for key, limits in session.partitions():
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
        (invalid_fetches if error else valid_fetches).append((key, PartitionFetch(name, key[1], *limits, error)))
    if not from_follower:
        invalid_fetches.sort(key=lambda item: item[1].error != ErrorCode.UNKNOWN_TOPIC_ID)
    ordered = valid_fetches + invalid_fetches
    return [key for key, _ in ordered], [item for _, item in ordered]


def _unknown_id(image: Image, name: str | None) -> ErrorCode:
    """Return the error code for a topic id that does not exist (S-11).

    name: the topic name that the fetch session stores for the id. The error is UNKNOWN_TOPIC_ID if the name is None,
    INCONSISTENT_TOPIC_ID if a topic of this name exists under another id, otherwise UNKNOWN_TOPIC_OR_PARTITION.
    """
    if name is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    return ErrorCode.INCONSISTENT_TOPIC_ID if name in image.topics else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _note_follower(
    exchange: Exchange, params: FetchParams, fetches: Sequence[PartitionFetch], results: Sequence[PartitionRead]
) -> None:
    """Report a follower's fetch offsets to the partitions, which record how far the follower has replicated them (N-11).

    Partitions with an error or a diverging epoch in their results are left out.

    params: contains the follower's broker id. fetches, results: the requested partitions, and the results of reading them, in the same order.
    """
    for fetch, result in zip(fetches, results, strict=True):
        if not result.error_code and not result.diverging:
            partition = exchange.node.replicas.partitions[(fetch.topic, fetch.index)]
            partition.follower_fetched(params.replica_id, fetch.offset, fetch.log_start_offset, exchange.now_ms)
            own = partition.fetchers.get(params.replica_id)
            if own is not None:  # a client used the follower's id (N-12): the follower's next fetch corrects it
                own.refetch_soon(partition, exchange.now_ms)


class _ReplyBuilder:
    """Builds the response to one fetch, either at once or after the fetch has waited for data."""

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

    def must_respond_at_once(self, first_of_session: bool) -> bool:
        """Return whether a follower's fetch gets its response at once instead of waiting for records (D5).

        The result depends on the setting `semantics`, which says what the broker follows where Kafka's code differs from the KIPs. If it is "kafka"
        (the code), the result is False. If it is "kip", the result is True for the first fetch of a fetch session, and for each fetch that shows that
        the follower knows an outdated high watermark of a partition. first_of_session: whether this is the first fetch of a fetch session.
        """
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
        if not knows_all(self._params.version) and not exchange.node.is_release_4:  # Kafka 4 converts nothing (F-33)
            news = self._for_client(news)
        message = FetchResponse(responses=_grouped(exchange, news))
        if exchange.api_version >= fetch_versions.FIRST_WITH_ENDPOINTS:
            _name_leaders(exchange, message, with_endpoints=not (from_follower and exchange.node.is_release_4))

        def read(delivered: bool) -> None:
            if from_follower:
                self._note_high_watermarks(results)
            elif exchange.node.events.records_read is not None:
                exchange.node.events.records_read(exchange, self._fetches, results, delivered)

        charge = Charge.EXEMPT if from_follower else Charge.FETCH
        return FetchReply(message, charge, session=self._session, results=paired, read=read, now_ms=now_ms)

    def _for_client(self, news: Sequence[tuple[Key, PartitionRead]]) -> list[tuple[Key, PartitionRead]]:
        fetches = dict(zip(self._keys, self._fetches, strict=True))
        find = self._exchange.node.replicas.find
        return [
            (key, for_client(self._params, fetches[key], read, find(fetches[key].topic, fetches[key].index)))
            for key, read in news
        ]

    def _note_high_watermarks(self, results: list[PartitionRead]) -> None:
        for fetch, result in zip(self._fetches, results, strict=True):
            partition = self._exchange.node.replicas.find(fetch.topic, fetch.index)
            follower = None if partition is None else partition.followers.get(self._params.replica_id)
            if follower is not None:
                follower.high_watermark = result.high_watermark


def _grouped(exchange: Exchange, results: Sequence[tuple[Key, PartitionRead]]) -> list[FetchableTopicResponse]:
    """Group the results by topic for the response. The order is kept, so only consecutive partitions of a topic share an entry (F-27)."""
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
        [AbortedTransaction(*entry[:2]) for entry in result.aborted] if result.lists_aborted else None,  # F-20
        result.preferred_read_replica,
        result.records,
    )
    if result.diverging_end is not None:
        data.diverging_epoch = EpochEndOffset(*result.diverging_end)
    return data


def _name_leaders(exchange: Exchange, message: FetchResponse, *, with_endpoints: bool) -> None:
    """Add to a Fetch response the new leader of each partition whose leader moved, and the endpoint of that leader (KIP-951).

    message: the response, which is changed. with_endpoints: whether to add endpoints. Followers get none from release 4.0 on (F-37).
    """
    image, listener = exchange.node.image, exchange.peer.listener_name
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in message.responses:
        topic_in_image = image.topic_by_id(topic.topic_id)
        for data in topic.partitions:
            if data.error_code not in MOVED or topic_in_image is None:
                continue
            leader, epoch = image.leader_of(topic_in_image.name, data.partition_index)
            data.current_leader = LeaderIdAndEpoch(leader, epoch)
            endpoint = image.endpoint(leader, listener) if with_endpoints else None
            if endpoint is not None:
                endpoints[leader] = NodeEndpoint(*endpoint)
    message.node_endpoints = list(endpoints.values())
