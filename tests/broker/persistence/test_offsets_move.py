"""Committed offsets of a data directory of an earlier version, which kept them in its metadata log, move to `__consumer_offsets`."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.group.offsets import CommittedOffset
from kafkaproto.broker.group.records import GroupRecord, OffsetRecord, parse
from kafkaproto.broker.persistence import records
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.broker.testing.records import stored
from tests.support.broker.processes import Processes, commit, committed

OFFSETS = "__consumer_offsets"
GROUPS = ("first", "second", "third")


def left(offset: int, at_ms: int = 1000) -> dict[tuple[str, int], CommittedOffset]:
    return {("t", 0): CommittedOffset(offset, 3, "note", at_ms)}


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    """A folder whose metadata log has the commits of three groups, as earlier versions wrote them; it has no offsets topic."""
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    persistence = processes.cluster.state.persistence
    assert persistence is not None
    for offset, group in enumerate(GROUPS):
        persistence.metadata_log.note(records.commit(group, "consumer" if offset else None, left(offset)))
    assert OFFSETS not in processes.cluster.state.controller.image.topics
    return processes


def written(cluster: VirtualCluster) -> list[OffsetRecord | GroupRecord]:
    parsed = [parse(record.key or b"", record.value) for record in stored(cluster.state, OFFSETS, None)]
    return [record for record in parsed if record is not None]


def test_restarts_do_not_copy_moved_offsets_to_the_offsets_topic_a_second_time(processes: Processes) -> None:
    for _ in range(3):
        after = processes.crash_and_restart()
        assert [committed(after, group, "t") for group in GROUPS] == [0, 1, 2]
        assert sorted((r.group_id, r.committed) for r in written(after) if isinstance(r, OffsetRecord)) == [
            (group, left(offset)["t", 0]) for offset, group in enumerate(GROUPS)
        ]
    assert {g.group_id: g.protocol_type for g in after.state.groups.list_groups()} == {
        "first": "",
        "second": "consumer",
        "third": "consumer",
    }


@pytest.mark.parametrize("moved", range(4))
def test_broker_killed_while_moving_offsets_to_the_offsets_topic_loses_no_offset(
    processes: Processes, monkeypatch: pytest.MonkeyPatch, moved: int
) -> None:
    """The process is killed after the offsets of `moved` groups are in the topic, and before the last of them leaves the metadata log."""
    processes.crash()
    left_in_log = []

    def note_if_possible(self: object, fact: dict[str, object]) -> None:
        left_in_log.append(fact)
        if len(left_in_log) >= moved:
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        if moved:
            patch.setattr("kafkaproto.broker.persistence.metadata_log.MetadataLog.note_if_possible", note_if_possible)
            with pytest.raises(KeyboardInterrupt):
                processes.restart()
    after = processes.restart()
    assert [committed(after, group, "t") for group in GROUPS] == [0, 1, 2]
    assert commit(after, "first", "t", 50) == 0
    after = processes.crash_and_restart()
    assert [committed(after, group, "t") for group in GROUPS] == [50, 1, 2]


def test_broker_killed_within_the_append_linger_after_moving_offsets_loses_none(
    tmp_path: Path, processes: Processes
) -> None:
    """The group coordinator in Java collects records for a second, but appends those of moved offsets at once."""
    processes.crash()
    config = {"group.coordinator.append.linger.ms": "1000", "group.coordinator.rebalance.protocols": "classic,consumer"}
    Processes(tmp_path, config=config).crash()
    after = processes.restart()
    assert [committed(after, group, "t") for group in GROUPS] == [0, 1, 2]


def test_committed_offsets_stay_in_metadata_log_if_offsets_topic_cannot_be_created(
    tmp_path: Path, processes: Processes, caplog: pytest.LogCaptureFixture
) -> None:
    processes.crash()
    impossible = Processes(tmp_path, config={"offsets.topic.replication.factor": "3"})
    assert [r.getMessage() for r in caplog.records if "cannot be written to __consumer_offsets" in r.getMessage()]
    impossible.crash_and_restart()
    impossible.crash()
    after = processes.restart()
    assert [committed(after, group, "t") for group in GROUPS] == [0, 1, 2]


def test_group_deleted_after_migration_to_the_offsets_topic_stays_deleted_at_restart(processes: Processes) -> None:
    after = processes.crash_and_restart()
    broker = after.state.nodes[0]
    assert broker.groups.commits.deletions.delete_groups(["second"], after.now_ms) == {"second": 0}
    after = processes.crash_and_restart()
    assert committed(after, "second", "t") == -1
    assert {g.group_id for g in after.state.groups.list_groups()} == {"first", "third"}
