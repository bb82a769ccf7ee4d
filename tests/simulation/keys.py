"""The required contents of a compacted partition: the last value of each key, and a tombstone for its retention time (KIP-534).

It learns committed records, and inspects replicas and what a consumer has read. Every check raises AssertionError.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.records.batch import Record, records

Key = bytes | None


class CommittedRecord(NamedTuple):
    """A committed record."""

    key: Key
    value: bytes | None
    timestamp: int


class Keys:
    """The committed records of one partition. delete_retention_ms: the minimum time that a tombstone stays."""

    def __init__(self, name: str, delete_retention_ms: int) -> None:
        self._name = name
        self.delete_retention_ms = delete_retention_ms
        self._records_by_offset: dict[int, CommittedRecord] = {}
        self._offsets: dict[Key, list[int]] = {}
        """Maps a key to its offsets, ascending, without those of transactions that are open or aborted."""
        self._open: dict[int, list[tuple[Key, int]]] = {}
        """Maps the base offset of a batch of an open transaction to its keys and offsets."""
        self._aborted: set[int] = set()
        """The offsets of the records of aborted transactions."""

    def learn(self, base_offset: int, batch: Iterable[Record], *, is_open: bool) -> None:
        """Learn the records of a batch. is_open: whether they belong to a transaction, which is not decided yet."""
        keys = []
        for record in batch:
            self._records_by_offset[record.offset] = CommittedRecord(record.key, record.value, record.timestamp)
            keys.append((record.key, record.offset))
        self._open[base_offset] = keys
        if not is_open:
            self.decide({base_offset: True})

    def decide(self, decisions: Mapping[int, bool]) -> None:
        """Count the records of batches whose transaction has ended. decisions: maps base offsets to whether the transaction is committed."""
        for base_offset, is_committed in decisions.items():
            for key, offset in self._open.pop(base_offset, ()):
                if is_committed:
                    insort(self._offsets.setdefault(key, []), offset)
                else:
                    self._aborted.add(offset)

    def check(self, log: ReplicaLog, end_offset: int, now_ms: int) -> None:
        """Check that a replica has the last committed record of each key below `end_offset`.

        In its cleaned part each key occurs once, and no record of an aborted transaction is left (KIP-98).

        After a kill a log may have committed records that this object has not learned yet: from `end_offset` on, or of a transaction whose marker was
        written just before the kill. A key whose last record was cleaned because of such a record is not missing.

        As in Kafka, a follower that catches up copies what its leader has already cleaned. It may lack a key whose last record it does not
        have yet, and it keeps a key whose tombstone the leader has removed.
        """
        everything = read(log, log.log_end_offset)
        records_below_end = [record for record in everything if record.offset < end_offset]
        record_offsets = [record.offset for record in records_below_end]
        assert all(before < after for before, after in pairwise(record_offsets)), (
            f"{self._name}: out of order: {record_offsets}"
        )
        cleaned: set[Key] = set()
        for record in records_below_end:
            self.check_record(record)
            assert record.key not in cleaned or record.offset >= log.first_dirty_offset, (
                f"{self._name}: {record.key!r} is repeated at {record.offset}, below {log.first_dirty_offset}"
            )
            assert record.offset not in self._aborted or record.offset >= log.first_dirty_offset, (
                f"{self._name}: {record} of an aborted transaction is left below {log.first_dirty_offset}"
            )
            cleaned.add(record.key)
        present_offsets = set(record_offsets)
        undecided = {offset for keys in self._open.values() for _, offset in keys}
        unknown = (record for record in everything if record.offset >= end_offset or record.offset in undecided)
        replaced = {record.key for record in unknown if record.offset < log.first_dirty_offset}
        for key, offsets in self._offsets.items():
            last = offsets[-1]
            assert (
                last >= end_offset or last in present_offsets or key in replaced or self._may_be_gone(last, now_ms)
            ), f"{self._name}: the last value of {key!r}, at {last}, is missing"

    def check_record(self, record: Record) -> None:
        """Check that a record is the committed one of its offset. Records cleaned before they were learned are unknown."""
        committed_record = self._records_by_offset.get(record.offset)
        assert committed_record is None or (committed_record.key, committed_record.value) == (
            record.key,
            record.value,
        ), f"{self._name}: {committed_record} at {record.offset} became {record}"

    def check_read(self, seen: Mapping[Key, Sequence[int]]) -> None:
        """Check a consumer that has read to the end. seen: key to the offsets at which the consumer read it, ascending."""
        for key, offsets in self._offsets.items():
            is_tombstone = self._records_by_offset[offsets[-1]].value is None
            last = max((offset for offset in seen.get(key, ()) if offset not in self._aborted), default=None)
            assert is_tombstone or last == offsets[-1], (
                f"{self._name}: {key!r} was read at {last}, its last value is at {offsets[-1]}"
            )

    def _may_be_gone(self, offset: int, now_ms: int) -> bool:
        committed_record = self._records_by_offset[offset]
        return committed_record.value is None and now_ms >= committed_record.timestamp + self.delete_retention_ms


def read(log: ReplicaLog, end_offset: int) -> list[Record]:
    """Return the records of a log below `end_offset`, without markers."""
    return [
        record
        for position, header in log.batches(log.log_start_offset)
        if header.base_offset < end_offset and not header.is_control
        for record in records(log.store.read(position, header.size))
        if record.offset < end_offset
    ]
