"""The records of `__transaction_state`: encodes and decodes the stored state of transactional ids (TX-4).

Corresponds to Kafka's `TransactionLog`.
"""

from __future__ import annotations

from kafkaproto.broker.transaction.operations import PartitionKey
from kafkaproto.broker.transaction.transaction import TransactionData, TransactionState
from kafkaproto.coordinator_records import read_record, write_key, write_value
from kafkaproto.data.transaction_log_key import TransactionLogKey
from kafkaproto.data.transaction_log_value import PartitionsSchema, TransactionLogValue
from kafkaproto.errors import DecodeError

_TOPIC = "__transaction_state"
_KEY_VERSION = 0

Entry = tuple[bytes, bytes | None]
"""(key, value) of a record; the value of a tombstone is None."""


def entry(transactional_id: str, data: TransactionData | None, value_version: int) -> Entry:
    """Return the record of a transactional id. If `data` is None, the record is a tombstone.

    value_version: the version of the value: 1 from transaction version 1 on, otherwise 0.
    """
    key = write_key(TransactionLogKey(transactional_id), _KEY_VERSION)
    if data is None:
        return key, None
    value = TransactionLogValue(
        producer_id=data.producer_id,
        producer_epoch=data.epoch,
        transaction_timeout_ms=data.timeout_ms,
        transaction_status=data.state,
        transaction_partitions=None if data.state is TransactionState.EMPTY else _by_topic(data),
        transaction_last_update_timestamp_ms=data.update_ms,
        transaction_start_timestamp_ms=data.start_ms,
    )
    if value_version:  # Kafka 4.2 leaves the previous and the next producer id out, although the schema has them
        value.client_transaction_version = data.client_version
    return key, write_value(value, value_version)


def _by_topic(data: TransactionData) -> list[PartitionsSchema]:
    topics: dict[str, list[int]] = {}
    for topic, index in data.partitions:
        topics.setdefault(topic, []).append(index)
    return [PartitionsSchema(topic, indexes) for topic, indexes in topics.items()]


def parse(key: bytes, value: bytes | None) -> tuple[str, TransactionData | None]:
    """Return (transactional id, state) of a record; the state of a tombstone is None. Raises DecodeError for damaged bytes."""
    decoded_key, decoded = read_record(_TOPIC, key, value)
    assert isinstance(decoded_key, TransactionLogKey)
    if decoded is None:
        return decoded_key.transactional_id, None
    assert isinstance(decoded, TransactionLogValue)
    status = decoded.transaction_status
    if not TransactionState.EMPTY <= status <= TransactionState.COMPLETE_ABORT:
        raise DecodeError("TransactionLogValue.transaction_status", 0, f"the status must be from 0 to 5 (got {status})")
    partitions: dict[PartitionKey, None] = {
        (topic.topic, index): None for topic in decoded.transaction_partitions or () for index in topic.partition_ids
    }
    return decoded_key.transactional_id, TransactionData(
        decoded.producer_id,
        decoded.transaction_timeout_ms,
        decoded.transaction_last_update_timestamp_ms,
        TransactionState(status),
        decoded.producer_epoch,
        previous_producer_id=decoded.previous_producer_id,
        next_producer_id=decoded.next_producer_id,
        partitions=partitions,
        start_ms=decoded.transaction_start_timestamp_ms,
        client_version=decoded.client_transaction_version,
    )
