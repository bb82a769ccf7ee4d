"""What a compacted partition must still tell: of each key the last value, under its offset, and a tombstone for its time (KIP-534).

Learns the records that are committed; looks at replicas and at what a consumer has read. Every check raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import NamedTuple

from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.records.batch import Record, records

Key = bytes | None


class Told(NamedTuple):
    """One committed record."""

    key: Key
    value: bytes | None
    timestamp: int


class Keys:
    """The committed records of one partition. delete_retention_ms: for how long a tombstone stays at least."""

    def __init__(self, name: str, delete_retention_ms: int) -> None:
        self._name = name
        self._delete_retention_ms = delete_retention_ms
        self._told: dict[int, Told] = {}
        self._offsets: dict[Key, list[int]] = {}
        """Key to where it was written, ascending."""

    def learn(self, committed: Iterable[Record]) -> None:
        for record in committed:
            self._told[record.offset] = Told(record.key, record.value, record.timestamp)
            self._offsets.setdefault(record.key, []).append(record.offset)

    def check(self, log: ReplicaLog, end_offset: int, now_ms: int) -> None:
        """That a replica has the last record of each key, if it lies below `end_offset`, and a key once in what was cleaned.

        As in Kafka a follower that comes late takes over what its leader has cleaned already: of a key whose last record it does not
        have yet it may have none, and one whose tombstone the leader has forgotten stays.
        """
        there = read(log, end_offset)
        found = [record.offset for record in there]
        assert all(before < after for before, after in pairwise(found)), f"{self._name}: out of order: {found}"
        cleaned: set[Key] = set()
        for record in there:
            self.check_record(record)
            assert record.key not in cleaned or record.offset >= log.first_dirty_offset, (
                f"{self._name}: {record.key!r} is there again at {record.offset}, below {log.first_dirty_offset}"
            )
            cleaned.add(record.key)
        held = set(found)
        for key, offsets in self._offsets.items():
            last = offsets[-1]
            assert last >= end_offset or last in held or self._may_be_gone(last, now_ms), (
                f"{self._name}: the last value of {key!r}, at {last}, is gone"
            )

    def check_record(self, record: Record) -> None:
        """That a record is the one that was committed at its offset. What was cleaned before it was learned is not known."""
        told = self._told.get(record.offset)
        assert told is None or (told.key, told.value) == (record.key, record.value), (
            f"{self._name}: {told} at {record.offset} became {record}"
        )

    def check_read(self, seen: Mapping[Key, int]) -> None:
        """seen: key to the last offset at which somebody, who has read to the end, has met it."""
        for key, offsets in self._offsets.items():
            gone = self._told[offsets[-1]].value is None
            assert gone or seen.get(key) == offsets[-1], (
                f"{self._name}: {key!r} was read at {seen.get(key)}, its last value is at {offsets[-1]}"
            )

    def _may_be_gone(self, offset: int, now_ms: int) -> bool:
        told = self._told[offset]
        return told.value is None and now_ms >= told.timestamp + self._delete_retention_ms


def read(log: ReplicaLog, end_offset: int) -> list[Record]:
    """The records of a log below `end_offset`."""
    return [
        record
        for position, header in log.batches(log.log_start_offset)
        if header.base_offset < end_offset
        for record in records(log.store.read(position, header.size))
        if record.offset < end_offset
    ]
