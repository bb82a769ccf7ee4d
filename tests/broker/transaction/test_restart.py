"""Transactions after `kill -9` with a data directory: what was acknowledged is there, and open transactions go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaproto.conformance.groups import Group, commit
from kafkaproto.conformance.scene import read
from kafkaproto.conformance.transactions import Producer, producers
from tests.support.broker.transaction_bench import TransactionBench


@pytest.mark.rule("TX-8", "TX-53")
def test_open_transaction_can_be_continued_after_a_broker_crash(tmp_path: Path) -> None:
    bench = TransactionBench(data_dir=tmp_path)
    topic = bench.topic()
    producer = bench.begin(topic)
    bench.crash_and_restart()
    assert producer.describe().transaction_state == "Ongoing"
    assert read(topic, 0, isolation=1).last_stable_offset == 0
    assert producer.send(topic, 1) == (0, 1)
    producer.finish(commit=True)
    bench.crash_and_restart()
    data = read(topic, 0, isolation=1)
    assert (data.last_stable_offset, data.aborted_transactions) == (3, [])
    assert producer.describe().transaction_state == "CompleteCommit"
    assert producers(topic)[1][0][:4] == (producer.producer_id, producer.epoch, 1, producers(topic)[1][0][3])
    bench.stop()


@pytest.mark.rule("TX-8", "TX-54")
@pytest.mark.parametrize("commits", [True, False])
def test_prepared_commit_or_abort_is_completed_after_a_broker_crash(tmp_path: Path, commits: bool) -> None:
    bench = TransactionBench(data_dir=tmp_path)
    topic = bench.topic()
    producer = bench.begin(topic)
    assert producer.end(commit=commits)[0] == 0
    bench.crash_and_restart()
    producer.wait_for("CompleteCommit" if commits else "CompleteAbort")
    for _ in range(2):
        data = read(topic, 0, isolation=1)
        aborted = [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions]
        assert (data.last_stable_offset, aborted) == (2, [] if commits else [(producer.producer_id, 0)])
        bench.crash_and_restart()
    assert producer.init() == (producer.producer_id, 1)
    bench.stop()


@pytest.mark.rule("TX-43")
@pytest.mark.parametrize("commits", [True, False])
def test_pending_transactional_offsets_survive_a_broker_crash(tmp_path: Path, commits: bool) -> None:
    bench = TransactionBench(data_dir=tmp_path)
    topic, group = bench.topic(), Group(bench)
    producer = bench.begin(topic)
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0}
    bench.crash_and_restart()
    assert group.committed({topic.name: [0]}) == {(topic.name, 0): -1}
    [entry] = group.fetch({topic.name: [0]}, require_stable=True).topics[0].partitions
    assert entry.error_code == 88
    producer.finish(commit=commits)
    for _ in range(2):
        assert group.committed({topic.name: [0]}) == {(topic.name, 0): 7 if commits else -1}
        bench.crash_and_restart()
    bench.stop()


@pytest.mark.rule("TX-13")
def test_producer_epochs_and_ids_continue_after_a_broker_crash(tmp_path: Path) -> None:
    bench = TransactionBench(data_dir=tmp_path)
    first, second = Producer(bench), Producer(bench)
    first_id, _ = first.init()
    bench.crash_and_restart()
    assert first.init() == (first_id, 1)
    assert second.init()[0] > first_id
    bench.stop()


@pytest.mark.rule("TX-43")
def test_regular_offset_commit_replaces_an_earlier_pending_transactional_offset() -> None:
    bench = TransactionBench()
    topic, group = bench.topic(), Group(bench)
    producer = bench.begin(topic)
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {(topic.name, 0): 7}) == {(topic.name, 0): 0}
    assert commit(group, {topic.name: {0: (9, "")}}) == {(topic.name, 0): 0}
    producer.finish(commit=True)
    assert group.committed({topic.name: [0]}) == {(topic.name, 0): 9}
    bench.stop()
