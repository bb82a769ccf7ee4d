"""What a partition remembers of idempotent producers: `ProducerStateManager` in Kafka (KIP-98, KIP-360; P-17 to P-21).

Per producer id the epoch and the last five batches. A batch that is one of them again is a duplicate, the next in
sequence is accepted, everything else is refused.
Must never know: the log, transactions' coordinators, a clock (expiry is told the time).
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
    """One appended batch of a producer; sequences and offsets are inclusive."""

    first_sequence: int
    last_sequence: int
    first_offset: int
    last_offset: int
    max_timestamp: int


class ProducerEntry:
    """One producer: its epoch and at most five batches of that epoch, the newest last."""

    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[RememberedBatch] = []


class ProducerStates:
    """All producers that wrote to one replica's log and are not expired, by producer id."""

    __slots__ = ("producers",)

    def __init__(self) -> None:
        self.producers: dict[int, ProducerEntry] = {}

    def check(self, header: BatchHeader) -> RememberedBatch | None:
        """Whether a client's batch with a producer id may be appended; changes nothing.

        None: append it. A remembered batch: it is that one again (P-18), answer with its offsets.
        Raises InvalidBatch with error 47 for an older epoch (P-19), 45 for a sequence that does not follow (P-20).
        """
        entry = self.producers.get(header.producer_id)
        if entry is None:
            return None  # any sequence: what this producer wrote before may be long gone
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
        """Remember a batch with a producer id that was appended at `base_offset`."""
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
        """Forget every producer with a batch at `offset` or later; their ids, to be learnt again from the log."""
        gone = {producer_id for producer_id, entry in self.producers.items() if entry.batches[-1].last_offset >= offset}
        for producer_id in gone:
            del self.producers[producer_id]
        return gone

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Forget producers that are idle for `expiration_ms` (producer.id.expiration.ms).

        As in Kafka, idle counts from the max_timestamp of the producer's last batch, which a client may set.
        """
        idle = [
            producer_id
            for producer_id, entry in self.producers.items()
            if now_ms - entry.batches[-1].max_timestamp >= expiration_ms
        ]
        for producer_id in idle:
            del self.producers[producer_id]

    def longest_idle_since_ms(self) -> int | None:
        """The earliest of the producers' last timestamps, None without producers."""
        return min((entry.batches[-1].max_timestamp for entry in self.producers.values()), default=None)

    def before(self, offset: int) -> dict[int, ProducerEntry]:
        """The producers with a remembered batch below `offset`: a log that starts there tells them no longer."""
        return {i: entry for i, entry in self.producers.items() if entry.batches[0].first_offset < offset}

    def restore(self, producers: Mapping[int, ProducerEntry]) -> None:
        """Remember these; the entries stay the giver's own."""
        for producer_id, given in producers.items():
            entry = self.producers[producer_id] = ProducerEntry(given.epoch)
            entry.batches = list(given.batches)

    def clear(self) -> None:
        self.producers.clear()


def last_sequence(header: BatchHeader) -> int:
    """The sequence number of the last record; 2147483647 is followed by 0 (P-21)."""
    return (header.base_sequence + header.last_offset_delta) & _SEQUENCE_MASK
