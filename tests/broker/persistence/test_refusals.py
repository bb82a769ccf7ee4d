"""A folder that cannot be had is refused in one line; a disk that is full refuses writes and nothing else."""

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
from tests.support.broker.lives import Lives, commit, committed, values, write
from tests.support.scene import fill, replica
from tests.support.wire import limit, produce, produced

FULL = ErrorCode.KAFKA_STORAGE_ERROR


@contextmanager
def full_disk(monkeypatch: pytest.MonkeyPatch, room: int = 0) -> Iterator[None]:
    """Every write takes `room` bytes, and then there is no space left."""
    real = os.pwrite

    def pwrite(fd: int, data: bytes, at: int) -> int:
        if room and len(data) > room:
            return real(fd, memoryview(data)[:room], at)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        yield


@pytest.mark.parametrize("room", [0, 10])
def test_a_full_disk_refuses_records_and_serves_what_there_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    with full_disk(monkeypatch, room):
        assert write(lives.cluster, "t", b"lost" * 30).error_code == FULL
        assert values(lives.cluster, "t") == [(0, b"a")]
    assert write(lives.cluster, "t", b"b").base_offset == 1
    assert values(lives.crash_and_restart(), "t") == [(0, b"a"), (1, b"b")]
    assert not lives.cluster.state.journal.events("recovery")


def test_a_full_disk_leaves_everything_else_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lives = Lives(tmp_path)
    cluster = lives.cluster
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
    for then in (cluster, lives.crash_and_restart()):
        assert dict(then.state.controller.image.topics) == dict(before.topics)
        assert list(then.state.quota_store.all().values()) == [1.0]
        assert committed(then, "g", "t") == 1
        assert values(then, "t") == [(0, b"a")]


def test_elections_go_on_while_the_disk_is_full_and_are_remembered_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = Lives(tmp_path, 2)
    lives.cluster.topic("t", 1, 2)
    write(lives.cluster, "t", b"a", acks=-1)
    with full_disk(monkeypatch):
        lives.cluster.state.stop_broker(0)
        lives.cluster.run()
    state = lives.cluster.state.controller.image.partition("t", 0)
    assert state is not None and state.leader == 1
    lives.cluster.topic("u")
    after = lives.crash_and_restart().state.controller.image.partition("t", 0)
    assert after is not None and (after.leader, after.leader_epoch) == (1, state.leader_epoch)


def test_nothing_is_appended_before_an_election_of_the_full_disk_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = Lives(tmp_path, 2)
    lives.cluster.topic("t", 1, 2)
    write(lives.cluster, "t", b"a", acks=-1)
    with full_disk(monkeypatch):
        lives.cluster.state.stop_broker(0)
        lives.cluster.run()
    with monkeypatch.context() as patch:
        patch.setattr(WriteAheadLog, "replace", _no_space)
        assert write(lives.cluster, "t", b"lost").error_code == FULL
    assert write(lives.cluster, "t", b"b").base_offset == 1
    state = lives.cluster.state.controller.image.partition("t", 0)
    after = lives.crash_and_restart().state.controller.image.partition("t", 0)
    assert state is not None and after is not None
    assert (after.leader, after.leader_epoch) == (1, state.leader_epoch)
    assert values(lives.cluster, "t") == [(0, b"a"), (1, b"b")]


def test_no_segment_goes_while_the_leader_that_gave_it_up_is_not_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lives = Lives(tmp_path, 2)
    lives.cluster.topic("t", 1, 2, segment_bytes="100")
    write(lives.cluster, "t", b"a", acks=-1)
    write(lives.cluster, "t", b"b", acks=-1)
    replica(lives.cluster, 1).log.raise_log_start(2)  # a follower's own retention
    with full_disk(monkeypatch), monkeypatch.context() as patch:
        patch.setattr(WriteAheadLog, "replace", _no_space)
        lives.cluster.state.stop_broker(0)
        lives.cluster.run()
        lives.cluster.state.start_broker(0)
        lives.cluster.run()
        assert [replica(lives.cluster, i).log.log_start_offset for i in range(2)] == [2, 2]
    assert replica(lives.crash_and_restart(), 1).log.log_end_offset == 2
    assert write(lives.cluster, "t", b"c").base_offset == 2


