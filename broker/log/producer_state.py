"""State of the producers of a partition: `ProducerStateManager` in Kafka (KIP-98, KIP-360, KIP-890; P-17 to P-21, TX-48 to TX-54).

The state of a producer id is its epoch, its last five batches, and the start of its open transaction. A batch with the same sequence numbers as one
of the last five batches is a duplicate. A batch is accepted if it has the next sequence number, or a newer epoch and sequence number 0, or if its
producer id has no state. Any other batch is rejected. A marker ends the transaction of its producer. This module does not depend on the log,
transaction coordinators or a clock (the time of expiry is an argument).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.broker.log.transaction_index import TransactionIndex
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import BatchHeader
from kafkaproto.records.control import EndOfTransaction

REMEMBERED_BATCHES = 5
NONE = -1
_SEQUENCE_MASK = 0x7FFFFFFF


class RememberedBatch(NamedTuple):
    """An appended batch of a producer: sequence numbers and offsets of its first and last record.

    max_timestamp: the largest timestamp of its records in ms, -1 if they have none.
    """

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    max_timestamp: int


class ProducerEntry:
    """The state of one producer: its epoch and at most five batches of that epoch, newest last.

    coordinator_epoch: the coordinator epoch in the last marker, -1 before the first one. marker_offset: the offset of the last marker, -1 for none.
    last_timestamp: the timestamp of the last batch or marker, in ms. first_open_offset: the first offset of the open transaction, -1 if none is open.
    """

    __slots__ = ("batches", "coordinator_epoch", "epoch", "first_open_offset", "last_timestamp", "marker_offset")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[RememberedBatch] = []
        self.coordinator_epoch = NONE
        self.marker_offset = NONE
        self.last_timestamp = NONE
        self.first_open_offset = NONE

    @property
    def last_sequence(self) -> int:
        """Return the producer's last sequence number in its current epoch, -1 if it has none yet."""
        return self.batches[-1].last_sequence if self.batches else NONE

    @property
    def first_offset(self) -> int:
        """Return the lowest offset of this producer's remembered batches, its last marker and the first record of its open transaction."""
        offsets = (self.batches[0].first_offset if self.batches else NONE, self.marker_offset, self.first_open_offset)
        return min(offset for offset in offsets if offset != NONE)

    @property
    def last_offset(self) -> int:
        """Return the offset of this producer's last record or last marker, whichever is larger."""
        return max(self.batches[-1].last_offset if self.batches else NONE, self.marker_offset)

    def copy(self) -> ProducerEntry:
        copied = ProducerEntry(self.epoch)
        copied.batches = list(self.batches)
        copied.coordinator_epoch, copied.marker_offset = self.coordinator_epoch, self.marker_offset
        copied.last_timestamp, copied.first_open_offset = self.last_timestamp, self.first_open_offset
        return copied


class Verification:
    """The verification that a transaction needs before its first batch is appended to this log: `VerificationStateEntry` in Kafka (KIP-890).

    epoch: the newest producer epoch among the batches that arrived for this transaction. lowest_sequence: the smallest first sequence number among
    the batches of this epoch; the transaction must not begin with a larger one. adds_partitions: whether the coordinator adds the log's partition to
    the transaction if it is missing (transaction version 2). since_ms: when the verification began.
    """

    __slots__ = ("adds_partitions", "epoch", "lowest_sequence", "since_ms")

    def __init__(self, epoch: int, sequence: int, since_ms: int, *, adds_partitions: bool) -> None:
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.since_ms = since_ms
        self.adds_partitions = adds_partitions

    def tried(self, epoch: int, sequence: int) -> None:
        """Record a batch that arrives before its transaction is verified: keep the newest epoch, and the lowest first sequence number of that epoch.

        sequence: the batch's first sequence number.
        """
        if epoch > self.epoch or (epoch == self.epoch and sequence < self.lowest_sequence):
            self.epoch, self.lowest_sequence = epoch, sequence


