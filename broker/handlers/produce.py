"""Produce (key 0, versions 0-13): append record batches to partitions.

v1 adds throttle time (at the end of the response); v2 adds log append time; v3 requires one batch of magic 2 (before, messages of any magic); v5 adds
log start offset; v7 allows zstd; v8 adds record errors; v9 is flexible; v10 adds the current leader of a partition that moved; v11 and v12 change no
layout. For a partition outside the transaction, v11 returns TRANSACTION_ABORTABLE, and v12 adds the partition to the transaction (KIP-890). v13
names topics by id.
Behaviour: with acks=-1 the response waits until the in-sync replicas have the records. With acks=0 there is no response, and an error closes the
connection (P-1 to P-16). The first batch of a transaction is appended after the coordinator has verified it (TX-26 to TX-35).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.log.old_messages import validate_any_batch
from kafkaproto.broker.log.validation import NO_KEY, TopicLimits, Valid, is_transactional, only_batch, validate_batch
from kafkaproto.broker.metadata.image import INTERNAL_TOPICS, Image
from kafkaproto.broker.replication.awaited_partitions import AwaitedAppend, AwaitedPartitions
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.replication.replica_manager import ALL_IN_SYNC, KNOWN_ACKS, Validation
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.exchange import Exchange
from kafkaproto.broker.requests.outcomes import Charge, NoReply, Outcome, Reply
from kafkaproto.broker.requests.registry import register
from kafkaproto.broker.requests.transaction_errors import error_for
from kafkaproto.broker.requests.verification import Verification, verify
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkaproto.records.batch import BatchHeader, read_header

ADMIN_CLIENT_ID = "__admin_client"
FIRST_VERSION_WITH_ONE_BATCH = 3
FIRST_VERSION_WITH_CURRENT_LEADER = 10
FIRST_VERSION_THAT_ADDS_PARTITIONS = 12
FIRST_VERSION_BY_ID = 13
NO_LEADER_KNOWN = LeaderIdAndEpoch()
NOT_IN_A_TRANSACTION = Verification({}, ())
SEVERAL_PRODUCERS = "Transactional records contained more than one producer ID"
UNVERIFIED_MESSAGES: dict[int, str] = {
    ErrorCode.INVALID_TXN_STATE: "Partition was not added to the transaction",
    ErrorCode.NOT_ENOUGH_REPLICAS: "Unable to verify the partition has been added to the transaction. Underlying error: {}",
}
"""Maps each error code with which the verification of a transaction may fail to the error message in the Produce response (TX-28).

