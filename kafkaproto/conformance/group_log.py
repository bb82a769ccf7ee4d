"""The records of one group in its partition of the offsets topic, and their batches, as conformance tests read them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group
from kafkaproto.conformance.internal_topics import read_to_the_end
from kafkaproto.conformance.scene import read, wait_until
from kafkaproto.coordinator_records import read_record
from kafkaproto.records.batch import batches, records
from kafkaproto.records.record import Record

OFFSET, CLASSIC_GROUP, GROUP, TOPICS, MEMBER, ASSIGNMENT_EPOCH, TARGET, CURRENT, REGEX = 1, 2, 3, 4, 5, 6, 7, 8, 16
"""The types of records about a group. Each type is the int16 at the start of the record's key."""

LoggedRecord = tuple[str, tuple[str, int] | None, int | None]
"""A record of the offsets topic: (group id, partition, offset). `OffsetLog.of_groups` describes these."""


class GroupLog:
    """Reads the records of a group in its partition of the offsets topic.

    Each call of `new` or `kinds` returns only the records that were written since the previous call of one of these two methods. The first call
    returns the records that were written since this object was created.
    """

    def __init__(self, group: Group) -> None:
        self.group = group
        self._offset = 0
        self.new()

    def new(self) -> list[tuple[int, str, int | None, Any]]:
        """Return (type, member id, version, value) of each record of the group that was written since the last call of `new` or `kinds`.

        The type is that of the record's key, such as GROUP; the version is that of its value. Version and value are None for a tombstone. The member
        id is "" if the record is not about a member.
        """
        new_records = []
        for record in self._read_to_the_end():
            assert record.key is not None
            key, value = read_record(OFFSETS_TOPIC, record.key, record.value)
            record_key: Any = key
            if self.group.id in (getattr(record_key, "group_id", None), getattr(record_key, "group", None)):
                value_version = None if record.value is None else _number(record.value)
                new_records.append((_number(record.key), getattr(record_key, "member_id", ""), value_version, value))
        return new_records

    def _read_to_the_end(self) -> Iterator[Record]:
        for record in read_to_the_end(self.group.offsets, self.group.index, self._offset):
            self._offset = record.offset + 1
            yield record

    def kinds(self) -> list[tuple[int, str, int | None]]:
        """Return (type, member id, version) of each record of the group that was written since the last call of `new` or `kinds`.

        The type is that of the record's key, such as GROUP; the version is that of its value, None for a tombstone. The member id is "" if the record
        is not about a member.
        """
        return [record[:3] for record in self.new()]


class OffsetLog:
    """Reads the batches that contain records of a group's committed offsets. The group must be in partition 0 of the offsets topic."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self._offset = int(read(group.offsets, 0, max_bytes=0, partition_max=0).high_watermark)

    def new(self) -> list[list[tuple[str, int]]]:
        """Return one list of (topic, partition) for each new batch that contains committed offsets of the group.

        A batch is new if it was written since the last call or, at the first call, since this object was created. The list has the partition of each
        of the group's offset records in the batch, in the order of the records. Tombstones are included.
        """
        own_keys = [[key for _, key, _ in batch if key is not None] for batch in self._new_batches([self.group.id])]
        return [keys for keys in own_keys if keys]

    def of_groups(self, groups: Iterable[Group], count: int = 1) -> list[list[LoggedRecord]]:
        """Wait for `count` new records of some groups in partition 0 of the offsets topic. Returns a list with these records for each new batch.

        The record of a committed offset is (group id, (topic, partition), offset), and its tombstone is (group id, (topic, partition), None). The
        tombstone of a record about the group itself is (group id, None, None), and any other such record is (group id, None, -1). A record is new if
        it was written since the last call of `new` or `of_groups`.
        """
        group_ids = [group.id for group in groups]
        new_batches: list[list[LoggedRecord]] = []

        def is_complete() -> bool:
            new_batches.extend(self._new_batches(group_ids))
            return sum(map(len, new_batches)) >= count

        wait_until(
            self.group.subject, is_complete, f"the offsets topic has {count} new records of {len(group_ids)} groups"
        )
        return new_batches

    def _new_batches(self, group_ids: Sequence[str]) -> list[list[LoggedRecord]]:
        response = read(self.group.offsets, self._offset)
        assert response.error_code == 0
        self._offset = int(response.high_watermark)
        all_batches = [
            [_logged(record) for record in records(each.view)]
            for each in batches(bytes(response.records))
            if not each.header.is_control
        ]
        own_batches = [[record for record in batch if record[0] in group_ids] for batch in all_batches]
        return [batch for batch in own_batches if batch]


def _logged(record: Record) -> LoggedRecord:
    assert record.key is not None
    key, value = read_record(OFFSETS_TOPIC, record.key, record.value)
    record_key: Any = key
    if _number(record.key) == OFFSET:
        return record_key.group, (record_key.topic, record_key.partition), getattr(value, "offset", None)
    group_id = record_key.group if _number(record.key) == CLASSIC_GROUP else record_key.group_id
    return group_id, None, None if record.value is None else -1


def _number(data: bytes | bytearray | memoryview) -> int:
    [number] = struct.unpack_from(">h", data)
    return int(number)
