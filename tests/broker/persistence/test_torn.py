"""What is left when a process dies in the middle of a write, or when bytes on the disk were changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.persistence.wal import WriteAheadLog
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.broker.lives import Lives, values, write
from tests.support.scene import replica


def segment(path: Path) -> Path:
    [found] = (path / "topics").glob("*/*.log")
    return found


def cuts(lives: Lives) -> list[str]:
    return [event.facts["cut"] for event in lives.cluster.state.journal.events("recovery")]


def test_a_batch_that_is_torn_at_any_byte_is_cut(tmp_path: Path) -> None:
    first = Lives(tmp_path / "original")
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
        lives = Lives(path)
        assert values(lives.cluster, "t") == [(0, b"a")]
        torn = size - whole
        expected = [f"{torn} damaged bytes of t-0, which ends at offset 1 now"] if torn else []
        assert cuts(lives) == expected
        assert write(lives.cluster, "t", b"c").base_offset == 1
        assert values(lives.crash_and_restart(), "t") == [(0, b"a"), (1, b"c")]
        lives.crash()


@pytest.mark.parametrize("told", [False, True], ids=["since the last state", "before it"])
def test_a_changed_byte_cuts_its_batch_and_all_behind_it(tmp_path: Path, told: bool) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_bytes="200")
    for i in range(6):
        write(lives.cluster, "t", b"%d" % i * 60)
    if told:
        lives.crash_and_restart()
    lives.crash()
    files = sorted((tmp_path / "topics").glob("*/*.log"))
    data = bytearray(files[2].read_bytes())
    data[-5] ^= 1
    files[2].write_bytes(data)
    lives.restart()
    left = values(lives.cluster, "t")
    assert [offset for offset, _ in left] == list(range(len(left)))
    assert 0 < len(left) < 6
    assert len(cuts(lives)) == 1
    assert not any(path.exists() for path in files[3:])
    assert write(lives.cluster, "t", b"x").base_offset == len(left)
    assert values(lives.crash_and_restart(), "t") == [*left, (len(left), b"x")]


def test_after_a_clean_end_checksums_are_taken_for_granted(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    lives.end()
    data = bytearray(segment(tmp_path).read_bytes())
    data[-1] ^= 1
    segment(tmp_path).write_bytes(data)
    assert replica(lives.restart(), 0).log.log_end_offset == 1
    assert replica(lives.crash_and_restart(), 0).log.log_end_offset == 0


def test_a_fact_that_is_torn_at_any_byte_never_happened(tmp_path: Path) -> None:
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
        assert (torn.found, torn.cut_bytes) == ([{"kind": "a"}], size - whole)
        torn.append({"kind": "c"})
        torn.close()
        again = WriteAheadLog(path)
        assert (again.found, again.cut_bytes) == ([{"kind": "a"}, {"kind": "c"}], 0) or size - whole > 20
        again.close()


def test_facts_that_are_damaged_before_others_are_refused_and_nothing_changes(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    lives.cluster.topic("u")
    lives.crash()
    path = tmp_path / "facts"
    whole = path.read_bytes()
    for at in (0, 4, 9, len(whole) // 2):
        data = bytearray(whole)
        data[at] ^= 1
        path.write_bytes(data)
        with pytest.raises(ConfigError, match="its facts cannot be read: damaged at byte"):
            lives.restart()
        assert path.read_bytes() == data
    path.write_bytes(whole)
    assert values(lives.restart(), "t") == [(0, b"a")]


@pytest.mark.parametrize("left", [0, 100, None], ids=["empty", "most of them gone", "all gone"])
def test_records_that_the_facts_do_not_tell_of_are_not_thrown_away(tmp_path: Path, left: int | None) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    lives.crash()
    path = tmp_path / "facts"
    whole = path.read_bytes()
    if left is None:
        path.unlink()
    else:
        path.write_bytes(whole[:left])
    with pytest.raises(ConfigError, match="tell nothing of topics/"):
        lives.restart()
    path.write_bytes(whole)
    assert values(lives.restart(), "t") == [(0, b"a")]


def test_a_deletion_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    [folder] = (tmp_path / "topics").iterdir()
    shutil.copytree(folder, tmp_path.parent / "copy")
    lives.cluster.state.controller.delete_topic("t")
    shutil.move(tmp_path.parent / "copy", folder)
    lives.crash_and_restart()
    assert not list((tmp_path / "topics").iterdir())


def topic_on(cluster: VirtualCluster, name: str, broker_id: int) -> None:
    """Make a topic whose one replica lies on this broker."""
    controller = cluster.state.controller
    controller.create_topic(controller.plan_topic(name, -1, -1, {0: [broker_id]}, {}))
    cluster.run()


def test_the_records_of_a_stopped_broker_go_with_their_topic(tmp_path: Path) -> None:
    """Seed 8473 of the simulation: left on the disk, with a fact that was cut short, they looked like records without facts."""
    lives = Lives(tmp_path, brokers=2)
    topic_on(lives.cluster, "kept", 0)
    topic_on(lives.cluster, "t", 1)
    write(lives.cluster, "t", b"a")
    lives.cluster.state.stop_broker(1)
    lives.cluster.state.controller.delete_topic("t")
    assert not list((tmp_path / "topics").iterdir())
    lives.crash()
    with (tmp_path / "facts").open("ab") as facts:
        facts.write(b"torn")
    cluster = lives.restart()
    assert set(cluster.state.controller.image.topics) == {"kept"}


def test_a_topic_deleted_while_its_broker_was_stopped_can_be_made_again(tmp_path: Path) -> None:
    cluster = Lives(tmp_path, brokers=2).cluster
    topic_on(cluster, "t", 1)
    write(cluster, "t", b"a", b"b")
    cluster.state.stop_broker(1)
    cluster.state.controller.delete_topic("t")
    cluster.state.start_broker(1)
    topic_on(cluster, "t", 1)
    assert write(cluster, "t", b"c").base_offset == 0
    assert values(cluster, "t") == [(0, b"c")]


def test_what_is_not_ours_below_topics_is_left_alone(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    [folder] = (tmp_path / "topics").iterdir()
    segment_name = segment(tmp_path).name
    foreign = [tmp_path / "topics" / "notes.txt", tmp_path / "topics" / "mine" / segment_name, folder / "notes.txt"]
    for path in foreign:
        path.parent.mkdir(exist_ok=True)
        path.write_text("not a record")
    assert values(lives.crash_and_restart(), "t") == [(0, b"a")]
    lives.cluster.state.controller.delete_topic("t")
    lives.crash_and_restart()
    assert all(path.exists() for path in foreign)


@pytest.mark.parametrize("told", [False, True], ids=["since the last state", "before it"])
def test_a_file_that_is_missing_cuts_all_behind_it(tmp_path: Path, told: bool) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_bytes="200")
    for i in range(6):
        write(lives.cluster, "t", b"%d" % i * 60)
    if told:
        lives.crash_and_restart()
    lives.crash()
    sorted((tmp_path / "topics").glob("*/*.log"))[2].unlink()
    lives.restart()
    left = values(lives.cluster, "t")
    assert 0 < len(left) < 6 and [offset for offset, _ in left] == list(range(len(left)))
    assert len(cuts(lives)) == 1
    assert write(lives.cluster, "t", b"x").base_offset == len(left)
    assert values(lives.crash_and_restart(), "t") == [*left, (len(left), b"x")]


def test_a_fact_that_cannot_be_written_whole_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = WriteAheadLog(tmp_path / "facts")
    facts.append({"number": 1})
    size = facts.size_bytes
    import os

    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: real(fd, data[:5], at))
    with pytest.raises(StorageError):
        facts.append({"number": 2})
    monkeypatch.undo()
    assert (tmp_path / "facts").stat().st_size == size
    facts.append({"number": 3})
    facts.close()
    assert WriteAheadLog(tmp_path / "facts").found == [{"number": 1}, {"number": 3}]
