"""What a process that was killed leaves to the next one: everything that a client was told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.persistence import metadata_log as metadata_log
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.testing import cluster
from tests.support.broker.lives import Lives, commit, committed, leader, values, write
from tests.support.scene import elect, fill, hold, replica
from tests.support.wire import limit


def test_records_and_topics_survive(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", 2, retention_ms="1234567")
    assert write(lives.cluster, "t", b"a", b"b").base_offset == 0
    assert write(lives.cluster, "t", b"c", index=1).base_offset == 0
    assert write(lives.cluster, "t", b"d").base_offset == 2
    before = lives.cluster.state.controller.image.topics
    after = lives.crash_and_restart()
    assert dict(after.state.controller.image.topics) == dict(before)
    assert values(after, "t") == [(0, b"a"), (1, b"b"), (2, b"d")]
    assert values(after, "t", 1) == [(0, b"c")]
    assert write(after, "t", b"e").base_offset == 3
    assert values(lives.crash_and_restart(), "t")[-1] == (3, b"e")


def test_a_process_that_ends_by_itself_leaves_the_same(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    lives.end()
    after = lives.restart()
    assert values(after, "t") == [(0, b"a")]
    assert write(after, "t", b"b").base_offset == 1
    lives.end()
    assert values(lives.restart(), "t") == [(0, b"a"), (1, b"b")]


def test_segments_go_on(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_bytes="300")
    for _ in range(3):
        for i in range(10):
            write(lives.cluster, "t", b"%d" % i * 40)
        lives.crash_and_restart()
    assert [offset for offset, _ in values(lives.cluster, "t")] == list(range(30))
    assert len(list((tmp_path / "topics").glob("*/*.log"))) > 10


def test_commits_quotas_configs_and_producer_ids_survive(tmp_path: Path) -> None:
    lives = Lives(tmp_path, config={"quota.producer.default": "1M"})
    lives.cluster.topic("t")
    assert commit(lives.cluster, "g", "t", 7) == 0
    limit(lives.cluster, "c", consumer_byte_rate=1000.0)
    entity = next(entity for entity, _ in lives.cluster.state.quota_store.all() if not entity.client_id)
    lives.cluster.state.quota_store.set(entity, "producer_byte_rate", None)
    ids = {lives.cluster.state.next_producer_id() for _ in range(3)}
    for _ in range(2):
        after = lives.crash_and_restart()
        assert committed(after, "g", "t") == 7
        assert list(after.state.quota_store.all().values()) == [1000.0]
        new = {after.state.next_producer_id() for _ in range(3)}
        assert not new & ids
        ids |= new


@pytest.mark.rule("R-1", "R-2")
def test_throttled_replicas_and_rates_survive(tmp_path: Path) -> None:
    lives = Lives(tmp_path, brokers=2)
    lives.cluster.topic("t", 2, 1, leader_replication_throttled_replicas="0:0,1:1")
    for broker_id, rate in ((-1, "1000"), (1, "2000")):
        rates = [Change("leader.replication.throttled.rate", 0, rate)]
        change(BrokerResource(lives.cluster.state, broker_id), rates, strict_kip=True)
    for _ in range(2):
        quotas = [node.replicas.leader_quota for node in lives.crash_and_restart().state.nodes]
        assert [quota.bound for quota in quotas] == [1000, 2000]
        assert [[quota.lists("t", index) for index in (0, 1)] for quota in quotas] == [[True, False], [False, True]]


def test_a_deleted_topic_stays_away_with_its_files_and_its_commits(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    commit(lives.cluster, "g", "t", 1)
    lives.cluster.state.controller.delete_topic("t")
    lives.cluster.topic("t")
    after = lives.crash_and_restart()
    assert values(after, "t") == []
    assert committed(after, "g", "t") == -1
    assert list((tmp_path / "topics").glob("*/*")) == []


def test_topic_ids_are_never_drawn_twice(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    seen = set()
    for i in range(3):
        lives.cluster.topic(f"t{i}")
        seen.add(lives.cluster.state.controller.image.topics[f"t{i}"].topic_id)
        lives.crash_and_restart()
    assert len(seen) == 3


def test_followers_have_what_the_leader_has(tmp_path: Path) -> None:
    lives = Lives(tmp_path, 3)
    lives.cluster.topic("t", 1, 3)
    write(lives.cluster, "t", b"a", acks=-1)
    hold(lives.cluster, 1, 2)
    write(lives.cluster, "t", b"b")
    after = lives.crash_and_restart()
    assert [values(after, "t", broker_id=i) for i in range(3)] == [[(0, b"a"), (1, b"b")]] * 3
    assert replica(after, 0).log.high_watermark == 2


def test_what_a_new_leader_did_not_have_does_not_come_back(tmp_path: Path) -> None:
    lives = Lives(tmp_path, 3)
    lives.cluster.topic("t", 1, 3)
    write(lives.cluster, "t", b"a", acks=-1)
    hold(lives.cluster, 1, 2)
    write(lives.cluster, "t", b"lost")
    elect(lives.cluster, 1)
    assert values(lives.cluster, "t") == [(0, b"a")]
    assert leader(lives.crash_and_restart(), "t") == 1
    assert values(lives.cluster, "t") == [(0, b"a")]
    write(lives.cluster, "t", b"b", acks=-1)
    elect(lives.cluster, 2)
    epochs = replica(lives.cluster, 2).log.epochs.entries()
    after = lives.crash_and_restart()
    assert values(after, "t") == [(0, b"a"), (1, b"b")]
    assert replica(after, 2).log.epochs.entries() == epochs
    assert after.state.controller.image.leader_of("t", 0) == (2, 2)


def test_what_a_new_leader_with_nothing_did_not_have_does_not_come_back(tmp_path: Path) -> None:
    lives = Lives(tmp_path, 3)
    lives.cluster.topic("t", 1, 3)
    hold(lives.cluster, 1, 2)
    write(lives.cluster, "t", b"lost")
    elect(lives.cluster, 1)
    for _ in range(2):
        assert values(lives.crash_and_restart(), "t") == []
    write(lives.cluster, "t", b"a")
    assert values(lives.crash_and_restart(), "t") == [(0, b"a")]


@pytest.mark.rule("P-18")
def test_a_repeated_batch_is_known_after_a_restart(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    options = {"producer_id": 5, "producer_epoch": 0}
    for sequence in range(7):
        write(lives.cluster, "t", b"a", base_sequence=sequence, **options)
    for _ in range(2):
        after = lives.crash_and_restart()
        again = write(after, "t", b"a", base_sequence=6, **options)
        assert (again.error_code, again.base_offset) == (0, 6)
        assert write(after, "t", b"a", base_sequence=9, **options).error_code == 45
        replica(after, 0).log.raise_log_start(7)  # the batches go, the producer does not


def test_the_log_start_survives_and_so_does_the_space(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_bytes="300")
    for i in range(20):
        write(lives.cluster, "t", b"%02d" % i * 30)
    replica(lives.cluster, 0).delete_records_before(13)
    files = sorted(path.name for path in (tmp_path / "topics").glob("*/*"))
    after = lives.crash_and_restart()
    assert [offset for offset, _ in values(after, "t")] == list(range(13, 20))
    assert sorted(path.name for path in (tmp_path / "topics").glob("*/*")) == files
    replica(after, 0).delete_records_before(20)
    after = lives.crash_and_restart()
    assert values(after, "t") == []
    assert write(after, "t", b"x").base_offset == 20
    assert values(lives.crash_and_restart(), "t") == [(20, b"x")]


def test_a_reset_leaves_nothing(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    write(lives.cluster, "t", b"a")
    commit(lives.cluster, "g", "t", 1)
    limit(lives.cluster, "c", consumer_byte_rate=1000.0)
    lives.cluster.state.reset()
    after = lives.crash_and_restart()
    assert not after.state.controller.image.topics
    assert not after.state.quota_store.all()
    assert list(after.state.groups.offsets()) == []
    assert list((tmp_path / "topics").iterdir()) == []


def test_time_rolls_a_segment_that_another_process_began(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_ms="1000")
    first_ms = 1_700_000_000_000
    write(lives.cluster, "t", b"a", timestamp=first_ms)
    lives.crash_and_restart()
    write(lives.cluster, "t", b"b", timestamp=first_ms + 1000)
    assert len(list((tmp_path / "topics").glob("*/*.log"))) == 1
    write(lives.cluster, "t", b"c", timestamp=first_ms + 1001)
    assert len(list((tmp_path / "topics").glob("*/*.log"))) == 2


def test_flush_messages_of_a_topic_forces_its_files_to_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    lives = Lives(tmp_path)
    lives.cluster.topic("t", flush_messages="2")
    lives.cluster.topic("u")
    for topic in "tttuuu":
        write(lives.cluster, topic, b"a")
    assert len(flushed) == 1


def test_old_facts_are_written_anew_when_they_have_grown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata_log, "LEAST_GROWTH_BYTES", 10_000)
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    for offset in range(500):
        assert commit(lives.cluster, "g", "t", offset) == 0
    assert (tmp_path / "facts").stat().st_size < 25_000
    assert committed(lives.crash_and_restart(), "g", "t") == 499


def test_a_cluster_of_a_test_goes_on_and_is_reset(tmp_path: Path) -> None:
    for expected in ([], [b"a"]):
        with cluster(topics={"t": 1}, data_dir=tmp_path) as c:
            assert [record.value for record in c.records("t")] == expected
            c.produce("t", [b"a"])
    with cluster(topics={"t": 1}, data_dir=tmp_path) as c:
        c.reset()
        assert c.records("t") == []
    with cluster(topics={"t": 1}, data_dir=tmp_path) as c:
        assert c.records("t") == []


@pytest.mark.rule("P-17")
@pytest.mark.parametrize("goes_on", [False, True], ids=["nothing after", "batches after"])
def test_a_producer_is_known_whose_batches_were_deleted_in_the_same_life(tmp_path: Path, goes_on: bool) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t")
    options = {"producer_id": 5, "producer_epoch": 0}
    for sequence in range(3):
        write(lives.cluster, "t", b"a", base_sequence=sequence, **options)
    replica(lives.cluster, 0).delete_records_before(3)
    if goes_on:
        write(lives.cluster, "t", b"of another")
    after = lives.crash_and_restart()
    assert write(after, "t", b"a", base_sequence=2, **options).base_offset == 2
    assert write(after, "t", b"a", base_sequence=9, **options).error_code == 45


def test_what_compaction_left_survives_and_what_it_began_does_not(tmp_path: Path) -> None:
    lives = Lives(tmp_path)
    lives.cluster.topic("t", cleanup_policy="compact", segment_bytes="300")
    for number in range(12):
        data = build_batch([NewRecord(b"%02d" % number * 20, b"%d" % (number % 2), 1_700_000_000_000)])
        fill(lives.cluster, "t", data)
    state = lives.cluster.state
    before = values(lives.cluster, "t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata_log.PartitionRecorder, "cleaned", _refuse)
        with pytest.raises(KafkaError):
            state.log_manager.compaction.clean("t", 0, state.actions.now_ms)
    assert values(lives.cluster, "t") == before
    assert values(lives.crash_and_restart(), "t") == before
    state = lives.cluster.state
    state.log_manager.compaction.clean("t", 0, state.actions.now_ms)
    left = values(lives.cluster, "t")
    assert len(left) < 6
    assert values(lives.crash_and_restart(), "t") == left
    assert write(lives.cluster, "t", b"x", timestamp=1).error_code == 87  # no key: still compacted
    fill(lives.cluster, "t", build_batch([NewRecord(b"z", b"k", 1_700_000_000_000)]))
    assert values(lives.crash_and_restart(), "t") == [*left, (12, b"z")]


def test_a_divergence_is_seen_in_the_bytes_where_its_fact_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log.PartitionRecorder, "begun", lambda self, state: None)
    lives = Lives(tmp_path, 2)
    lives.cluster.topic("t", 1, 2)
    write(lives.cluster, "t", b"a", acks=-1)
    hold(lives.cluster, 1)
    write(lives.cluster, "t", b"lost")
    write(lives.cluster, "t", b"lost")
    elect(lives.cluster, 1)
    write(lives.cluster, "t", b"b")
    assert values(lives.crash_and_restart(), "t") == [(0, b"a"), (1, b"b")]


def test_a_log_whose_first_segments_were_given_back_begins_where_the_rest_does(tmp_path: Path) -> None:
    """Without a fact: a follower lets them go by itself, and what happened when it began to lead may not have been noted."""
    lives = Lives(tmp_path)
    lives.cluster.topic("t", segment_bytes="150")
    for i in range(4):
        write(lives.cluster, "t", b"%d" % i * 60)
    lives.crash()
    first, second, *_ = sorted((tmp_path / "topics").glob("*/*.log"))
    first.unlink()
    second.unlink()
    log = replica(lives.restart(), 0).log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 4, 4)
    assert [offset for offset, _ in values(lives.crash_and_restart(), "t")] == [2, 3]


def _refuse(self: object, state: object) -> None:
    raise StorageError("no space left")