def test_half_a_batch_that_a_broken_disk_keeps_is_cut_before_the_next_segment_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_ms="1000")
    write(lives.cluster, "t", b"a", timestamp=lives.cluster.now_ms)
    with full_disk(monkeypatch, room=100), monkeypatch.context() as patch:
        patch.setattr(os, "ftruncate", broken)
        assert write(lives.cluster, "t", b"lost" * 30, timestamp=lives.cluster.now_ms).error_code == FULL
        lives.cluster.advance(2000)
        assert write(lives.cluster, "t", b"lost" * 30, timestamp=lives.cluster.now_ms).error_code == FULL
    assert write(lives.cluster, "t", b"b", timestamp=lives.cluster.now_ms).base_offset == 1
    assert values(lives.crash_and_restart(), "t") == [(0, b"a"), (1, b"b")]
    assert not lives.cluster.state.journal.events("recovery")


def test_compaction_that_never_came_to_its_end_leaves_nothing_also_where_an_append_failed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it writes lies in files of its own; an append that failed has left an empty one just there."""
    lives = Lives(tmp_path)
    lives.cluster.topic("t", cleanup_policy="compact", segment_bytes="100")
    made = [build_batch([NewRecord(b"%d" % number, b"k", 1_700_000_000_000)]) for number in range(4)]
    fill(lives.cluster, "t", *made)
    before = values(lives.cluster, "t")
    with full_disk(monkeypatch):
        answer = lives.cluster.connect().ask(produce("t", made[0]), 9)
        assert produced(answer).error_code == FULL
    with monkeypatch.context() as patch:
        patch.setattr(WriteAheadLog, "append", _no_space)
        with pytest.raises(KafkaError):
            lives.cluster.state.log_manager.compaction.clean("t", 0, lives.cluster.now_ms)
    assert values(lives.crash_and_restart(), "t") == before


def _no_space(self: WriteAheadLog, facts: object) -> None:
    raise StorageError("no space left")


def refusal(path: Path, brokers: int = 1) -> str:
    with pytest.raises(ConfigError) as caught:
        Lives(path, brokers)
    text = str(caught.value)
    assert "\n" not in text and "for example" in text
    return text


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    assert "is a file" in refusal(tmp_path / "f")
    assert "cannot be made" in refusal(tmp_path / "f" / "below")


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("dear")
    assert "letter" in refusal(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["letter"]


def test_a_newer_format_is_refused_by_its_number(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.end()
    meta = json.loads((tmp_path / "meta.json").read_text())
    (tmp_path / "meta.json").write_text(json.dumps({**meta, "format": 7}))
    assert "format 7" in refusal(tmp_path)
    (tmp_path / "meta.json").write_text("[]")
    assert "meta.json is not ours" in refusal(tmp_path)


def test_fewer_brokers_than_the_replicas_need(tmp_path: Path) -> None:
    lives = Lives(tmp_path, 3)
    lives.cluster.topic("t", 1, 3)
    lives.end()
    assert "broker 2" in refusal(tmp_path, 2)
    Lives(tmp_path, 4).end()


def test_a_folder_that_is_held_names_the_holder_and_is_free_after_a_refusal(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    assert f"held by process {os.getpid()}" in refusal(tmp_path)
    lives.end()
    lives.restart().state.close()


def test_a_read_only_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Told through the system call: root, which tests may run as, writes everywhere."""
    real = os.open

    def read_only(path: object, flags: int, *more: int, **named: object) -> int:
        if flags & os.O_CREAT:
            raise OSError(errno.EROFS, "Read-only file system")
        return real(path, flags, *more, **named)  # type: ignore[arg-type, call-overload, no-any-return]

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", read_only)
        assert "Read-only file system" in refusal(tmp_path / "d")


def test_a_full_disk_at_the_start_is_told_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Lives(tmp_path).end()

    def replace(self: object, facts: object) -> None:
        from kafkaproto.broker.log.errors import StorageError

        raise StorageError("cannot write the facts anew: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("kafkaproto.broker.persistence.wal.WriteAheadLog.replace", replace)
        assert "No space left" in refusal(tmp_path)
    Lives(tmp_path).end()


def test_the_command_line_tells_it_in_one_line_with_status_2(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("x")
    command = [sys.executable, "-m", "broker", "--port", "0", "--data-dir", str(tmp_path / "f")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1 and "is a file" in done.stderr
