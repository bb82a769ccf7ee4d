"""State of idempotent producers of a partition: `ProducerStateManager` in Kafka (KIP-98, KIP-360; P-17 to P-21).

The state of a producer id is its epoch and its last five batches. A batch with the sequence numbers of one of these is a duplicate. A batch
is accepted if it has the next sequence number, or a newer epoch and sequence number 0, or if its producer id has no state. Any other
batch is rejected. This module does not depend on the log, transaction coordinators or a clock (the time of expiry is an argument).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kafkaproto.broker.log.errors import InvalidBatch
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import BatchHeader

REMEMBERED_BATCHES = 5
_SEQUENCE_MASK = 0x7FFFFFFF


class RememberedBatch(NamedTuple):
    """An appended batch of a producer: sequence numbers and offsets of its first and last record. max_timestamp: in ms, -1 for none."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    max_timestamp: int


class ProducerEntry:
    """The state of one producer: its epoch and at most five batches of that epoch, newest last."""

    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[RememberedBatch] = []


class ProducerStates:
    """The producers that wrote to one replica's log and have not expired, by producer id."""

    __slots__ = ("producers",)

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}

    def check(self, header: BatchHeader) -> RememberedBatch | None:
        """Check whether a client's batch with a producer id may be appended. Changes nothing.

        Returns None if the batch is to be appended. If it is a duplicate, returns the original batch, whose offsets go into the response (P-18).
        Raises InvalidBatch with error INVALID_PRODUCER_EPOCH (47) for an older epoch (P-19), OUT_OF_ORDER_SEQUENCE_NUMBER (45) for a sequence that
        does not follow (P-20).
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return None  # accept any sequence: the producer's earlier batches may have been deleted
        first, epoch = header.base_sequence, header.producer_epoch
        if epoch == entry.epoch:
            last = last_sequence(header)
            for batch in entry.batches:
                if batch.first_sequence == first and batch.last_sequence == last:
                    return batch
            expected = (entry.batches[-1].last_sequence + 1) & _SEQUENCE_MASK
        elif epoch < entry.epoch:
            raise InvalidBatch(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"Epoch {epoch} of producer {header.producer_id} is older than its last seen epoch {entry.epoch}.",
            )
        else:
            expected = 0
        if first != expected:
            raise InvalidBatch(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Sequence number {first} of producer {header.producer_id} at epoch {epoch} does not follow; "
                f"expected {expected}.",
            )
        return None

    def update(self, header: BatchHeader, base_offset: int) -> None:
        """Record that a batch of an idempotent producer was appended at `base_offset`."""
        entry = self.producers.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            entry = self.producers[header.producer_id] = ProducerEntry(header.producer_epoch)
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

    def forget_from(self, offset: int) -> set[int]:
        """Remove every producer with a batch at `offset` or later. Returns the removed ids; their state must be rebuilt from the log."""
        gone = {producer_id for producer_id, entry in self.producers.items() if entry.batches[-1].last_offset >= offset}
        for producer_id in gone:
            del self.producers[producer_id]
        return gone

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Remove producers that have been idle for `expiration_ms` (producer.id.expiration.ms).

        As in Kafka, idle time counts from the max_timestamp of the producer's last batch, which a client may set.
        """
        idle = [
            producer_id
            for producer_id, entry in self.producers.items()
            if now_ms - entry.batches[-1].max_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.producers[producer_id]

    def longest_idle_since_ms(self) -> int | None:
        """Return the smallest max_timestamp (ms) of the producers' last batches, None if there are no producers."""
        return min((entry.batches[-1].max_timestamp for entry in self.producers.values()), default=None)

    def before(self, offset: int) -> dict[int, ProducerEntry]:
        """Return the state of the producers that have a remembered batch below `offset`, by producer id.

        The caller saves these states when it moves the log start to `offset`, because they cannot be rebuilt from the batches that remain.
        """
        return {i: entry for i, entry in self.producers.items() if entry.batches[0].first_offset < offset}

    def restore(self, producers: Mapping[int, ProducerEntry]) -> None:
        """Add copies of the states in `producers`, which maps producer ids to states. They replace states with the same ids."""
        for producer_id, original in producers.items():
            entry = self.producers[producer_id] = ProducerEntry(original.epoch)
            entry.batches = list(original.batches)

    def clear(self) -> None:
        self.producers.clear()


def last_sequence(header: BatchHeader) -> int:
    """Return the sequence number of the last record in a batch. Sequence numbers continue with 0 after 2147483647 (P-21)."""
    return (header.base_sequence + header.last_offset_delta) & _SEQUENCE_MASK
