"""Appending records without a client or a socket, to prepare tests.

All records are checked before the first byte is written. They then go through `ReplicaManager.append`, like those of a Produce request,
and have the same effects on offsets, epochs and waiting requests.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.log.validation import TopicLimits, Valid, validate_batch
from kafkaproto.broker.metadata.image import Topic
from kafkaproto.broker.replication.topic_settings import settings_of
from kafkaproto.broker.testing.arguments import check_int, short_repr
from kafkaproto.broker.testing.records import leader_of, unknown_partition
from kafkaproto.broker.testing.tracebacks import is_hidden
from kafkaproto.error_codes import ErrorCode
from kafkaproto.partitioner import partition_of_key
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.records.compression import Compression
from kafkaproto.records.record import Header

__tracebackhide__ = is_hidden

Value = str | bytes | None
Given = Value | tuple[Value, Value] | NewRecord

_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)


def as_bytes(value: object, place: str) -> bytes | None:
    """Return a key or value as bytes, or None for None; text is encoded as UTF-8.

    place: how an error message names the value. Raises TypeError unless the value is bytes, bytearray, memoryview, str or None.
    """
    if isinstance(value, str):
        return value.encode()
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise TypeError(
        f"{place} must be bytes, str or None (got {type(value).__name__}); encode it, for example json.dumps(...)"
    )


def as_record(item: Given, now_ms: int, place: str = "value") -> NewRecord:
    """Return a record from `item`: a value, a (key, value) pair or a NewRecord.

    now_ms: the timestamp in ms, unless a NewRecord has its own. place: how an error message names the value. Raises TypeError for a tuple that is no
    pair, and if the key, value, timestamp or headers have a wrong type.
    """
    if isinstance(item, NewRecord):
        check_int(f"the timestamp of {place}", item.timestamp, example="int(time.time() * 1000)")
        value, key = as_bytes(item.value, f"the value of {place}"), as_bytes(item.key, f"the key of {place}")
        return NewRecord(value, key, item.timestamp, _headers(item.headers, place))
    if isinstance(item, tuple) and len(item) != 2:
        raise TypeError(
            f"{place} must be a value, a (key, value) pair, or a NewRecord, which can have headers (got {item!r})"
        )
    if isinstance(item, tuple):
        return NewRecord(as_bytes(item[1], f"the value of {place}"), as_bytes(item[0], f"the key of {place}"), now_ms)
    return NewRecord(as_bytes(item, place), None, now_ms)


def _headers(headers: object, place: str) -> tuple[Header, ...]:
    """Return the headers of a record with values as bytes. Raises TypeError unless each header is a pair of a name and a value.

    place: how an error message names the record.
    """
    if isinstance(headers, str | bytes | Mapping) or not isinstance(headers, Iterable):
        raise TypeError(
            f"the headers of {place} must be a list of pairs (got {short_repr(headers)}); for example [('trace', b'1')]"
        )
    pairs: list[Header] = []
    for pair in headers:
        if not isinstance(pair, tuple | list) or len(pair) != 2 or not isinstance(pair[0], str):
            raise TypeError(
                f"a header of {place} must be a name and a value (got {short_repr(pair)}); for example ('trace', b'1')"
            )
        pairs.append((pair[0], as_bytes(pair[1], f"header {pair[0]!r} of {place}")))
    return tuple(pairs)


def check_values(values: object) -> None:
    """Raise TypeError unless `values` is a list or another ordered iterable. A str, bytes object, dict or set is rejected."""
    if isinstance(values, Mapping):
        raise TypeError(
            f"values must be a list of records (got a dict); for example list({short_repr(values)}.items())"
        )
    if isinstance(values, str | bytes | bytearray | memoryview | NewRecord):
        raise TypeError(
            f"values must be a list of records (got {short_repr(values)}); for example [{short_repr(values)}]"
        )
    if isinstance(values, set | frozenset):
        raise TypeError(
            f"values must be a list of records (got {short_repr(values)}, which has no order); use sorted(...)"
        )
    if not isinstance(values, Iterable):
        example = "[None]" if values is None else f"['{values}']"
        raise TypeError(f"values must be a list of records (got {short_repr(values)}); for example {example}")


def check_compression(compression: object) -> None:
    """Raise TypeError unless `compression` is a member of Compression."""
    if isinstance(compression, Compression):
        return
    names = [kind.name for kind in Compression]
    close = difflib.get_close_matches(str(compression).upper(), names, 1)
    suggestion_or_members = f"did you mean Compression.{close[0]}?" if close else f"its members are {', '.join(names)}"
    raise TypeError(
        f"compression must be a kafkaproto.records.compression.Compression (got {short_repr(compression)}); {suggestion_or_members}"
    )


class _Ready(NamedTuple):
    """A validated batch that is not appended yet.

    partition: the partition that the batch is for. numbers: for each record of the batch, its index in the list of values that the test passed.
    valid: the batch.
    """

    partition: int
    numbers: Sequence[int]
    valid: Valid


def produce(
    cluster: Cluster, topic: str, values: Sequence[Given], partition: int | None, compression: Compression
) -> list[tuple[int, int]]:
    """Append records as a producer with acks=1 does. Returns (partition, offset) of each record, in their order.

    values: values, (key, value) pairs or NewRecords. partition: None to choose one by key as Kafka's clients do, and round-robin for records without
    a key. The records are written in batches within the topic's limits. compression: the codec with which these batches are compressed. Raises
    TypeError for an invalid record, and KafkaError, for example UNKNOWN_TOPIC_OR_PARTITION for an unknown topic while `auto.create.topics.enable` is
    false. In both cases nothing is written. Only KAFKA_STORAGE_ERROR (the store is full) can be raised after some batches have been written.
    """
    records = [as_record(record, cluster.actions.now_ms, f"values[{i}]") for i, record in enumerate(values)]
    existing_topic = cluster.controller.image.topics.get(topic)
    target = _new_topic(cluster, topic) if existing_topic is None else existing_topic
    by_index = _by_partition(target, records, partition)
    ready = [
        batch for index in by_index for batch in _checked(cluster, target, index, records, by_index[index], compression)
    ]
    if existing_topic is None:
        cluster.controller.put_topic(target)
    places: list[tuple[int, int]] = [(0, 0)] * len(records)
    for index, numbers, valid in ready:
        base_offset = _append(cluster, topic, index, valid)
        for delta, number in enumerate(numbers):
            places[number] = (index, base_offset + delta)
    return places


def _new_topic(cluster: Cluster, topic: str) -> Topic:
    """Return the topic that auto-creation would create for an unknown name; creates nothing. Raises KafkaError if auto-creation is off."""
    if not cluster.config.for_broker(-1)["auto.create.topics.enable"]:
        text = f"There is no topic {topic}, and auto.create.topics.enable is false; call create_topic first."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
    return cluster.controller.plan_topic(topic)


def _by_partition(topic: Topic, records: Sequence[NewRecord], partition: int | None) -> dict[int, list[int]]:
    """Distribute records to partitions. Returns a dict that maps each partition to the indexes in `records` of its records.

    partition: the partition for all records; None to choose one for each record by its key.
    """
    count = len(topic.partitions)
    by_index: dict[int, list[int]] = {}
    for i, record in enumerate(records):
        index = partition
        if index is None:
            index = i % count if record.key is None else partition_of_key(record.key, count)
        by_index.setdefault(index, []).append(i)
    return by_index


def _checked(
    cluster: Cluster,
    topic: Topic,
    index: int,
    records: Sequence[NewRecord],
    numbers: Sequence[int],
    compression: Compression,
) -> Iterator[_Ready]:
    """Split records into batches that the leader of the partition accepts, and yield each checked batch. Appends nothing.

    index: number of the partition. records: all records to append. numbers: the indexes in `records` of the records for this partition. compression:
    the codec with which the batches are compressed. Raises KafkaError if a single record is too large, a record is invalid, or the partition has
    no leader.
    """
    if not 0 <= index < len(topic.partitions):
        raise unknown_partition(topic, index)
    leader = topic.partitions[index].leader
    if leader < 0:
        raise KafkaError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            f"{topic.name}-{index} has no leader, because no in-sync replica is running; start a broker that has one.",
        )
    limits = settings_of(topic, cluster.config.for_broker(leader)).limits
    now_ms = cluster.actions.now_ms
    pending = [list(numbers)]
    while pending:
        part = pending.pop()
        batch = build_batch([records[i] for i in part], compression=compression)
        try:
            valid = validate_batch(memoryview(bytearray(batch)), limits, now_ms)
        except InvalidBatch as error:
            if error.error_code not in _TOO_LARGE or len(part) == 1:
                raise _refusal(topic.name, limits, part, len(batch), error) from None
            middle = len(part) // 2
            pending += [part[middle:], part[:middle]]
        else:
            yield _Ready(index, part, valid)


def _refusal(
    topic: str, limits: TopicLimits, numbers: Sequence[int], size_bytes: int, error: InvalidBatch
) -> KafkaError:
    """Return the error for a batch that its topic rejects. If one value is the reason, the message names it, for example as `values[3]`.

    limits: the size limits of the topic. numbers: for each record of the batch, its index in the list of values that the test passed.
    size_bytes: the size of the batch. error: why the topic rejects the batch.
    """
    if error.error_code == ErrorCode.MESSAGE_TOO_LARGE and size_bytes > limits.max_message_bytes:
        text = (
            f"values[{numbers[0]}] is {size_bytes} bytes as a batch of its own; max.message.bytes of topic {topic} is "
            f"{limits.max_message_bytes}"
        )
    elif error.error_code == ErrorCode.RECORD_LIST_TOO_LARGE:
        text = f"values[{numbers[0]}] is {size_bytes} bytes as a batch of its own; segment.bytes of topic {topic} is {limits.segment_bytes}"
    elif error.record_errors:
        first = error.record_errors[0]
        text = f"values[{numbers[first.batch_index]}]: {first.message}"
    else:
        text = error.message
    return KafkaError(error.error_code, text)


def _append(cluster: Cluster, topic: str, index: int, valid: Valid) -> int:
    """Append a checked batch and return the offset of its first record. index: number of the partition. valid: the batch.

    Raises KafkaError KAFKA_STORAGE_ERROR (56) if the batch cannot be stored.
    """
    leader = leader_of(cluster, topic, index)
    replicas = cluster.nodes[leader.broker_id].replicas
    try:
        result = replicas.append(leader, valid.batch, cluster.actions.now_ms, validate=lambda *_: valid)
    except StorageError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
    return result.base_offset
