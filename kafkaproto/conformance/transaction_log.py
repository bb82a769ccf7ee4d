"""The records of one transactional id in its partition of `__transaction_state`, as conformance tests read them."""

from __future__ import annotations

import struct
from typing import NamedTuple

from kafkaproto.conformance.internal_topics import read_to_the_end
from kafkaproto.conformance.transactions import TRANSACTION_TOPIC, Producer
from kafkaproto.coordinator_records import read_record
from kafkaproto.data.transaction_log_key import TransactionLogKey
from kafkaproto.data.transaction_log_value import TransactionLogValue

EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
"""The states of a transaction, as numbers in the field `transaction_status` of a TransactionLogValue."""


class Logged(NamedTuple):
    """A record of a transactional id in `__transaction_state`: its decoded value, and the version of the value. Both are None for a tombstone."""

    version: int | None
    value: TransactionLogValue | None


def logged(producer: Producer) -> list[Logged]:
    """Return the records of a producer's transactional id in `__transaction_state`, in the order of their offsets."""
    records = []
    for record in read_to_the_end(producer.log, producer.index):
        assert record.key is not None
        key, value = read_record(TRANSACTION_TOPIC, record.key, record.value)
        assert isinstance(key, TransactionLogKey)
        if key.transactional_id == producer.id:
            assert value is None or isinstance(value, TransactionLogValue)
            version = None if record.value is None else int(struct.unpack_from(">h", record.value)[0])
            records.append(Logged(version, value))
    return records


def values(producer: Producer) -> list[TransactionLogValue]:
    """Return the values of the records of a producer's transactional id, without tombstones."""
    return [entry.value for entry in logged(producer) if entry.value is not None]
