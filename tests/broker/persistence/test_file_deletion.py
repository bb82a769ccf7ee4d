"""Deletion of the files of deleted segments and topics after `file.delete.delay.ms` and `log.segment.delete.delay.ms`, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.log.files import FileRange
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
def test_files_are_deleted_at_once_if_file_delete_delay_ms_is_0(tmp_path: Path) -> None:
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
def test_folder_of_a_deleted_topic_is_deleted_after_the_delay_of_the_broker(tmp_path: Path) -> None:
    cluster = started(tmp_path).cluster
    filled(cluster, "t", file_delete_delay_ms="9000")
    cluster.state.controller.delete_topic("t")
    filled(cluster, "t", file_delete_delay_ms="0")  # the same name, another id
    cluster.advance(3999)
    assert deleted_folders(tmp_path) == 1
    cluster.advance(1)
    assert deleted_folders(tmp_path) == 0
    assert len(list((tmp_path / "topics").iterdir())) == 1
    assert len(values(cluster, "t")) == 4


@pytest.mark.rule("CF-29")
def test_raised_delay_applies_to_folders_of_topics_deleted_before_the_change(tmp_path: Path) -> None:
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
def test_restart_deletes_deleted_files_and_starts_the_delay_of_folders_again(tmp_path: Path, crashes: bool) -> None:
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
def test_response_can_be_sent_from_a_file_that_has_been_renamed_or_deleted(tmp_path: Path) -> None:
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
def test_file_that_cannot_be_deleted_is_logged_and_left_to_the_next_start(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    processes = started(tmp_path)
    filled(processes.cluster, "t")
    delete_records(processes.cluster, "t", 1)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", refuse)
        processes.cluster.advance(4000)
    [message] = caplog.messages
    assert "00000000000000000000.log.deleted cannot be deleted: " in message
    assert "the next start with this data directory tries again" in message
    assert suffixes(tmp_path, processes.crash_and_restart(), "t") == [".log", *LAST_TWO]
