"""Deletion of the files of deleted segments and topics after `file.delete.delay.ms` and `log.segment.delete.delay.ms`, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import kafkaproto.testing
from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.log.file_deletion import DelayedDeletion
from kafkaproto.broker.log.files import FileRange
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.broker.processes import Processes, values, write
from tests.support.scene import fill, replica

DELAY = "log.segment.delete.delay.ms"
ONE_EACH = "130"


def started(path: Path, delay_ms: int = 4000, **options: str) -> Processes:
    """Return a cluster with a data directory. delay_ms: its `log.segment.delete.delay.ms`. options: further settings, with underscores for dots."""
    return Processes(path, config={DELAY: str(delay_ms)} | {k.replace("_", "."): v for k, v in options.items()})


def filled(cluster: VirtualCluster, topic: str, **configs: str) -> None:
    """Create a topic with four segments of one record each."""
    cluster.topic(topic, segment_bytes=ONE_EACH, **configs)
    for value in (b"a", b"b", b"c", b"d"):
        write(cluster, topic, value * 60)


def delete_records(cluster: VirtualCluster, topic: str, offset: int) -> None:
    requested = [DeleteRecordsTopic(topic, [DeleteRecordsPartition(0, offset)])]
    [result] = cluster.connect().ask(DeleteRecordsRequest(requested, 1000), 2).topics[0].partitions
    assert result.error_code == 0


def change_delay(cluster: VirtualCluster, delay_ms: int) -> None:
    change(BrokerResource(cluster.state, -1), [Change(DELAY, 0, str(delay_ms))], strict_kip=True)
    cluster.run()


def suffixes(path: Path, cluster: VirtualCluster, topic: str) -> list[str]:
    """Return the last suffix of each file in the folder of partition 0 of a topic, in alphabetic order of the names."""
    folder = path / "topics" / f"{cluster.state.controller.image.topics[topic].topic_id.hex()}-0"
    return [file.suffix for file in sorted(folder.iterdir())]


def deleted_folders(path: Path) -> int:
    return len(list((path / "topics").glob("*-delete")))


def refuse(patched: pytest.MonkeyPatch, *methods: str, only: str = "") -> None:
    """Let methods of `Path`, such as "unlink", fail. only: they fail for paths that contain this text."""

    def refusing(change: Callable[..., None]) -> Callable[..., None]:
        def refused(path: Path, *args: Path) -> None:
            if only in str(path):
                raise PermissionError(13, "Permission denied", str(path))
            change(path, *args)

        return refused

    for method in methods:
        patched.setattr(Path, method, refusing(getattr(Path, method)))


TWO_OF_FOUR, LAST_TWO = [".deleted", ".deleted", ".log", ".log"], [".log", ".log"]


def expect_deletion(path: Path, cluster: VirtualCluster, topic: str, delay_ms: int) -> None:
    """Check that the files of the first two of four segments are renamed now, and deleted in exactly `delay_ms`."""
    assert suffixes(path, cluster, topic) == TWO_OF_FOUR
    cluster.advance(delay_ms - 1)
    assert suffixes(path, cluster, topic) == TWO_OF_FOUR
    cluster.advance(1)
    assert suffixes(path, cluster, topic) == LAST_TWO


@pytest.mark.rule("CF-29")
@pytest.mark.parametrize(("configs", "delay_ms"), [({"file_delete_delay_ms": "7000"}, 7000), ({}, 4000)])
def test_files_of_deleted_segments_are_deleted_after_file_delete_delay_ms(
    tmp_path: Path, configs: dict[str, str], delay_ms: int
) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t", **configs)
    delete_records(cluster, "t", 2)
    expect_deletion(tmp_path, cluster, "t", delay_ms)


@pytest.mark.rule("CF-29")
def test_segment_files_are_deleted_at_once_if_file_delete_delay_ms_is_0(tmp_path: Path) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t", file_delete_delay_ms="0")
    delete_records(cluster, "t", 2)
    assert suffixes(tmp_path, cluster, "t") == LAST_TWO


@pytest.mark.rule("CF-29")
def test_changed_file_delete_delay_applies_to_segments_deleted_after_the_change(tmp_path: Path) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t")
    delete_records(cluster, "t", 1)
    change_delay(cluster, 9000)
    delete_records(cluster, "t", 2)
    cluster.advance(4000)
    assert suffixes(tmp_path, cluster, "t") == [".deleted", *LAST_TWO]
    cluster.advance(4999)
    assert suffixes(tmp_path, cluster, "t") == [".deleted", *LAST_TWO]
    cluster.advance(1)
    assert suffixes(tmp_path, cluster, "t") == LAST_TWO


@pytest.mark.rule("CF-29")
def test_segments_replaced_by_compaction_are_deleted_after_file_delete_delay_ms(tmp_path: Path) -> None:
    cluster = started(tmp_path, log_cleaner_backoff_ms="500", log_cleaner_min_cleanable_ratio="0").cluster
    cluster.topic("t", segment_bytes=ONE_EACH, cleanup_policy="compact", file_delete_delay_ms="3000")
    fill(cluster, "t", *[build_batch([NewRecord(b"v" * 60, b"k", cluster.now_ms)])] * 4)
    cluster.advance(500)
    assert suffixes(tmp_path, cluster, "t") == [".deleted", ".deleted", ".deleted", ".log", ".cleaned"]
    cluster.advance(3000)
    assert suffixes(tmp_path, cluster, "t") == [".log", ".cleaned"]


@pytest.mark.rule("CF-29")
def test_segments_deleted_by_retention_are_deleted_after_file_delete_delay_ms(tmp_path: Path) -> None:
    cluster = started(tmp_path, log_retention_check_interval_ms="500").cluster
    filled(cluster, "t", retention_bytes="200")
    cluster.advance(500)
    expect_deletion(tmp_path, cluster, "t", 4000)


@pytest.mark.rule("CF-29")
def test_folder_of_a_deleted_topic_is_deleted_after_log_segment_delete_delay_ms(tmp_path: Path) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t", file_delete_delay_ms="9000")
    cluster.state.controller.delete_topic("t")
    filled(cluster, "t", file_delete_delay_ms="0")  # a new topic with the same name and another id
    cluster.advance(3999)
    assert deleted_folders(tmp_path) == 1
    cluster.advance(1)
    assert deleted_folders(tmp_path) == 0
    assert len(list((tmp_path / "topics").iterdir())) == 1
    assert len(values(cluster, "t")) == 4


@pytest.mark.rule("CF-29")
def test_raised_log_segment_delete_delay_applies_to_topics_deleted_before_the_change(tmp_path: Path) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t")
    cluster.state.controller.delete_topic("t")
    change_delay(cluster, 9000)
    cluster.advance(8999)
    assert deleted_folders(tmp_path) == 1
    cluster.advance(1)
    assert deleted_folders(tmp_path) == 0


@pytest.mark.rule("CF-29")
@pytest.mark.parametrize("crashes", [True, False])
def test_restart_deletes_renamed_files_and_restarts_the_delay_of_renamed_folders(tmp_path: Path, crashes: bool) -> None:
    processes = started(tmp_path)
    for topic in ("t", "u"):
        filled(processes.cluster, topic)
    delete_records(processes.cluster, "t", 2)
    processes.cluster.state.controller.delete_topic("u")
    processes.cluster.advance(3000)
    if crashes:
        processes.crash()
    else:
        processes.end()
    assert suffixes(tmp_path, processes.cluster, "t") == TWO_OF_FOUR
    after = processes.restart()
    assert suffixes(tmp_path, after, "t") == LAST_TWO
    assert [offset for offset, _ in values(after, "t")] == [2, 3]
    assert list(after.state.controller.image.topics) == ["t"]
    after.advance(3999)
    assert deleted_folders(tmp_path) == 1
    after.advance(1)
    assert deleted_folders(tmp_path) == 0
    assert [offset for offset, _ in values(processes.crash_and_restart(), "t")] == [2, 3]


@pytest.mark.rule("CF-29")
def test_response_can_be_sent_from_a_segment_file_that_was_renamed_or_deleted(tmp_path: Path) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t")
    store = replica(cluster, 0).log.store
    region = store.region(0, 100)
    assert isinstance(region, FileRange)
    sent = region.read()
    delete_records(cluster, "t", 2)
    assert region.read() == sent
    cluster.advance(4000)
    assert suffixes(tmp_path, cluster, "t") == LAST_TWO
    assert region.read() == sent


@pytest.mark.rule("CF-29")
def test_segment_file_that_cannot_be_deleted_is_logged_and_left_to_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = started(tmp_path)
    filled(processes.cluster, "t")
    delete_records(processes.cluster, "t", 1)
    with monkeypatch.context() as patched:
        refuse(patched, "unlink")
        processes.cluster.advance(4000)
    [message] = caplog.messages
    assert "00000000000000000000.log.deleted cannot be deleted: " in message
    assert "the next start with this data directory tries again" in message
    assert suffixes(tmp_path, processes.crash_and_restart(), "t") == [".log", *LAST_TWO]


UNKNOWN_PARTITION = f"{'f' * 32}-0"


@pytest.mark.rule("CF-29")
@pytest.mark.parametrize("left_behind", ["file", "folder of an unknown partition", "folder with the suffix -delete"])
def test_start_succeeds_although_leftovers_of_the_last_process_cannot_be_deleted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, left_behind: str
) -> None:
    processes = started(tmp_path, 0 if "-delete" in left_behind else 4000)
    filled(processes.cluster, "t")
    if left_behind == "file":
        delete_records(processes.cluster, "t", 1)
        [left_file] = (tmp_path / "topics").glob("*/*.deleted")
    else:
        suffix = "-delete" if "-delete" in left_behind else ""
        left_file = tmp_path / "topics" / (UNKNOWN_PARTITION + suffix) / f"{0:020d}.log"
        left_file.parent.mkdir()
        left_file.write_bytes(b"x")
    with monkeypatch.context() as patched:
        refuse(patched, "unlink", only=str(left_file))
        after = processes.crash_and_restart()
    assert len(values(after, "t")) == (3 if left_behind == "file" else 4)
    assert left_file.exists()
    [message] = caplog.messages
    assert str(left_file) in message and "the next start with this data directory tries again" in message
    processes.crash_and_restart()
    assert not left_file.exists()
    assert left_file.parent.exists() == (left_behind == "file")


@pytest.mark.rule("CF-29")
def test_start_empties_file_of_unfinished_compaction_that_cannot_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = started(tmp_path)
    filled(processes.cluster, "t")
    [folder] = (tmp_path / "topics").iterdir()
    unfinished = folder / f"{10_000:020d}.cleaned"
    unfinished.write_bytes(b"x")
    with monkeypatch.context() as patched:
        refuse(patched, "unlink", only=".cleaned")
        after = processes.crash_and_restart()
    assert unfinished.stat().st_size == 0
    assert [offset for offset, _ in values(after, "t")] == [0, 1, 2, 3]
    processes.crash_and_restart()
    assert not unfinished.exists()


@pytest.mark.rule("CF-29")
@pytest.mark.parametrize("methods", [("rename",), ("rename", "unlink")], ids=" and ".join)
def test_topic_is_deleted_completely_although_partition_folders_cannot_be_renamed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, methods: tuple[str, ...]
) -> None:
    processes = started(tmp_path)
    cluster = processes.cluster
    cluster.topic("t", partitions=3)
    for index in range(3):
        write(cluster, "t", b"a", index=index)
    with monkeypatch.context() as patched:
        refuse(patched, *methods)
        cluster.state.controller.delete_topic("t")
        cluster.run()
    folders_left = list((tmp_path / "topics").iterdir())
    assert len(folders_left) == 3 * ("unlink" in methods)
    assert all(
        any(f"{folder} cannot be deleted: " in message for message in caplog.messages) for folder in folders_left
    )
    after = processes.crash_and_restart()
    assert not list((tmp_path / "topics").iterdir())
    assert not after.state.controller.image.topics


@pytest.mark.rule("CF-29")
def test_segment_file_that_cannot_be_renamed_is_deleted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t")
    refuse(monkeypatch, "rename", only="topics")
    delete_records(cluster, "t", 2)
    assert suffixes(tmp_path, cluster, "t") == LAST_TWO


@pytest.mark.rule("CF-29")
@pytest.mark.parametrize("crashes", [True, False])
@pytest.mark.parametrize("only", ["/topics/", f"{0:020d}.log"], ids=["all files", "the first file"])
def test_deleted_records_do_not_return_if_files_cannot_be_renamed_or_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, only: str, crashes: bool
) -> None:
    processes = started(tmp_path)
    filled(processes.cluster, "t")
    with monkeypatch.context() as patched:
        refuse(patched, "rename", "unlink", only=only)
        delete_records(processes.cluster, "t", 2)
        assert [offset for offset, _ in values(processes.cluster, "t")] == [2, 3]
        if crashes:
            processes.crash()
        else:
            processes.end()
        after = processes.restart()
        assert [offset for offset, _ in values(after, "t")] == [2, 3]
    after = processes.crash_and_restart()
    assert [offset for offset, _ in values(after, "t")] == [2, 3]
    after.advance(4000)
    assert suffixes(tmp_path, after, "t") == LAST_TWO


@pytest.mark.rule("CF-29")
def test_retention_deletes_segment_files_that_it_could_not_delete_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = started(tmp_path, log_retention_check_interval_ms="500").cluster
    filled(cluster, "t", retention_bytes="200")
    with monkeypatch.context() as patched:
        refuse(patched, "rename", "unlink")
        cluster.advance(500)
    assert [offset for offset, _ in values(cluster, "t")] == [2, 3]
    assert suffixes(tmp_path, cluster, "t") == [".log"] * 4
    write(cluster, "t", b"e" * 60)
    cluster.advance(500)
    assert suffixes(tmp_path, cluster, "t") == [".deleted"] * 3 + LAST_TWO


@pytest.mark.rule("CF-29")
def test_cluster_reset_deletes_the_folders_of_deleted_topics_at_once(tmp_path: Path) -> None:
    with kafkaproto.testing.cluster(topics={"t": 2}, data_dir=tmp_path) as c:
        c.produce("t", [b"a"])
        for _ in range(2):
            c.clock.advance(86_400_000)
            c.reset()
            assert deleted_folders(tmp_path) == 0


@pytest.mark.rule("CF-29")
def test_closed_cluster_deletes_none_of_the_files_and_folders_that_it_renamed(tmp_path: Path) -> None:
    processes = started(tmp_path)
    for topic in ("t", "u"):
        filled(processes.cluster, topic)
    delete_records(processes.cluster, "t", 2)
    processes.cluster.state.controller.delete_topic("u")
    processes.end()
    processes.cluster.advance(4000)
    assert suffixes(tmp_path, processes.cluster, "t") == TWO_OF_FOUR
    assert deleted_folders(tmp_path) == 1


@pytest.mark.rule("CF-29")
def test_start_keeps_files_with_the_suffix_deleted_of_other_programs(tmp_path: Path) -> None:
    processes = started(tmp_path)
    filled(processes.cluster, "t")
    delete_records(processes.cluster, "t", 2)
    [folder] = (tmp_path / "topics").iterdir()
    (folder / "notes.deleted").touch()
    processes.crash_and_restart()
    assert sorted(file.name for file in folder.glob("*.deleted")) == ["notes.deleted"]


@pytest.mark.rule("CF-29")
def test_deletion_delay_of_a_second_file_of_the_same_name_begins_when_it_is_renamed(tmp_path: Path) -> None:
    timers, now_ms, path = Timers(), 0, tmp_path / f"{0:020d}.log"
    deletion = DelayedDeletion(timers, lambda: now_ms, lambda: 0)
    renamed_path = path.with_name(path.name + ".deleted")
    path.touch()
    deletion.delete_file(path, 4000)
    now_ms = 3000
    path.touch()
    deletion.delete_file(path, 4000)
    timers.run_due(6999)
    assert renamed_path.exists()
    timers.run_due(7000)
    assert not renamed_path.exists()