class ProducerStates:
    """The producers that wrote to one replica's log and have not expired, by producer id, and their transactions."""

    __slots__ = ("producers", "transactions", "verifications")

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}
        self.transactions = TransactionIndex()
        self.verifications: dict[int, Verification] = {}
        """Maps a producer id to the verification of the producer's transaction, while this log has no batch of the transaction."""

    def check(self, header: BatchHeader) -> RememberedBatch | None:
        """Check whether a client's batch with a producer id may be appended. Changes nothing.

        Returns None if the batch may be appended. If it is a duplicate, returns the original batch, whose offsets go into the response (P-18). Raises
        InvalidBatch with error INVALID_PRODUCER_EPOCH (47) for an older epoch (P-19), OUT_OF_ORDER_SEQUENCE_NUMBER (45) for a sequence that does not
        follow (P-20, TX-33), INVALID_TXN_STATE (48) for a batch that is not transactional while the producer has an open transaction (TX-34).
        """
        producer_id, first, epoch = header.producer_id, header.base_sequence, header.producer_epoch
        entry = self.producers.get(producer_id)
        if entry is not None:
            if epoch == entry.epoch:
                last = last_sequence(header)
                for batch in entry.batches:
                    if batch.first_sequence == first and batch.last_sequence == last:
                        return batch
            elif epoch < entry.epoch:
                raise _stale_epoch(producer_id, epoch, entry)
        elif epoch < NONE:
            raise _stale_epoch(producer_id, epoch, ProducerEntry(NONE))
        if self.verifications and producer_id in self.verifications:
            _check_first_batch(header, self.verifications[producer_id], has_state=entry is not None)
        if entry is None:
            return None  # accept any sequence: the producer's earlier batches may have been deleted
        expected = (entry.last_sequence + 1) & _SEQUENCE_MASK if epoch == entry.epoch else 0
        if first != expected:
            raise InvalidBatch(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Sequence number {first} of producer {producer_id} at epoch {epoch} is out of order; expected {expected}.",
            )
        if entry.first_open_offset != NONE and not header.is_transactional:
            raise InvalidBatch(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {producer_id} has an open transaction, but its batch is not transactional; end the transaction first.",
            )
        return None

    def check_epoch(self, producer_id: int, epoch: int) -> None:
        """Raise InvalidBatch with error INVALID_PRODUCER_EPOCH (47) if `epoch` is older than the producer's last known epoch."""
        entry = self.producers.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise _stale_epoch(producer_id, epoch, entry)

    def check_end_of_transaction(self, producer_id: int, epoch: int) -> None:
        """Check the epoch of a marker of transaction version 2 (TX-48).

        Raises InvalidBatch with error INVALID_PRODUCER_EPOCH (47) if the producer has an open transaction, and `epoch` is not newer than the
        producer's epoch. Without an open transaction, every epoch is accepted, because the marker may be a repetition of the one that ended the
        transaction.
        """
        entry = self.producers.get(producer_id)
        if entry is not None and entry.first_open_offset != NONE and epoch <= entry.epoch:
            raise _stale_epoch(producer_id, epoch, entry)

    def check_marker(self, header: BatchHeader, marker: EndOfTransaction) -> None:
        """Check whether a transaction marker may be appended (TX-48).

        A producer without state has epoch -1 and coordinator epoch -1, as in Kafka. Raises InvalidBatch with error INVALID_PRODUCER_EPOCH (47) if the
        producer has a newer epoch, TRANSACTION_COORDINATOR_FENCED (52) if a newer coordinator has written a marker.
        """
        entry = self.producers.get(header.producer_id) or ProducerEntry(NONE)
        if header.producer_epoch < entry.epoch:
            raise _stale_epoch(header.producer_id, header.producer_epoch, entry)
        if marker.coordinator_epoch < entry.coordinator_epoch:
            raise InvalidBatch(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"The marker for producer {header.producer_id} has coordinator epoch {marker.coordinator_epoch}, "
                f"but must have at least {entry.coordinator_epoch}, the last seen epoch.",
            )

    def needs_verification(self, producer_id: int, epoch: int | None) -> bool:
        """Return whether the coordinator must verify a producer's transaction, because it is not open in this partition yet (TX-27).

        epoch: the producer epoch of the batch to append; an open transaction of another epoch is ignored. None accepts any epoch.
        """
        entry = self.producers.get(producer_id)
        return entry is None or entry.first_open_offset == NONE or epoch not in (None, entry.epoch)

    def begin_verification(
        self, producer_id: int, epoch: int, sequence: int, now_ms: int, *, adds_partitions: bool
    ) -> None:
        """Record that this partition waits until the coordinator has verified a producer's transaction.

        epoch, sequence: the producer epoch and the first sequence number of the batch to append. adds_partitions: whether the coordinator adds the
        partition to the transaction if it is missing (transaction version 2).
        """
        verification = self.verifications.get(producer_id)
        if verification is None:
            verification = Verification(epoch, sequence, now_ms, adds_partitions=adds_partitions)
            self.verifications[producer_id] = verification
        verification.tried(epoch, sequence)

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Record that a batch with a producer id was appended at `base_offset`."""
        entry = self._at_epoch(header)
        batches = entry.batches
        batches.append(
            RememberedBatch(
                header.base_sequence,
                last_sequence(header),
                base_offset,
                base_offset + header.last_offset_delta,
                header.max_timestamp,
            )
        )
        if len(batches) > REMEMBERED_BATCHES:
            del batches[0]
        entry.last_timestamp = header.max_timestamp
        if header.is_transactional:
            self.verifications.pop(header.producer_id, None)
            if entry.first_open_offset == NONE:
                entry.first_open_offset = base_offset
                self.transactions.begin(header.producer_id, base_offset)

    def end_transaction(self, header: BatchHeader, marker: EndOfTransaction, offset: int) -> None:
        """Record that a transaction marker was appended at `offset` (TX-52, TX-54)."""
        self.verifications.pop(header.producer_id, None)
        entry = self._at_epoch(header)
        entry.coordinator_epoch = marker.coordinator_epoch
        entry.marker_offset = offset
        entry.last_timestamp = header.max_timestamp
        if entry.first_open_offset != NONE:
            self.transactions.end(header.producer_id, entry.first_open_offset, offset, aborted=not marker.committed)
            entry.first_open_offset = NONE

    def _at_epoch(self, header: BatchHeader) -> ProducerEntry:
        """Return the state of the producer of a batch, and create it if it is missing.

        If the batch has another epoch than the state, the epoch is updated and the batches stored for the old epoch are removed.
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_epoch)
        elif entry.epoch != header.producer_epoch:
            entry.epoch = header.producer_epoch
            entry.batches = []
        return entry

    def forget_from(self, offset: int) -> set[int]:
        """Remove every producer with a batch or marker at `offset` or later. Returns their ids; the caller must rebuild their states from the log."""
        producer_ids = {producer_id for producer_id, entry in self.producers.items() if entry.last_offset >= offset}
        for producer_id in producer_ids:
            del self.producers[producer_id]
        self.verifications.clear()
        self.transactions.truncate(offset, producer_ids)
        return producer_ids

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that have been idle for `expiration_ms` (producer.id.expiration.ms), unless they have an open transaction (TX-63).

        As in Kafka, idle time counts from the timestamp in the producer's last batch or marker. A client may have set this timestamp. Also removes
        verifications of transactions if the verification began at least `expiration_ms` ago.
        """
        idle = [
            producer_id
            for producer_id, entry in self.producers.items()
            if entry.first_open_offset == NONE and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.producers[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if now_ms - verification.since_ms >= expiration_ms:
                del self.verifications[producer_id]

    def longest_idle_since_ms(self) -> int | None:
        """Return since when the longest idle producer has been idle, as a time in ms; None if no producer is idle.

        It is the time of the producer's last batch or marker. For a producer whose transaction is being verified, it is the time when the
        verification began. Producers with an open transaction are not idle.
        """
        idle = [entry.last_timestamp for entry in self.producers.values() if entry.first_open_offset == NONE]
        return min([*idle, *(verification.since_ms for verification in self.verifications.values())], default=None)

    def states_below(self, offset: int) -> dict[int, ProducerEntry]:
        """Return the states of the producers whose state depends on the log below `offset`, as a dict by producer id.

        These producers have a stored batch, a last marker or the start of an open transaction below `offset`. The states are persisted before the log
        start is raised to `offset`, because they cannot be rebuilt once the batches are gone.
        """
        return {i: entry for i, entry in self.producers.items() if entry.first_offset < offset}

    def restore(self, producers: Mapping[int, ProducerEntry]) -> None:
        """Add copies of the states in `producers`, a dict by producer id. A copy replaces the present state of the same producer."""
        for producer_id, original in producers.items():
            self.producers[producer_id] = original.copy()
        self.transactions.restore_open(
            (producer_id, entry.first_open_offset)
            for producer_id, entry in self.producers.items()
            if entry.first_open_offset != NONE
        )

    def clear(self) -> None:
        self.producers.clear()
        self.verifications.clear()
        self.transactions.clear()


def _check_first_batch(header: BatchHeader, verification: Verification, *, has_state: bool) -> None:
    """Check the sequence number of the first batch in a transaction whose verification was required (TX-33).

    The first sequence number must not be larger than the lowest one among the batches that arrived during the verification. With transaction version
    2, it must also be 0 if the log has no state of the producer. Otherwise raises InvalidBatch with error OUT_OF_ORDER_SEQUENCE_NUMBER (45).
    has_state: whether the log has a state of the producer from earlier batches or markers.
    """
    first = header.base_sequence
    if verification.adds_partitions and not has_state and first != 0:
        lowest = 0
    elif first > verification.lowest_sequence:
        lowest = verification.lowest_sequence
    else:
        return
    raise InvalidBatch(
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        f"Producer {header.producer_id} cannot begin a transaction with sequence number {first}: "
        f"the batch with sequence number {lowest} must come first.",
    )


def _stale_epoch(producer_id: int, epoch: int, entry: ProducerEntry) -> InvalidBatch:
    return InvalidBatch(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch {epoch} of producer {producer_id} is older than its last seen epoch {entry.epoch}.",
    )


def last_sequence(header: BatchHeader) -> int:
    """Return the sequence number of the last record in a batch. Sequence numbers continue with 0 after 2147483647 (P-21)."""
    return (header.base_sequence + header.last_offset_delta) & _SEQUENCE_MASK
