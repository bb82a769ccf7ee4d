"""Data directories that cannot be used are rejected in one line; a full disk rejects writes and nothing else."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.persistence.wal import WriteAheadLog
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.broker.processes import Processes, commit, committed, values, write
from tests.support.scene import fill, replica
from tests.support.wire import limit, produce, produced

FULL = ErrorCode.KAFKA_STORAGE_ERROR


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, room: int = 0) -> Iterator[None]:
    """Let every write store `room` bytes and then fail for lack of space, within the block."""
    real = os.pwrite

    def pwrite(fd: int, data: bytes, at: int) -> int:
        if room and len(data) > room:
            return real(fd, memoryview(data)[:room], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        yield


@pytest.mark.parametrize("room", [0, 10])
def test_broker_with_a_full_disk_rejects_produces_and_keeps_existing_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    with full_disk(monkeypatch, room):
        assert write(processes.cluster, "t", b"lost" * 30).error_code == FULL
        assert values(processes.cluster, "t") == [(0, b"a")]
    assert write(processes.cluster, "t", b"b").base_offset == 1
    assert values(processes.crash_and_restart(), "t") == [(0, b"a"), (1, b"b")]
    assert not processes.cluster.state.journal.events("recovery")


@pytest.mark.parametrize("when", ["a new segment", "flush.messages"])
def test_failed_flush_rejects_the_produce_and_leaves_no_bytes_in_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    processes = Processes(tmp_path)
    flush_messages, segment_ms = ("1", "1000000") if when == "flush.messages" else ("100", "1000")
    processes.cluster.topic("t", flush_messages=flush_messages, segment_ms=segment_ms)
    write(processes.cluster, "t", b"a", timestamp=1_700_000_000_000)
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _io_error)
        for _ in range(2):
            assert write(processes.cluster, "t", b"lost", timestamp=1_700_000_010_000).error_code == FULL
    assert values(processes.cluster, "t") == [(0, b"a")]
    assert (
        sum(path.stat().st_size for path in tmp_path.glob("topics/*/*.log"))
        == replica(processes.cluster, 0).log.store.end_position
    )
    assert write(processes.cluster, "t", b"b", timestamp=1_700_000_010_000).base_offset == 1
    for then in (processes.cluster, processes.crash_and_restart()):
        assert values(then, "t") == [(0, b"a"), (1, b"b")]
    assert not processes.cluster.state.journal.events("recovery")


def test_log_start_can_be_raised_to_the_log_end_even_if_fsync_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", flush_messages="100")
    write(processes.cluster, "t", b"a")
    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", _io_error)
        replica(processes.cluster, 0).delete_records_before(1)
    assert values(processes.cluster, "t") == []
    assert write(processes.cluster, "t", b"b").base_offset == 1
    assert values(processes.crash_and_restart(), "t") == [(1, b"b")]


def test_requests_rejected_because_of_a_full_disk_change_no_stored_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(tmp_path)
    cluster = processes.cluster
    cluster.topic("t")
    write(cluster, "t", b"a")
    assert commit(cluster, "g", "t", 1) == 0
    limit(cluster, "c", consumer_byte_rate=1.0)
    controller = cluster.state.controller
    before = controller.image
    with full_disk(monkeypatch):
        for refused in (
            lambda: cluster.topic("u"),
            lambda: controller.delete_topic("t"),
            lambda: controller.set_topic_configs("t", {"retention.ms": "5"}),
            lambda: limit(cluster, "c", consumer_byte_rate=2.0),
            lambda: cluster.state.remember_config(-1, {}),
            lambda: replica(cluster, 0).delete_records_before(1),
        ):
            with pytest.raises(KafkaError) as caught:
                refused()
            assert caught.value.error_code == FULL
        assert commit(cluster, "g", "t", 2) == ErrorCode.NOT_COORDINATOR
        assert cluster.connect().ask(InitProducerIdRequest(None, 1000), 1).error_code == FULL
    for then in (cluster, processes.crash_and_restart()):
        assert dict(then.state.controller.image.topics) == dict(before.topics)
        assert list(then.state.quota_store.all().values()) == [1.0]
        assert committed(then, "g", "t") == 1
        assert values(then, "t") == [(0, b"a")]


def test_leader_elected_while_the_disk_is_full_is_persisted_when_space_is_available(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(tmp_path, 2)
    processes.cluster.topic("t", 1, 2)
    write(processes.cluster, "t", b"a", acks=-1)
    with full_disk(monkeypatch):
        processes.cluster.state.stop_broker(0)
        processes.cluster.run()
    state = processes.cluster.state.controller.image.partition("t", 0)
    assert state is not None and state.leader == 1
    processes.cluster.topic("u")
    after = processes.crash_and_restart().state.controller.image.partition("t", 0)
    assert after is not None and (after.leader, after.leader_epoch) == (1, state.leader_epoch)


def test_produce_is_rejected_while_the_disk_is_too_full_to_store_a_leader_election(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(tmp_path, 2)
    processes.cluster.topic("t", 1, 2)
    write(processes.cluster, "t", b"a", acks=-1)
    with full_disk(monkeypatch):
        processes.cluster.state.stop_broker(0)
        processes.cluster.run()
    with monkeypatch.context() as patch:
        patch.setattr(WriteAheadLog, "replace", _no_space)
        assert write(processes.cluster, "t", b"lost").error_code == FULL
    assert write(processes.cluster, "t", b"b").base_offset == 1
    state = processes.cluster.state.controller.image.partition("t", 0)
    after = processes.crash_and_restart().state.controller.image.partition("t", 0)
    assert state is not None and after is not None
    assert (after.leader, after.leader_epoch) == (1, state.leader_epoch)
    assert values(processes.cluster, "t") == [(0, b"a"), (1, b"b")]


def test_log_end_offset_survives_a_crash_after_an_election_that_was_not_persisted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(tmp_path, 2)
    processes.cluster.topic("t", 1, 2, segment_bytes="100")
    write(processes.cluster, "t", b"a", acks=-1)
    write(processes.cluster, "t", b"b", acks=-1)
    replica(processes.cluster, 1).log.raise_log_start(2)  # a follower's own retention
    with full_disk(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(WriteAheadLog, "replace", _no_space)
        processes.cluster.state.stop_broker(0)
        processes.cluster.run()
        processes.cluster.state.start_broker(0)
        processes.cluster.run()
        assert [replica(processes.cluster, i).log.log_start_offset for i in range(2)] == [2, 2]
    assert replica(processes.crash_and_restart(), 1).log.log_end_offset == 2
    assert write(processes.cluster, "t", b"c").base_offset == 2


def test_partial_batch_of_a_failed_append_is_truncated_before_the_segment_rolls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_ms="1000")
    write(processes.cluster, "t", b"a", timestamp=processes.cluster.now_ms)
    with full_disk(monkeypatch, room=100), monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", broken)
        assert write(processes.cluster, "t", b"lost" * 30, timestamp=processes.cluster.now_ms).error_code == FULL
        processes.cluster.advance(2000)
        assert write(processes.cluster, "t", b"lost" * 30, timestamp=processes.cluster.now_ms).error_code == FULL
    assert write(processes.cluster, "t", b"b", timestamp=processes.cluster.now_ms).base_offset == 1
    assert values(processes.crash_and_restart(), "t") == [(0, b"a"), (1, b"b")]
    assert not processes.cluster.state.journal.events("recovery")


def test_compaction_interrupted_after_an_append_to_a_full_disk_loses_no_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compaction writes to its own files; a failed append has left an empty file of one of these names."""
    processes = Processes(tmp_path)
    processes.cluster.topic("t", cleanup_policy="compact", segment_bytes="100")
    batches = [build_batch([NewRecord(b"%d" % number, b"k", 1_700_000_000_000)]) for number in range(4)]
    fill(processes.cluster, "t", *batches)
    before = values(processes.cluster, "t")
    with full_disk(monkeypatch):
        response = processes.cluster.connect().ask(produce("t", batches[0]), 9)
        assert produced(response).error_code == FULL
    with monkeypatch.context() as patch:
        patch.setattr(WriteAheadLog, "append", _no_space)
        with pytest.raises(KafkaError):
            processes.cluster.state.log_manager.compaction.clean("t", 0, processes.cluster.now_ms)
    assert values(processes.crash_and_restart(), "t") == before


