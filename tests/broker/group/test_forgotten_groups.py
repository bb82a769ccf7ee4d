"""Consumer groups that a rejected JoinGroup has removed from the coordinator's memory, with `semantics=kafka`, in virtual time (GN-63)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.group.causes import CauseKind, GroupChange
from kafkaproto.broker.runtime.events import Observer
from kafkaproto.conformance.consumer_groups import ConsumerGroup
from kafkaproto.conformance.groups import OFFSETS_TOPIC
from kafkaproto.conformance.test_forgotten_groups import empty_group, hidden_group, listed, reject_join, write_record
from kafkaproto.conformance.transactions import Producer
from tests.support.broker.transaction_bench import TransactionBench
from tests.support.scene import hold, release

pytestmark = pytest.mark.rule("D12", "GN-63")


@pytest.fixture
def bench() -> TransactionBench:
    return TransactionBench(newer=True, semantics="kafka")


def leader_of(bench: TransactionBench, group: ConsumerGroup) -> int:
    return bench.cluster.state.controller.image.leader_of(OFFSETS_TOPIC, group.index)[0]


def move(bench: TransactionBench, group: ConsumerGroup) -> None:
    """Make another broker the coordinator of a group."""
    bench.cluster.state.controller.elect(OFFSETS_TOPIC, group.index, (leader_of(bench, group) + 1) % 3)
    bench.cluster.run()
    group.connection = group.connect()


def test_new_coordinator_loads_a_group_that_the_old_coordinator_dropped_from_memory(bench: TransactionBench) -> None:
    group = hidden_group(bench)
    assert listed(group) is None
    move(bench, group)
    assert (listed(group), group.epochs) == (("consumer", "Empty"), ("Empty", 2, 1))
    assert group.committed() == {(group.topic.name, 0): 5}
    for _ in range(2):
        move(bench, group)
    assert group.enter("B")[0] == 3


def test_new_coordinator_loads_a_classic_group_that_has_the_id_of_a_dropped_group(bench: TransactionBench) -> None:
    """The log still has the records of the removed group, without tombstones, before the records of the classic group."""
    group = hidden_group(bench)
    client = group.client(version=3)
    assert client.join().error_code == 0
    assert client.sync({client.member_id: b"a"}).error_code == 0
    move(bench, group)
    assert listed(group) == ("classic", "Stable")
    assert group.committed() == {(group.topic.name, 0): 5}


def test_list_groups_lists_a_group_dropped_from_memory_until_a_record_is_replicated(bench: TransactionBench) -> None:
    group = empty_group(bench)
    reject_join(group)
    coordinator = leader_of(bench, group)
    followers = [node for node in range(3) if node != coordinator]
    hold(bench.cluster, *followers, topic=OFFSETS_TOPIC, index=group.index)
    log = bench.cluster.state.nodes[coordinator].groups.groups._storage._log
    assert log is not None
    assert log.append_only(group.index, [(b"\0\0\0\0", None)], bench.cluster.now_ms) == 0
    assert listed(group) == ("consumer", "Empty")
    release(bench.cluster, *followers, topic=OFFSETS_TOPIC, index=group.index)
    bench.cluster.advance(1_000)
    assert listed(group) is None


@pytest.mark.parametrize("commits", [True, False])
def test_transaction_can_commit_or_abort_offsets_of_a_group_dropped_from_memory(
    bench: TransactionBench, commits: bool
) -> None:
    group, producer = empty_group(bench), Producer(bench)
    producer.init()
    assert producer.add_offsets(group) == 0
    key = group.topic.name, 0
    assert producer.commit_offsets(group, {key: 9}) == {key: 0}
    reject_join(group)
    write_record(group)
    assert listed(group) is None
    producer.finish(commit=commits)
    assert group.enter("B")[0] == 1
    assert group.committed() == {key: 9 if commits else 5}
    assert group.fetch(None, require_stable=True).topics[0].partitions[0].error_code == 0


def test_group_recreated_by_a_join_has_no_offsets_of_topics_deleted_before_the_join(bench: TransactionBench) -> None:
    group = hidden_group(bench)
    other = group.add_topic()
    bench.cluster.state.controller.delete_topic(group.topic.name)
    bench.cluster.run()
    assert group.enter("B", other.name)[0] == 1
    assert group.committed() == {}


def test_observer_gets_state_dead_when_join_group_makes_kafka_drop_an_empty_group(bench: TransactionBench) -> None:
    group = empty_group(bench)
    changes: list[GroupChange] = []

    class Changes(Observer):
        def group_changed(self, broker_id: int, change: Any, now_ms: int) -> None:
            changes.append(change)

    bench.cluster.state.events.attach(Changes())
    reject_join(group)
    [change] = changes
    assert (change.group_id, change.state) == (group.id, "Dead")
    assert [cause.kind for cause in change.causes] == [CauseKind.FORGOTTEN]
    assert str(change.causes[0]) == (
        "the coordinator forgot the empty group when it rejected a JoinGroup with a member id, as Kafka does"
    )
