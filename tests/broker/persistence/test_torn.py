"""Recovery from partial writes of a killed process and from changed bytes on the disk."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.persistence.wal import WriteAheadLog
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.broker.processes import Processes, values, write
from tests.support.scene import replica


def segment(path: Path) -> Path:
    [segment_path] = (path / "topics").glob("*/*.log")
    return segment_path


def cuts(processes: Processes) -> list[str]:
    return [event.facts["cut"] for event in processes.cluster.state.journal.events("recovery")]


def test_batch_cut_off_at_any_byte_is_removed_at_restart(tmp_path: Path) -> None:
    first = Processes(tmp_path / "original")
    first.cluster.topic("t")
    write(first.cluster, "t", b"a")
    whole = segment(first.path).stat().st_size
    write(first.cluster, "t", b"b")
    first.crash()
    for size in range(whole, segment(first.path).stat().st_size):
        path = tmp_path / str(size)
        shutil.copytree(first.path, path)
        with segment(path).open("r+b") as file:
            file.truncate(size)
        processes = Processes(path)
        assert values(processes.cluster, "t") == [(0, b"a")]
        torn = size - whole
        expected = [f"{torn} damaged bytes of t-0, which ends at offset 1 now"] if torn else []
        assert cuts(processes) == expected
        assert write(processes.cluster, "t", b"c").base_offset == 1
        assert values(processes.crash_and_restart(), "t") == [(0, b"a"), (1, b"c")]
        processes.crash()


@pytest.mark.parametrize("is_reported", [False, True], ids=["since the last state", "before it"])
def test_restart_truncates_the_log_at_the_first_batch_with_a_corrupt_byte(tmp_path: Path, is_reported: bool) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_bytes="200")
    for i in range(6):
        write(processes.cluster, "t", b"%d" % i * 60)
    if is_reported:
        processes.crash_and_restart()
    processes.crash()
    files = sorted((tmp_path / "topics").glob("*/*.log"))
    data = bytearray(files[2].read_bytes())
    data[-5] ^= 1
    files[2].write_bytes(data)
    processes.restart()
    remaining = values(processes.cluster, "t")
    assert [offset for offset, _ in remaining] == list(range(len(remaining)))
    assert 0 < len(remaining) < 6
    assert len(cuts(processes)) == 1
    assert not any(path.exists() for path in files[3:])
    assert write(processes.cluster, "t", b"x").base_offset == len(remaining)
    assert values(processes.crash_and_restart(), "t") == [*remaining, (len(remaining), b"x")]


def test_batch_checksums_are_not_verified_at_a_start_after_a_clean_stop(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    processes.end()
    data = bytearray(segment(tmp_path).read_bytes())
    data[-1] ^= 1
    segment(tmp_path).write_bytes(data)
    assert replica(processes.restart(), 0).log.log_end_offset == 1
    assert replica(processes.crash_and_restart(), 0).log.log_end_offset == 0


def test_metadata_entry_cut_off_at_any_byte_is_ignored_at_restart(tmp_path: Path) -> None:
    path = tmp_path / "facts"
    facts = WriteAheadLog(path)
    facts.append({"kind": "a"})
    whole = facts.size_bytes
    facts.append({"kind": "b", "text": "ü"})
    facts.close()
    data = path.read_bytes()
    for size in range(whole, len(data)):
        path.write_bytes(data[:size])
        torn = WriteAheadLog(path)
        assert (torn.records, torn.cut_bytes) == ([{"kind": "a"}], size - whole)
        torn.append({"kind": "c"})
        torn.close()
        again = WriteAheadLog(path)
        assert (again.records, again.cut_bytes) == ([{"kind": "a"}, {"kind": "c"}], 0) or size - whole > 20
        again.close()


def test_broker_refuses_to_start_if_the_metadata_log_is_damaged_before_valid_entries(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    processes.cluster.topic("u")
    processes.crash()
    path = tmp_path / "facts"
    whole = path.read_bytes()
    for at in (0, 4, 9, len(whole) // 2):
        data = bytearray(whole)
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(ConfigError, match="its file 'facts' cannot be read: the metadata record at byte"):
            processes.restart()
        assert path.read_bytes() == data
    path.write_bytes(whole)
    assert values(processes.restart(), "t") == [(0, b"a")]


@pytest.mark.parametrize("remaining_bytes", [0, 100, None], ids=["empty", "most of them gone", "all gone"])
def test_records_of_a_topic_missing_in_the_metadata_log_are_not_deleted(
    tmp_path: Path, remaining_bytes: int | None
) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    processes.crash()
    path = tmp_path / "facts"
    whole = path.read_bytes()
    if remaining_bytes is None:
        path.unlink()
    else:
        path.write_bytes(whole[:remaining_bytes])
    with pytest.raises(ConfigError, match="belongs to no topic in the file 'facts'"):
        processes.restart()
    path.write_bytes(whole)
    assert values(processes.restart(), "t") == [(0, b"a")]


def test_interrupted_topic_deletion_is_completed_at_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    [folder] = (tmp_path / "topics").iterdir()
    shutil.copytree(folder, tmp_path.parent / "copy")
    processes.cluster.state.controller.delete_topic("t")
    shutil.move(tmp_path.parent / "copy", folder)
    after = processes.crash_and_restart()
    assert [path.name for path in (tmp_path / "topics").iterdir()] == [f"{folder.name}-delete"]
    after.advance(60_000)  # log.segment.delete.delay.ms
    assert not list((tmp_path / "topics").iterdir())


def topic_on(cluster: VirtualCluster, name: str, broker_id: int) -> None:
    """Create a topic with one partition whose only replica is on this broker."""
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic(name, -1, -1, {0: [broker_id]}, {}))
    cluster.run()


def test_deleting_a_topic_while_its_broker_is_stopped_deletes_the_topic_files(tmp_path: Path) -> None:
    """Found by seed 8473 of the simulation: such records, next to a partial metadata entry, looked like records of an unknown topic."""
    processes = Processes(tmp_path, brokers=2)
    topic_on(processes.cluster, "kept", 0)
    topic_on(processes.cluster, "t", 1)
    write(processes.cluster, "t", b"a")
    processes.cluster.state.stop_broker(1)
    processes.cluster.state.controller.delete_topic("t")
    [renamed] = (tmp_path / "topics").iterdir()
    assert renamed.name.endswith("-0-delete")
    processes.crash()
    with (tmp_path / "facts").open("ab") as facts:
        facts.write(b"torn")
    cluster = processes.restart()
    assert set(cluster.state.controller.image.topics) == {"kept"}


def test_topic_deleted_while_its_broker_was_stopped_can_be_created_again(tmp_path: Path) -> None:
    cluster = Processes(tmp_path, brokers=2).cluster
    topic_on(cluster, "t", 1)
    write(cluster, "t", b"a", b"b")
    cluster.state.stop_broker(1)
    cluster.state.controller.delete_topic("t")
    cluster.state.start_broker(1)
    topic_on(cluster, "t", 1)
    assert write(cluster, "t", b"c").base_offset == 0
    assert values(cluster, "t") == [(0, b"c")]


def test_files_of_other_programs_in_the_topics_folder_are_left_unchanged(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    [folder] = (tmp_path / "topics").iterdir()
    segment_name = segment(tmp_path).name
    topics = tmp_path / "topics"
    names = ["notes.txt", "mine-delete/notes.txt", f"mine/{segment_name}", f"{folder.name}/notes.txt"]
    for path in map(topics.joinpath, names):
        path.parent.mkdir(exist_ok=True)
        path.write_text("not a record")
    assert values(processes.crash_and_restart(), "t") == [(0, b"a")]
    processes.cluster.state.controller.delete_topic("t")
    processes.crash_and_restart().advance(60_000)  # log.segment.delete.delay.ms
    names[-1] = f"{folder.name}-delete/notes.txt"  # the folder was renamed
    assert sorted(str(path.relative_to(topics)) for path in topics.rglob("*") if path.is_file()) == sorted(names)


@pytest.mark.parametrize("is_reported", [False, True], ids=["since the last state", "before it"])
def test_restart_truncates_the_log_at_a_segment_file_missing_between_other_files(
    tmp_path: Path, is_reported: bool
) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_bytes="200")
    for i in range(6):
        write(processes.cluster, "t", b"%d" % i * 60)
    if is_reported:
        processes.crash_and_restart()
    processes.crash()
    sorted((tmp_path / "topics").glob("*/*.log"))[2].unlink()
    processes.restart()
    remaining = values(processes.cluster, "t")
    assert 0 < len(remaining) < 6 and [offset for offset, _ in remaining] == list(range(len(remaining)))
    assert len(cuts(processes)) == 1
    assert write(processes.cluster, "t", b"x").base_offset == len(remaining)
    assert values(processes.crash_and_restart(), "t") == [*remaining, (len(remaining), b"x")]


def test_metadata_entry_that_cannot_be_written_completely_is_not_persisted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = WriteAheadLog(tmp_path / "facts")
    facts.append({"number": 1})
    size = facts.size_bytes
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:5], at))
    with pytest.raises(StorageError):
        facts.append({"number": 2})
    monkeypatch.undo()
    assert (tmp_path / "facts").stat().st_size == size
    facts.append({"number": 3})
    facts.close()
    assert WriteAheadLog(tmp_path / "facts").records == [{"number": 1}, {"number": 3}]


def test_metadata_log_keeps_old_entries_and_accepts_new_entries_if_a_rewrite_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = WriteAheadLog(tmp_path / "facts")
    facts.append({"number": 1})

    def no_descriptors(*_: object) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", no_descriptors)
        with pytest.raises(StorageError, match="Too many open files"):
            facts.replace([{"number": 2}])
    facts.append({"number": 3})
    facts.close()
    assert WriteAheadLog(tmp_path / "facts").records == [{"number": 1}, {"number": 3}]
