"""Read requests of groups while records of their partition are not replicated, after the partition was compacted (GC-66)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group.committed_groups import CommittedGroups
from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.group.records import KAFKA_3_9, offset_entry
from kafkaproto.broker.group.storage import GroupStorage
from kafkaproto.broker.replication.coordinator_log import LoggedRecord

KEY = ("topic", 0)


class Log:
    """One partition of the offsets topic. records: (offset, key, value) of those that compaction has not removed."""

    def __init__(self) -> None:
        self.records: list[LoggedRecord] = []
        self.end = self.watermark = self.compacted = 0

    def append(self, group_id: str, offset: int | None) -> None:
        committed = None if offset is None else CommittedOffset(offset, -1, "", 0)
        key, value = offset_entry(group_id, KEY, committed, KAFKA_3_9)
        self.records.append(LoggedRecord(self.end, key, value))
        self.end += 1

    def read(self, index: int, start_offset: int = 0, end_offset: int | None = None) -> list[LoggedRecord]:
        end = self.end if end_offset is None else end_offset
        return [record for record in self.records if start_offset <= record.offset < end]

    def high_watermark(self, index: int) -> int:
        return self.watermark

    def end_offset(self, index: int) -> int:
        return self.end

    def compacted_to(self, index: int) -> int:
        return self.compacted


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
def committed(log: Log) -> CommittedGroups:
    groups = CommittedGroups(GroupStorage(log, lambda group_id: 0, is_new_coordinator=True))  # type: ignore[arg-type]
    groups.add(0)
    return groups


def fetched(committed: CommittedGroups, group_id: str) -> int | None:
    assert committed.is_behind(group_id)
    offset = committed.offsets(group_id).get(KEY)
    return None if offset is None else offset.offset


@pytest.mark.rule("GC-66")
def test_offset_reads_replay_only_records_between_the_last_and_new_high_watermark(
    log: Log, committed: CommittedGroups
) -> None:
    log.append("a", 5)
    log.append("a", 6)
    assert fetched(committed, "a") is None
    log.watermark = 1
    assert fetched(committed, "a") == 5
    log.records = log.records[1:]  # what was replayed is not read again
    log.append("a", 7)
    log.watermark = 2
    assert fetched(committed, "a") == 6
    log.watermark = 3
    assert not committed.is_behind("a")


@pytest.mark.rule("GC-66")
def test_deleted_offset_does_not_come_back_after_compaction_removed_its_tombstone(
    log: Log, committed: CommittedGroups
) -> None:
    log.append("a", 5)
    log.append("b", 1)
    log.watermark = 1
    assert fetched(committed, "a") == 5
    log.append("a", None)
    log.append("b", 2)
    log.records = log.records[-1:]
    log.watermark = log.compacted = 4
    log.append("b", 3)
    assert (fetched(committed, "a"), fetched(committed, "b")) == (None, 2)


@pytest.mark.rule("GC-66")
def test_coordinator_before_kip_848_answers_reads_without_replaying_the_log(log: Log) -> None:
    groups = CommittedGroups(GroupStorage(log, lambda group_id: 0))  # type: ignore[arg-type]
    groups.add(0)
    log.append("a", 5)
    assert not groups.is_behind("a") and list(groups.names()) == []
