"""Flushes of segment files by time: `flush.ms`, `log.flush.interval.ms` and `log.flush.scheduler.interval.ms`, in virtual time."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.broker.processes import Processes, values, write

SCHEDULER, INTERVAL = "log.flush.scheduler.interval.ms", "log.flush.interval.ms"
ONE_EACH = "130"


@pytest.fixture
def flushed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list to which each fsync appends the name of its file."""
    names: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: names.append(Path(os.readlink(f"/proc/self/fd/{fd}")).name))
    return names


def started(path: Path, brokers: int = 1, **config: object) -> VirtualCluster:
    """Return a cluster with a data directory. config: settings with underscores in place of dots."""
    return Processes(path, brokers, config={name.replace("_", "."): value for name, value in config.items()}).cluster


def test_log_is_flushed_at_the_first_flush_check_after_flush_ms_has_passed(tmp_path: Path, flushed: list[str]) -> None:
    cluster = started(tmp_path, 3, log_flush_scheduler_interval_ms=1000)
    cluster.topic("t", 1, 3, flush_ms="4500")
    cluster.topic("u")
    write(cluster, "t", b"a", acks=-1)
    write(cluster, "u", b"a")  # its limit is the interval of the checks
    cluster.advance(4999)
    assert len(flushed) == 1
    cluster.advance(1)
    assert len(flushed) == 2  # once, not once for each replica
    cluster.advance(60_000)
    assert len(flushed) == 2  # nothing was appended


def test_flush_ms_has_no_effect_if_log_flush_scheduler_interval_ms_is_unset(tmp_path: Path, flushed: list[str]) -> None:
    cluster = started(tmp_path, log_flush_interval_ms=1000)
    cluster.topic("t", flush_ms="10")
    write(cluster, "t", b"a")
    cluster.advance(3_600_000)
    assert flushed == []


@pytest.mark.parametrize(("limit_ms", "due_ms"), [(None, 1000), (2500, 3000)])
def test_log_flush_interval_ms_defaults_to_log_flush_scheduler_interval_ms(
    tmp_path: Path, flushed: list[str], limit_ms: int | None, due_ms: int
) -> None:
    config = {} if limit_ms is None else {"log_flush_interval_ms": limit_ms}
    cluster = started(tmp_path, log_flush_scheduler_interval_ms=1000, **config)
    cluster.topic("t")
    write(cluster, "t", b"a")
    cluster.advance(due_ms - 1)
    assert flushed == []
    cluster.advance(1)
    assert len(flushed) == 1


def test_flush_ms_flushes_every_segment_that_was_appended_since_the_last_flush(
    tmp_path: Path, flushed: list[str]
) -> None:
    cluster = started(tmp_path, log_flush_scheduler_interval_ms=1000)
    cluster.topic("t", segment_bytes=ONE_EACH)
    for value in (b"a" * 50, b"b" * 50, b"c" * 50):
        write(cluster, "t", value)
    cluster.advance(1000)
    names = sorted(path.name for path in tmp_path.glob("topics/*/*.log"))
    assert len(names) == 3 and sorted(flushed) == names
    write(cluster, "t", b"d" * 50)
    cluster.advance(1000)
    assert sorted(flushed[3:]) == [max(path.name for path in tmp_path.glob("topics/*/*.log"))]


def test_flush_ms_interval_starts_anew_after_a_flush_caused_by_flush_messages(
    tmp_path: Path, flushed: list[str]
) -> None:
    cluster = started(tmp_path, log_flush_scheduler_interval_ms=1000)
    cluster.topic("t", flush_ms="3000", flush_messages="2")
    write(cluster, "t", b"a")
    cluster.advance(2000)
    write(cluster, "t", b"b")
    assert len(flushed) == 1
    write(cluster, "t", b"c")
    cluster.advance(2999)
    assert len(flushed) == 1
    cluster.advance(1)
    assert len(flushed) == 2


def test_lowered_flush_ms_applies_to_records_that_were_already_appended(tmp_path: Path, flushed: list[str]) -> None:
    cluster = started(tmp_path, log_flush_scheduler_interval_ms=1000)
    cluster.topic("t", flush_ms="1000000000")
    write(cluster, "t", b"a")
    cluster.advance(60_000)
    assert flushed == []
    cluster.state.controller.set_topic_configs("t", {"flush.ms": "2000"})
    cluster.advance(1000)
    assert len(flushed) == 1


def test_failed_flush_after_flush_ms_is_logged_and_retried_at_the_next_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = started(tmp_path, log_flush_scheduler_interval_ms=1000)
    cluster.topic("t")
    write(cluster, "t", b"a")
    calls: list[int] = []

    def fails_once(fd: int) -> None:
        calls.append(fd)
        if len(calls) == 1:
            raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails_once)
    cluster.advance(1000)
    assert "cannot flush the log in folder" in caplog.text
    cluster.advance(1000)
    assert len(calls) == 2
    cluster.advance(10_000)
    assert len(calls) == 2 and values(cluster, "t") == [(0, b"a")]


def test_records_written_before_a_crash_are_flushed_at_the_first_flush_check(
    tmp_path: Path, flushed: list[str]
) -> None:
    processes = Processes(tmp_path, config={SCHEDULER: 1000, INTERVAL: 1500})
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    cluster = processes.crash_and_restart()
    cluster.advance(2000)
    assert len(flushed) == 1 and values(cluster, "t") == [(0, b"a")]


def test_cluster_without_a_data_directory_runs_no_repeated_flush_checks() -> None:
    cluster = VirtualCluster(1, {SCHEDULER: "1000", "log.retention.ms": "-1"})
    cluster.topic("t")
    write(cluster, "t", b"a")
    cluster.advance(3_600_000)
    assert len(cluster.state.timers) == 0
