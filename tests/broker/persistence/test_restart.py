"""Restart from a data directory after a crash: everything that was acknowledged to a client is recovered."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaproto.broker.config.client_metrics import SubscriptionResource
from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.config.group_config import GroupResource
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.all_groups import AllGroups
from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.persistence import metadata_log as metadata_log
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.testing import cluster
from tests.support.broker.processes import Processes, commit, committed, leader, values, write
from tests.support.scene import elect, fill, hold, replica
from tests.support.wire import limit


def test_records_and_topic_settings_are_unchanged_after_a_crash_and_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", 2, retention_ms="1234567")
    assert write(processes.cluster, "t", b"a", b"b").base_offset == 0
    assert write(processes.cluster, "t", b"c", index=1).base_offset == 0
    assert write(processes.cluster, "t", b"d").base_offset == 2
    before = processes.cluster.state.controller.image.topics
    after = processes.crash_and_restart()
    assert dict(after.state.controller.image.topics) == dict(before)
    assert values(after, "t") == [(0, b"a"), (1, b"b"), (2, b"d")]
    assert values(after, "t", 1) == [(0, b"c")]
    assert write(after, "t", b"e").base_offset == 3
    assert values(processes.crash_and_restart(), "t")[-1] == (3, b"e")


def test_records_survive_a_clean_stop_and_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    processes.end()
    after = processes.restart()
    assert values(after, "t") == [(0, b"a")]
    assert write(after, "t", b"b").base_offset == 1
    processes.end()
    assert values(processes.restart(), "t") == [(0, b"a"), (1, b"b")]


def test_appends_and_segment_rolls_continue_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_bytes="300")
    for _ in range(3):
        for i in range(10):
            write(processes.cluster, "t", b"%d" % i * 40)
        processes.crash_and_restart()
    assert [offset for offset, _ in values(processes.cluster, "t")] == list(range(30))
    assert len(list((tmp_path / "topics").glob("*/*.log"))) > 10


def test_committed_offsets_and_client_quotas_survive_two_restarts(tmp_path: Path) -> None:
    processes = Processes(tmp_path, config={"quota.producer.default": "1M"})
    processes.cluster.topic("t")
    assert commit(processes.cluster, "g", "t", 7) == 0
    limit(processes.cluster, "c", consumer_byte_rate=1000.0)
    entity = next(entity for entity, _ in processes.cluster.state.quota_store.all() if not entity.client_id)
    processes.cluster.state.quota_store.set(entity, "producer_byte_rate", None)
    ids = {processes.cluster.state.nodes[0].transactions.producer_ids.take() for _ in range(3)}
    for _ in range(2):
        after = processes.crash_and_restart()
        assert committed(after, "g", "t") == 7
        assert list(after.state.quota_store.all().values()) == [1000.0]
        new = {after.state.nodes[0].transactions.producer_ids.take() for _ in range(3)}
        assert not new & ids
        ids |= new


@pytest.mark.rule("R-1", "R-2")
def test_throttled_replicas_and_replication_rates_survive_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path, brokers=2)
    processes.cluster.topic("t", 2, 1, leader_replication_throttled_replicas="0:0,1:1")
    for broker_id, rate in ((-1, "1000"), (1, "2000")):
        rates = [Change("leader.replication.throttled.rate", 0, rate)]
        change(BrokerResource(processes.cluster.state, broker_id), rates, strict_kip=True)
    for _ in range(2):
        quotas = [node.replicas.leader_quota for node in processes.crash_and_restart().state.nodes]
        assert [quota.bound for quota in quotas] == [1000, 2000]
        assert [[quota.lists("t", index) for index in (0, 1)] for quota in quotas] == [[True, False], [False, True]]


def test_broker_and_group_settings_keep_their_exact_text_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path, release_name="4.2", config={"min.insync.replicas": "1"})
    written = {"log.retention.ms": "+9000", "min.insync.replicas": "2"}
    changes = [Change(name, 0, text) for name, text in written.items()]
    change(BrokerResource(processes.cluster.state, -1), changes, strict_kip=True)
    for group_id in ("g", "gone"):
        session = [Change("consumer.session.timeout.ms", 0, "50000")]
        change(GroupResource(processes.cluster.state, 0, group_id), session, strict_kip=True)
    deletion = [Change("consumer.session.timeout.ms", 1, None)]
    change(GroupResource(processes.cluster.state, 0, "gone"), deletion, strict_kip=True)
    for _ in range(2):
        config = processes.crash_and_restart().state.config
        assert config.dynamic_texts(-1) == written
        assert config.groups == {"g": {"consumer.session.timeout.ms": "50000"}}
        assert (config.get(0, "log.retention.ms"), config.get(0, "min.insync.replicas")) == (9000, 2)


def test_client_metrics_subscriptions_survive_a_restart_but_not_a_cluster_reset(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    for name in ("kept", "gone"):
        change(SubscriptionResource(processes.cluster.state, name), [Change("metrics", 0, "a.,b.")], strict_kip=True)
    change(SubscriptionResource(processes.cluster.state, "gone"), [Change("metrics", 1, None)], strict_kip=True)
    for _ in range(2):
        state = processes.crash_and_restart().state
        assert state.config.client_metrics == {"kept": {"metrics": "a.,b."}}
    state.reset()
    assert state.config.client_metrics == {}


def test_topic_created_in_release_3_9_keeps_a_segment_size_that_release_4_2_rejects(tmp_path: Path) -> None:
    older = Processes(tmp_path, release_name="3.9")
    older.cluster.topic("t", segment_bytes="500", message_format_version="2.8", message_downconversion_enable="false")
    older.end()
    newer = Processes(tmp_path, release_name="4.2").cluster
    topic = newer.state.controller.image.topics["t"]
    assert newer.state.config.for_broker(0).topic(topic.configs, "segment.bytes") == 500
    with pytest.raises(ConfigError, match=r"segment\.bytes must be an integer from 1048576"):
        newer.state.controller.set_topic_configs("t", {"segment.bytes": "500"})


def test_records_and_committed_offsets_of_a_deleted_topic_are_gone_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    commit(processes.cluster, "g", "t", 1)
    processes.cluster.state.controller.delete_topic("t")
    processes.cluster.topic("t")
    after = processes.crash_and_restart()
    assert values(after, "t") == []
    assert committed(after, "g", "t") == -1
    after.advance(60_000)  # log.segment.delete.delay.ms
    offsets = after.state.controller.image.topics["__consumer_offsets"].topic_id.hex()
    assert [path for path in (tmp_path / "topics").glob("*/*") if not path.parent.name.startswith(offsets)] == []


def test_topic_ids_are_never_reused_after_restarts(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    topic_ids = set()
    for i in range(3):
        processes.cluster.topic(f"t{i}")
        topic_ids.add(processes.cluster.state.controller.image.topics[f"t{i}"].topic_id)
        processes.crash_and_restart()
    assert len(topic_ids) == 3


def test_followers_have_all_records_of_the_leader_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path, 3)
    processes.cluster.topic("t", 1, 3)
    write(processes.cluster, "t", b"a", acks=-1)
    hold(processes.cluster, 1, 2)
    write(processes.cluster, "t", b"b")
    after = processes.crash_and_restart()
    assert [values(after, "t", broker_id=i) for i in range(3)] == [[(0, b"a"), (1, b"b")]] * 3
    assert replica(after, 0).log.high_watermark == 2


def test_records_lost_in_a_leader_election_stay_lost_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path, 3)
    processes.cluster.topic("t", 1, 3)
    write(processes.cluster, "t", b"a", acks=-1)
    hold(processes.cluster, 1, 2)
    write(processes.cluster, "t", b"lost")
    elect(processes.cluster, 1)
    assert values(processes.cluster, "t") == [(0, b"a")]
    assert leader(processes.crash_and_restart(), "t") == 1
    assert values(processes.cluster, "t") == [(0, b"a")]
    write(processes.cluster, "t", b"b", acks=-1)
    elect(processes.cluster, 2)
    epochs = replica(processes.cluster, 2).log.epochs.entries()
    after = processes.crash_and_restart()
    assert values(after, "t") == [(0, b"a"), (1, b"b")]
    assert replica(after, 2).log.epochs.entries() == epochs
    assert after.state.controller.image.leader_of("t", 0) == (2, 2)


def test_records_lost_in_the_election_of_an_empty_replica_stay_lost_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path, 3)
    processes.cluster.topic("t", 1, 3)
    hold(processes.cluster, 1, 2)
    write(processes.cluster, "t", b"lost")
    elect(processes.cluster, 1)
    for _ in range(2):
        assert values(processes.crash_and_restart(), "t") == []
    write(processes.cluster, "t", b"a")
    assert values(processes.crash_and_restart(), "t") == [(0, b"a")]


@pytest.mark.rule("P-18")
def test_duplicate_produce_is_recognised_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    options = {"producer_id": 5, "producer_epoch": 0}
    for sequence in range(7):
        write(processes.cluster, "t", b"a", base_sequence=sequence, **options)
    for _ in range(2):
        after = processes.crash_and_restart()
        again = write(after, "t", b"a", base_sequence=6, **options)
        assert (again.error_code, again.base_offset) == (0, 6)
        assert write(after, "t", b"a", base_sequence=9, **options).error_code == 45
        replica(after, 0).log.raise_log_start(7)  # the batches are deleted, the producer state is kept


def test_log_start_offset_and_freed_space_survive_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_bytes="300")
    for i in range(20):
        write(processes.cluster, "t", b"%02d" % i * 30)
    replica(processes.cluster, 0).delete_records_before(13)
    files = sorted(path.name for path in (tmp_path / "topics").glob("*/*.log"))
    after = processes.crash_and_restart()
    assert [offset for offset, _ in values(after, "t")] == list(range(13, 20))
    assert sorted(path.name for path in (tmp_path / "topics").glob("*/*")) == files
    replica(after, 0).delete_records_before(20)
    after = processes.crash_and_restart()
    assert values(after, "t") == []
    assert write(after, "t", b"x").base_offset == 20
    assert values(processes.crash_and_restart(), "t") == [(20, b"x")]


def test_cluster_reset_deletes_all_persisted_data(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    write(processes.cluster, "t", b"a")
    commit(processes.cluster, "g", "t", 1)
    limit(processes.cluster, "c", consumer_byte_rate=1000.0)
    processes.cluster.state.reset()
    after = processes.crash_and_restart()
    assert not after.state.controller.image.topics
    assert not after.state.quota_store.all()
    assert list(after.state.groups.offsets()) == []
    after.advance(60_000)  # log.segment.delete.delay.ms
    assert list((tmp_path / "topics").iterdir()) == []


def test_segment_written_before_a_restart_is_rolled_by_segment_ms(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_ms="1000")
    first_ms = 1_700_000_000_000
    write(processes.cluster, "t", b"a", timestamp=first_ms)
    processes.crash_and_restart()
    write(processes.cluster, "t", b"b", timestamp=first_ms + 1000)
    assert len(list((tmp_path / "topics").glob("*/*.log"))) == 1
    write(processes.cluster, "t", b"c", timestamp=first_ms + 1001)
    assert len(list((tmp_path / "topics").glob("*/*.log"))) == 2


def test_topic_setting_flush_messages_2_syncs_only_that_topic_after_two_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    processes = Processes(tmp_path)
    processes.cluster.topic("t", flush_messages="2")
    processes.cluster.topic("u")
    for topic in "tttuuu":
        write(processes.cluster, topic, b"a")
    assert len(flushed) == 1


def test_metadata_log_stays_below_25_kb_after_500_offset_commits_to_one_partition(tmp_path: Path) -> None:
    processes = Processes(tmp_path, config={"metadata.log.max.record.bytes.between.snapshots": "10000"})
    processes.cluster.topic("t")
    for offset in range(500):
        assert commit(processes.cluster, "g", "t", offset) == 0
    assert (tmp_path / "facts").stat().st_size < 25_000
    assert committed(processes.crash_and_restart(), "g", "t") == 499


def test_records_in_a_data_dir_are_kept_until_the_cluster_is_reset(tmp_path: Path) -> None:
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
@pytest.mark.parametrize("has_later_batches", [False, True], ids=["nothing after", "batches after"])
def test_retry_of_a_batch_deleted_before_a_crash_is_recognised_as_a_duplicate(
    tmp_path: Path, has_later_batches: bool
) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    options = {"producer_id": 5, "producer_epoch": 0}
    for sequence in range(3):
        write(processes.cluster, "t", b"a", base_sequence=sequence, **options)
    replica(processes.cluster, 0).delete_records_before(3)
    if has_later_batches:
        write(processes.cluster, "t", b"of another")
    after = processes.crash_and_restart()
    assert write(after, "t", b"a", base_sequence=2, **options).base_offset == 2
    assert write(after, "t", b"a", base_sequence=9, **options).error_code == 45


def test_finished_compaction_survives_a_crash_and_unfinished_compaction_is_dropped(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t", cleanup_policy="compact", segment_bytes="300")
    for number in range(12):
        data = build_batch([NewRecord(b"%02d" % number * 20, b"%d" % (number % 2), 1_700_000_000_000)])
        fill(processes.cluster, "t", data)
    state = processes.cluster.state
    before = values(processes.cluster, "t")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(metadata_log.PartitionRecorder, "cleaned", _refuse)
        with pytest.raises(KafkaError):
            state.log_manager.compaction.clean("t", 0, state.actions.now_ms)
    assert values(processes.cluster, "t") == before
    assert values(processes.crash_and_restart(), "t") == before
    state = processes.cluster.state
    state.log_manager.compaction.clean("t", 0, state.actions.now_ms)
    compacted = values(processes.cluster, "t")
    assert len(compacted) < 6
    assert values(processes.crash_and_restart(), "t") == compacted
    assert write(processes.cluster, "t", b"x", timestamp=1).error_code == 87  # no key: still compacted
    fill(processes.cluster, "t", build_batch([NewRecord(b"z", b"k", 1_700_000_000_000)]))
    assert values(processes.crash_and_restart(), "t") == [*compacted, (12, b"z")]


def test_restart_removes_diverged_records_using_the_leader_epochs_in_the_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_log.PartitionRecorder, "leadership_started", lambda self, state: None)
    processes = Processes(tmp_path, 2)
    processes.cluster.topic("t", 1, 2)
    write(processes.cluster, "t", b"a", acks=-1)
    hold(processes.cluster, 1)
    write(processes.cluster, "t", b"lost")
    write(processes.cluster, "t", b"lost")
    elect(processes.cluster, 1)
    write(processes.cluster, "t", b"b")
    assert values(processes.crash_and_restart(), "t") == [(0, b"a"), (1, b"b")]


def test_restart_sets_the_log_start_to_the_first_existing_segment_file(tmp_path: Path) -> None:
    """A follower drops segments without an entry in the metadata log, and the entry of its new leadership may be missing."""
    processes = Processes(tmp_path)
    processes.cluster.topic("t", segment_bytes="150")
    for i in range(4):
        write(processes.cluster, "t", b"%d" % i * 60)
    processes.crash()
    first, second, *_ = sorted((tmp_path / "topics").glob("*/*.log"))
    first.unlink()
    second.unlink()
    log = replica(processes.restart(), 0).log
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (2, 4, 4)
    assert [offset for offset, _ in values(processes.crash_and_restart(), "t")] == [2, 3]


def _refuse(self: object, state: object) -> None:
    raise StorageError("no space left")


def test_unknown_dynamic_broker_setting_keeps_its_value_after_a_crash_and_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path)
    change(BrokerResource(processes.cluster.state, 0), [Change("no.such", 0, "1")], strict_kip=True)
    assert processes.crash_and_restart().state.config.dynamic_texts(0) == {"no.such": "1"}


@pytest.mark.rule("GO-25")
def test_topic_deleted_just_before_a_crash_has_no_committed_offsets_when_recreated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = Processes(tmp_path)
    processes.cluster.topic("t")
    assert commit(processes.cluster, "g", "t", 7) == 0
    with monkeypatch.context() as killed:
        killed.setattr(AllGroups, "forget_topics", lambda *_: None)
        processes.cluster.state.controller.delete_topic("t")
    after = processes.crash_and_restart()
    after.topic("t")
    assert committed(after, "g", "t") == -1
    assert committed(processes.crash_and_restart(), "g", "t") == -1
