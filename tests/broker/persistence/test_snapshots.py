"""When the metadata log of a data directory is rewritten: by size and by time, in virtual time."""

from __future__ import annotations

from pathlib import Path

import pytest

import kafkaproto.testing
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.persistence.wal import WriteAheadLog
from tests.support.broker.processes import Processes

MAX_BYTES, INTERVAL_MS = "metadata.log.max.record.bytes.between.snapshots", "metadata.log.max.snapshot.interval.ms"

pytestmark = pytest.mark.rule("CF-31")


class Log:
    """The metadata log of a cluster with the topic "t" in a data directory. config: settings of the cluster."""

    def __init__(self, path: Path, **config: str) -> None:
        self.processes = Processes(path, config=config)
        self.cluster = self.processes.cluster
        self.cluster.topic("t")
        self._facts = path / "facts"
        self._changes = 0

    @property
    def size_bytes(self) -> int:
        return self._facts.stat().st_size

    def change(self) -> bool:
        """Change a setting of the topic. Returns whether the metadata log was rewritten, which makes it shorter."""
        before = self.size_bytes
        self._changes += 1
        self.cluster.state.controller.set_topic_configs("t", {"retention.ms": str(1_000_000 + self._changes)})
        return self.size_bytes < before


def test_metadata_log_is_rewritten_each_time_it_has_grown_by_the_limit(tmp_path: Path) -> None:
    log = Log(tmp_path, **{MAX_BYTES: "5000"})
    start_bytes, first = log.size_bytes, log.change()
    record_bytes = log.size_bytes - start_bytes
    rewritten = [first, *(log.change() for _ in range(200))]
    between = 5000 // record_bytes
    assert 200 // between - 1 <= sum(rewritten) <= 200 // between + 1
    assert log.size_bytes < start_bytes + 5000 + 2 * record_bytes


def test_metadata_log_is_not_rewritten_before_it_has_doubled_in_size(tmp_path: Path) -> None:
    log = Log(tmp_path, **{MAX_BYTES: "1"})
    for i in range(50):
        log.cluster.topic(f"other-{i}")
    while not log.change():
        pass
    small_bytes = largest_bytes = log.size_bytes
    while not log.change():
        largest_bytes = log.size_bytes
    assert 1.9 * small_bytes < largest_bytes < 2.2 * small_bytes


def test_metadata_log_is_rewritten_with_a_change_after_the_snapshot_interval(tmp_path: Path) -> None:
    log = Log(tmp_path, **{INTERVAL_MS: "60000"})
    log.cluster.advance(59_999)
    assert [log.change() for _ in range(5)] == [False] * 5
    log.cluster.advance(1)
    assert [log.change() for _ in range(5)] == [False, True, False, False, False]
    log.cluster.advance(60_000)
    assert [log.change() for _ in range(3)] == [False, True, False]
    after = log.processes.crash_and_restart()
    assert after.state.controller.image.topics["t"].configs["retention.ms"] == "1000013"


@pytest.mark.parametrize("interval_ms", ["0", "3600000"])
def test_metadata_log_is_not_rewritten_before_its_snapshot_interval_or_if_that_is_0(
    tmp_path: Path, interval_ms: str
) -> None:
    log = Log(tmp_path, **{INTERVAL_MS: interval_ms})
    log.cluster.advance(3_599_999)
    assert [log.change() for _ in range(5)] == [False] * 5


def test_failed_rewrite_of_the_metadata_log_fails_no_change_and_is_tried_later(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("No space left on device")

    log = Log(tmp_path, **{INTERVAL_MS: "60000"})
    log.cluster.advance(60_000)
    with monkeypatch.context() as patched:
        patched.setattr(WriteAheadLog, "replace", refuse)
        assert [log.change() for _ in range(5)] == [False] * 5
        assert len(caplog.messages) == 1 and "No space left on device" in caplog.messages[0]
        log.cluster.advance(60_000)
        assert [log.change() for _ in range(5)] == [False] * 5
        assert len(caplog.messages) == 2
    log.cluster.advance(59_999)
    assert not log.change()
    log.cluster.advance(1)
    assert [log.change() for _ in range(3)] == [True, False, False]
    after = log.processes.crash_and_restart()
    assert after.state.controller.image.topics["t"].configs["retention.ms"] == "1000014"


def test_snapshot_interval_begins_again_after_a_reset_that_sets_the_clock_back(tmp_path: Path) -> None:
    with kafkaproto.testing.cluster(topics={"t": 1}, data_dir=tmp_path, config={INTERVAL_MS: "60000"}) as c:
        c.clock.advance(86_400_000)
        c.reset()
        file_number = (tmp_path / "facts").stat().st_ino
        c.clock.advance(61_000)
        for topic in ("u", "v"):
            c.create_topic(topic)
        assert (tmp_path / "facts").stat().st_ino != file_number  # each rewrite replaces the file