def _io_error(_: int) -> None:
    raise OSError(errno.EIO, "Input/output error")


def _no_space(self: WriteAheadLog, facts: object) -> None:
    raise StorageError("no space left")


def refusal(path: Path, brokers: int = 1) -> str:
    with pytest.raises(ConfigError) as caught:
        Processes(path, brokers)
    text = str(caught.value)
    assert "\n" not in text and "for example" in text
    return text


def test_data_dir_that_is_a_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    assert "is a file" in refusal(tmp_path / "f")
    assert "cannot be created" in refusal(tmp_path / "f" / "below")


def test_data_dir_with_files_of_other_programs_is_rejected_and_left_unchanged(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    assert "letter" in refusal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_data_dir_of_a_newer_format_is_rejected_with_its_format_number(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.end()
    meta = json.loads((tmp_path / "meta.json").read_text())
    (tmp_path / "meta.json").write_text(json.dumps({**meta, "format": 7}))
    assert "format 7" in refusal(tmp_path)
    (tmp_path / "meta.json").write_text("[]")
    assert "meta.json was not written by kafkaproto" in refusal(tmp_path)


def test_start_with_2_brokers_is_rejected_if_the_data_dir_has_replicas_of_3_brokers(tmp_path: Path) -> None:
    processes = Processes(tmp_path, 3)
    processes.cluster.topic("t", 1, 3)
    processes.end()
    assert "broker 2" in refusal(tmp_path, 2)
    Processes(tmp_path, 4).end()


def test_data_dir_of_a_running_process_is_rejected_until_that_process_ends(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    assert f"in use by process {os.getpid()}" in refusal(tmp_path)
    processes.end()
    processes.restart().state.close()


def test_read_only_data_dir_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system call is patched, because tests may run as root, which can write everywhere."""
    real = os.open

    def read_only(path: object, flags: int, *more: int, **named: object) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *more, **named)  # type: ignore[arg-type, call-overload, no-any-return]

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only)
        assert "Read-only file system" in refusal(tmp_path / "d")


def test_broker_start_on_a_full_disk_fails_with_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Processes(tmp_path).end()

    def replace(self: object, facts: object) -> None:
        from kafkaproto.broker.log.errors import StorageError

        raise StorageError("cannot rewrite the metadata log facts: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("kafkaproto.broker.persistence.wal.WriteAheadLog.replace", replace)
        assert "No space left" in refusal(tmp_path)
    Processes(tmp_path).end()


def test_broker_command_with_invalid_data_dir_prints_1_error_line_and_exits_with_2(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    command = [sys.executable, "-m", "broker", "--port", "0", "--data-dir", str(tmp_path / "f")]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert completed.returncode == 2
    assert completed.stdout == ""
    assert completed.stderr.count("\n") == 1 and "is a file" in completed.stderr