`{}` stands for the name of the coordinator's error.
"""


def _failed(exchange: Exchange, request: ProduceRequest, error_code: int, message: str | None = None) -> Outcome:
    """Return the outcome of a request that is rejected as a whole.

    error_code, message: the error of every partition in the response; with acks=0 the connection is closed instead. As in Kafka, the client's quotas
    count the time that the handler took, but not the bytes of the request (T-12).
    """
    if request.acks == 0:
        return NoReply(close=True, charge=Charge.TIME)
    topics = [
        TopicProduceResponse(t.name, t.topic_id, [_error(p.index, error_code, message) for p in t.partition_data])
        for t in request.topic_data
    ]
    return Reply(ProduceResponse(topics))


@register(ApiKey.PRODUCE, _failed)
def produce(exchange: Exchange, request: ProduceRequest) -> Outcome | Delayed:
    if (refusal := _refused_whole(request)) is not None:
        return _failed(exchange, request, refusal.error_code, refusal.message)
    topics = request.topic_data
    if exchange.api_version >= FIRST_VERSION_BY_ID:
        topics = _with_names(exchange.node.image, topics)
    if len(topics) != 1 or len(topics[0].partition_data) != 1:
        topics = _named_once(topics)
    if request.transactional_id is not None:
        return _produce_in_transaction(exchange, request, topics)
    return _append_all(exchange, request, topics, NOT_IN_A_TRANSACTION, exchange.now_ms, None)


def _produce_in_transaction(
    exchange: Exchange, request: ProduceRequest, topics: Sequence[TopicProduceData]
) -> Outcome | Delayed:
    """Verify the transaction with its coordinator, and then append the records (TX-26, TX-27).

    topics: the topics of the request, with their names. If the request must wait for the coordinator, its records are copied, because the connection
    reuses the receive buffer.
    """
    batches: dict[tuple[str, int], BatchHeader] = {}
    for topic in topics:
        for data in topic.partition_data:
            records: Any = data.records
            if records is not None and is_transactional(records):
                header = read_header(records)
                # without a producer it is an ordinary batch; an unknown partition gets its own error
                if header.producer_id >= 0 and exchange.node.image.partition(topic.name, data.index) is not None:
                    batches[(topic.name, data.index)] = header
    producers = {(header.producer_id, header.producer_epoch) for header in batches.values()}
    if not batches:
        return _append_all(exchange, request, topics, NOT_IN_A_TRANSACTION, exchange.now_ms, None)
    if len(producers) > 1:
        return _failed(exchange, request, ErrorCode.INVALID_PRODUCER_ID_MAPPING, SEVERAL_PRODUCERS)
    delayed = Delayed()
    is_verified = False

    def verified(verification: Verification, at_ms: int) -> None:
        nonlocal is_verified
        is_verified = True
        outcome = _append_all(exchange, request, topics, verification, at_ms, delayed)
        if not isinstance(outcome, Delayed):
            delayed.complete(lambda: outcome, at_ms)

    adds = exchange.api_version >= FIRST_VERSION_THAT_ADDS_PARTITIONS
    verify(
        exchange.node,
        (request.transactional_id or "", *producers.pop()),
        {key: header.base_sequence for key, header in batches.items()},
        exchange.now_ms,
        verified,
        adds=adds,
        retries=adds,
    )
    if not is_verified:
        for topic in topics:
            for data in topic.partition_data:
                records = data.records
                data.records = None if records is None else memoryview(bytearray(records))
    return delayed


def _append_all(
    exchange: Exchange,
    request: ProduceRequest,
    topics: Sequence[TopicProduceData],
    verification: Verification,
    now_ms: int,
    delayed: Delayed | None,
) -> Outcome | Delayed:
    """Append the records of all partitions. Returns the outcome, or the delayed request if it must wait for replication.

    topics: the topics of the request, with their names. verification: the result of the transaction's verification. Nothing is appended to a
    partition that has an error in this result, or whose transaction has ended. delayed: the delayed request if it has already waited for
    verification, otherwise None.
    """
    response = ProduceResponse()
    awaited_appends: list[tuple[AwaitedAppend, PartitionProduceResponse]] = []
    for topic in topics:
        partition_responses = []
        for data in topic.partition_data:
            partition_response, awaited_append = _append(exchange, topic.name, data, request, verification, now_ms)
            partition_responses.append(partition_response)
            if awaited_append is not None:
                awaited_appends.append((awaited_append, partition_response))
        response.responses.append(TopicProduceResponse(topic.name, topic.topic_id, partition_responses))
    if request.acks == 0:
        has_error = any(p.error_code for t in response.responses for p in t.partition_responses)
        return NoReply(close=has_error)
    if awaited_appends:
        return _wait(exchange, response, awaited_appends, now_ms + max(0, request.timeout_ms), delayed or Delayed())
    return _reply(exchange, response)


def _named_once(topics: Sequence[TopicProduceData]) -> list[TopicProduceData]:
    """Return the topics and partitions of a request without repetitions. If a partition is repeated, only its last entry is kept."""
    partitions_of_topics: dict[tuple[str, bytes], dict[int, PartitionProduceData]] = {}
    for topic in topics:
        partitions = partitions_of_topics.setdefault((topic.name, topic.topic_id), {})
        partitions.update((data.index, data) for data in topic.partition_data)
    return [TopicProduceData(*key, list(partitions.values())) for key, partitions in partitions_of_topics.items()]


def _with_names(image: Image, topics: Sequence[TopicProduceData]) -> list[TopicProduceData]:
    """Set the names of topics that the request identifies by id. Return the topics; topics with unknown ids have no name and come last (P-24)."""
    for topic in topics:
        topic.name = image.topic_names.get(topic.topic_id, "")
    return sorted(topics, key=lambda topic: not topic.name)


def _refused_whole(request: ProduceRequest) -> KafkaError | InvalidBatch | None:
    """Return the error that rejects the whole request, or None if each partition has its own result.

    The error is CORRUPT_MESSAGE (2) if the first batch of a partition has a length field that is too small or an unknown magic. It is
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED (53) if the first batch of a partition is transactional and the request has no transactional id.
    """
    try:
        for topic in request.topic_data:
            for data in topic.partition_data:
                records: Any = data.records if data.records is not None else b""
                if is_transactional(records) and request.transactional_id is None:
                    return KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    except InvalidBatch as error:
        return error
    return None


def _append(
    exchange: Exchange,
    topic: str,
    data: PartitionProduceData,
    request: ProduceRequest,
    verification: Verification,
    now_ms: int,
) -> tuple[PartitionProduceResponse, AwaitedAppend | None]:
    """Append the records of one partition. Returns (the partition's response, the replication to wait for or None).

    data: the records, and the partition's number in `topic`. verification: the result of the transaction's verification.

    The checks, in Kafka's order: A. the partition exists; B. the version of the request allows the format of the batch (P-4); C. the transaction is
    verified (TX-28); D. acks is valid (P-5); E. the topic is not internal; F. this broker leads the partition; G. enough replicas are in sync; H. the
    transaction has not ended since the verification began (TX-30), and the batch is valid. If check G or H fails, the response has a log start
    offset; if an earlier check fails, it has -1 (P-2).
    """
    node = exchange.node
    key = topic, data.index
    partition = node.replicas.partitions.get(key)
    is_old_version = exchange.api_version < FIRST_VERSION_WITH_ONE_BATCH
    try:
        if partition is None and node.image.partition(topic, data.index) is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if topic else _unknown_topic(exchange.api_version))
        records: Any = data.records if data.records is not None else b""
        produced_bytes = memoryview(records) if is_old_version else only_batch(records, exchange.api_version)
        if coordinator_error := verification.errors.get(key, 0):
            error_code = error_for(exchange.api_key, exchange.api_version, coordinator_error)
            message = UNVERIFIED_MESSAGES.get(error_code)
            in_full = None if message is None else message.format(ErrorCode(coordinator_error).name)
            return _error(data.index, error_code, in_full), None
        _check_request(exchange, topic, request)
        if partition is None or not partition.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        validate: Validation = validate_any_batch if is_old_version else validate_batch
        if verification.ended and key in verification.ended:
            validate = _reject_ended
        append_result = node.replicas.append(
            partition,
            produced_bytes,
            now_ms,
            acks_all=request.acks == ALL_IN_SYNC,
            validate=validate,
        )
    except KafkaError as error:
        return _refused(data.index, error, partition), None
    except InvalidBatch as error:
        return _invalid(topic, data.index, error, partition), None
    except StorageError as error:
        node.complain("records cannot be stored", error, now_ms)
        return _error(data.index, ErrorCode.KAFKA_STORAGE_ERROR), None
    if append_result.is_new and node.events.records_appended is not None:
        node.events.records_appended(exchange, topic, data.index, append_result.end_offset)
    partition_response = PartitionProduceResponse(
        data.index,
        0,
        append_result.base_offset,
        append_result.log_append_time_ms,
        append_result.log_start_offset,
        [],
        None,
        NO_LEADER_KNOWN,
    )
    return partition_response, append_result.awaited


def _reject_ended(batch: memoryview, limits: TopicLimits, now_ms: int) -> Valid:
    """Reject a batch of a transaction that has ended. Validates the batch first, so that another error takes precedence (TX-30).

    limits: the settings of the topic. Always raises InvalidBatch.
    """
    validate_batch(batch, limits, now_ms)
    raise InvalidBatch(
        ErrorCode.INVALID_TXN_STATE,
        "The batch belongs to a transaction that has already ended; send the batch in a new transaction.",
    )


def _unknown_topic(version: int) -> ErrorCode:
    """Return the error code for a topic whose name is unknown: UNKNOWN_TOPIC_ID in versions that use topic ids, else UNKNOWN_TOPIC_OR_PARTITION."""
    return ErrorCode.UNKNOWN_TOPIC_ID if version >= FIRST_VERSION_BY_ID else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _check_request(exchange: Exchange, topic: str, request: ProduceRequest) -> None:
    if request.acks not in KNOWN_ACKS:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
    if topic in INTERNAL_TOPICS and exchange.client_id != ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)


def _error(index: int, error_code: int, message: str | None = None) -> PartitionProduceResponse:
    return PartitionProduceResponse(index, int(error_code), -1, error_message=message)


def _refused(index: int, error: KafkaError, partition: Partition | None) -> PartitionProduceResponse:
    partition_response = _error(index, error.error_code)
    if error.error_code == ErrorCode.NOT_ENOUGH_REPLICAS and partition is not None:
        partition_response.log_start_offset = partition.log.log_start_offset
    return partition_response


def _invalid(topic: str, index: int, error: InvalidBatch, partition: Partition | None) -> PartitionProduceResponse:
    """Return the response for a partition whose batch is invalid.

    topic, index: the topic and the number of the partition. error: why the batch is invalid. partition: this broker's replica, from which the log
    start offset is taken; None if the broker has none. The response has a message only if there are record errors, or if a batch's length field is
    too small or its magic is unknown (P-2, P-10).
    """
    has_message = error.record_errors or (error.before_append and error.error_code == ErrorCode.CORRUPT_MESSAGE)
    in_partition = f"{NO_KEY} in topic partition {topic}-{index}"
    message = error.message.replace(NO_KEY, in_partition) if has_message else None
    partition_response = _error(index, error.error_code, message)
    if error.log_start_known and partition is not None:
        partition_response.log_start_offset = partition.log.log_start_offset
    partition_response.record_errors = [
        BatchIndexAndErrorMessage(e.batch_index, e.message.replace(NO_KEY, in_partition)) for e in error.record_errors
    ]
    return partition_response


def _wait(
    exchange: Exchange,
    response: ProduceResponse,
    awaited: list[tuple[AwaitedAppend, PartitionProduceResponse]],
    deadline_ms: int,
    delayed: Delayed,
) -> Delayed:
    """Delay the response until the in-sync replicas have the appended records.

    awaited: for each partition the replication to wait for, and the entry of `response` that gets its error code. deadline_ms: when the wait ends. A
    partition that is not replicated by then gets error REQUEST_TIMED_OUT (7). Its records stay in the log, and the response keeps their offsets
    (P-13). delayed: the state of the delayed request, which is returned; the request may already have waited for verification.
    """
    if delayed.done:
        return delayed  # the connection closed while the transaction was verified

    def build(_now_ms: int) -> Reply:
        for awaited_append, partition_response in awaited:
            partition_response.error_code = awaited_append.error_code
        return _reply(exchange, response)

    all_awaited = AwaitedPartitions([awaited_append for awaited_append, _ in awaited])
    return delayed.wait(
        all_awaited.watchers, all_awaited.is_settled, exchange.node.timers, deadline_ms, build, all_awaited.time_out
    )


def _reply(exchange: Exchange, response: ProduceResponse) -> Reply:
    if exchange.api_version >= FIRST_VERSION_WITH_CURRENT_LEADER:
        _name_leaders(exchange, response)
    return Reply(response, Charge.PRODUCE)


def _name_leaders(exchange: Exchange, response: ProduceResponse) -> None:
    """Add to a Produce response the new leader of each partition that has moved, so that the client need not send Metadata (KIP-951)."""
    image, listener = exchange.node.image, exchange.peer.listener_name
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in response.responses:
        for partition_response in topic.partition_responses:
            if partition_response.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:
                continue
            leader, epoch = image.leader_of(topic.name, partition_response.index)
            partition_response.current_leader = LeaderIdAndEpoch(leader, epoch)
            endpoint = image.endpoint(leader, listener)
            if endpoint is not None:
                endpoints[leader] = NodeEndpoint(*endpoint)
    response.node_endpoints = list(endpoints.values())
