"""Followers that fetch and lag: acknowledgements, high watermark, in-sync replicas and elections, in virtual time."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.wire import batch, batch_of_bytes, errors, fetch, flat, produce, produced, sizes


def three(semantics: Any = "kip", **config: str) -> VirtualCluster:
    cluster = VirtualCluster(3, config, semantics=semantics)
    cluster.topic("t", 1, 3)
    return cluster


def replica(cluster: VirtualCluster, broker_id: int) -> Partition:
    return cluster.state.nodes[broker_id].replicas.partitions[("t", 0)]


def hold(cluster: VirtualCluster, broker_id: int, at: int | None = None) -> None:
    for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
        if ("t", 0) in fetcher.partitions:
            fetcher.hold("t", 0, at, cluster.now_ms)


def release(cluster: VirtualCluster, broker_id: int) -> None:
    for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
        if ("t", 0) in fetcher.partitions:
            fetcher.release("t", 0)
    cluster.run()


def isr(cluster: VirtualCluster) -> tuple[int, ...]:
    state = cluster.state.controller.image.partition("t", 0)
    assert state is not None
    return state.isr


@pytest.mark.rule("P-13")
def test_acks_all_produce_completes_when_all_in_sync_replicas_have_the_records() -> None:
    cluster = three()
    client = cluster.connect()
    response = client.ask(produce("t", batch(b"a", b"b"), acks=-1), 9)
    assert (produced(response).error_code, produced(response).base_offset) == (0, 0)
    assert [replica(cluster, b).log.log_end_offset for b in range(3)] == [2, 2, 2]
    assert replica(cluster, 0).log.high_watermark == 2


@pytest.mark.rule("P-13")
def test_acks_all_produce_waits_for_a_lagging_follower_and_acks_1_does_not() -> None:
    cluster = three()
    hold(cluster, 2)
    patient, hasty = cluster.connect(), cluster.connect()
    patient.send(produce("t", batch(b"a"), acks=-1, timeout_ms=5000), 9)
    assert produced(hasty.ask(produce("t", batch(b"b"), acks=1), 9)).base_offset == 1
    assert patient.answers == []
    cluster.advance(100)
    release(cluster, 2)
    assert produced(patient.latest).error_code == 0
    assert patient.answers[0].at_ms == cluster.now_ms


@pytest.mark.rule("P-13")
def test_acks_all_produce_that_times_out_gets_an_error_and_keeps_its_records() -> None:
    cluster = three()
    cluster.connect().ask(produce("t", batch(b"a"), acks=-1), 9)
    hold(cluster, 2)
    client = cluster.connect()
    start_ms = cluster.now_ms
    client.send(produce("t", batch(b"b"), acks=-1, timeout_ms=700), 9)
    cluster.advance(1000)
    assert client.answers[0].at_ms == start_ms + 700
    assert (produced(client.latest).error_code, produced(client.latest).base_offset) == (7, 1)
    assert replica(cluster, 0).log.log_end_offset == 2


@pytest.mark.rule("P-15")
def test_high_watermark_is_the_smallest_log_end_offset_of_the_in_sync_replicas() -> None:
    cluster = three()
    hold(cluster, 1, at=1)
    client = cluster.connect()
    for value in (b"a", b"b", b"c"):
        client.ask(produce("t", batch(value)), 9)
    assert [replica(cluster, b).log.log_end_offset for b in range(3)] == [3, 1, 3]
    assert replica(cluster, 0).log.high_watermark == 1
    release(cluster, 1)
    assert replica(cluster, 0).log.high_watermark == 3


@pytest.mark.rule("P-15")
def test_lagging_follower_leaves_the_isr_and_rejoins_after_catching_up() -> None:
    cluster = three(**{"replica.lag.time.max.ms": "10000"})
    cluster.advance(60_000)  # idle followers stay in sync, and were caught up a moment ago
    hold(cluster, 2)
    client = cluster.connect()
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=60_000), 9)
    cluster.advance(9_400)
    assert isr(cluster) == (0, 1, 2)
    cluster.advance(700)
    assert isr(cluster) == (0, 1)
    assert produced(client.latest).error_code == 0
    release(cluster, 2)
    assert isr(cluster) == (0, 1, 2)


@pytest.mark.rule("P-7")
def test_acks_all_produce_below_min_insync_replicas_gets_error_not_enough_replicas() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3, min_insync_replicas="3")
    cluster.state.stop_broker(2)
    cluster.run()
    client = cluster.connect()
    assert produced(client.ask(produce("t", batch(b"a"), acks=-1), 9)).error_code == 19
    assert replica(cluster, 0).log.log_end_offset == 0
    assert produced(client.ask(produce("t", batch(b"a"), acks=1), 9)).error_code == 0


@pytest.mark.rule("P-7")
def test_acks_all_succeeds_at_replication_factor_1_even_if_min_insync_replicas_is_3() -> None:
    cluster = VirtualCluster(1)
    cluster.topic("t", 1, 1, min_insync_replicas="3")
    assert produced(cluster.connect().ask(produce("t", batch(b"a"), acks=-1), 9)).error_code == 0


@pytest.mark.rule("P-15")
def test_high_watermark_does_not_advance_while_too_few_replicas_are_in_sync() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3, min_insync_replicas="2")
    for broker_id in (1, 2):
        cluster.state.stop_broker(broker_id)
    cluster.run()
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert replica(cluster, 0).log.high_watermark == 0
    cluster.state.start_broker(1)
    cluster.run()
    assert replica(cluster, 0).log.high_watermark == 1


@pytest.mark.rule("F-30")
def test_append_that_does_not_move_the_high_watermark_completes_no_consumer_fetch() -> None:
    """The fetch of the lagging follower completes the consumer's fetch."""
    cluster = three()
    hold(cluster, 2)
    reader = cluster.connect()
    reader.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    cluster.advance(200)
    assert reader.answers == []
    release(cluster, 2)
    assert len(sizes(reader.latest)) == 1
    assert sizes(reader.latest)[0] > 0


@pytest.mark.rule("F-18")
def test_follower_fetch_that_advances_the_high_watermark_returns_the_old_watermark() -> None:
    cluster = VirtualCluster(2, semantics="kafka")
    cluster.topic("t", 1, 2)
    hold(cluster, 1)
    client = cluster.connect()
    client.ask(produce("t", batch(b"a")), 9)
    client.ask(produce("t", batch(b"b")), 9)
    response = client.ask(fetch(("t", 0, 1), replica_id=1), 11)
    assert flat(response)[0][1].high_watermark == 0
    assert replica(cluster, 0).log.high_watermark == 1


@pytest.mark.rule("D5", "N-10")
def test_new_high_watermark_reaches_followers_at_once_if_broker_follows_kips() -> None:
    cluster = three()
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert [replica(cluster, b).log.high_watermark for b in range(3)] == [1, 1, 1]


@pytest.mark.rule("D5", "N-10")
def test_high_watermark_reaches_followers_by_next_fetch_if_broker_follows_kafka_code() -> None:
    cluster = three("kafka")
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert [replica(cluster, b).log.high_watermark for b in range(3)] == [1, 0, 0]
    cluster.advance(499)
    assert replica(cluster, 1).log.high_watermark == 0
    cluster.advance(1)
    assert [replica(cluster, b).log.high_watermark for b in range(3)] == [1, 1, 1]


@pytest.mark.rule("N-10")
def test_consumer_fetch_parked_on_a_follower_ends_when_the_high_watermark_advances() -> None:
    cluster = three("kafka")
    reader = cluster.connect(1)
    start_ms = cluster.now_ms
    reader.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert reader.answers == []
    cluster.advance(2000)
    assert reader.answers[0].at_ms == start_ms + 500
    assert sizes(reader.latest)[0] > 0


@pytest.mark.rule("N-8")
def test_follower_returns_records_to_a_consumer_with_fetch_v11_but_rejects_fetch_v10() -> None:
    cluster = three()
    client = cluster.connect(2)
    cluster.connect().ask(produce("t", batch_of_bytes(200)), 9)
    assert sizes(client.ask(fetch(("t", 0, 0)), 11)) == [200]
    assert flat(client.latest)[0][1].preferred_read_replica == -1
    assert errors(client.ask(fetch(("t", 0, 0)), 10)) == [6]


def racks(semantics: Any = "kip") -> VirtualCluster:
    selector = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
    named = {f"{i}.broker.rack": rack for i, rack in enumerate("abc")}
    return three(semantics, **selector, **named)


def preferred(answer: Any) -> int:
    return int(flat(answer)[0][1].preferred_read_replica)


@pytest.mark.rule("N-4", "N-5")
def test_consumer_in_the_rack_of_a_follower_is_directed_to_that_follower_immediately() -> None:
    cluster = racks()
    cluster.connect().ask(produce("t", batch_of_bytes(300)), 9)
    client = cluster.connect()
    response = client.ask(fetch(("t", 0, 0), rack="b", max_wait_ms=5000), 11)
    data = flat(response)[0][1]
    assert (data.error_code, data.preferred_read_replica, data.high_watermark, data.log_start_offset) == (0, 1, 1, 0)
    assert sizes(response) == [0]
    assert data.aborted_transactions is None


@pytest.mark.rule("N-2", "N-4")
@pytest.mark.parametrize(("rack", "version"), [("a", 11), ("", 11), ("nowhere", 11), ("b", 10)])
def test_consumer_without_a_follower_in_its_rack_reads_from_the_leader(rack: str, version: int) -> None:
    cluster = racks()
    cluster.connect().ask(produce("t", batch_of_bytes(300)), 9)
    response = cluster.connect().ask(fetch(("t", 0, 0), rack=rack if version >= 11 else ""), version)
    assert sizes(response) == [300]
    assert preferred(response) == -1


@pytest.mark.rule("N-1")
def test_no_preferred_read_replica_is_returned_without_a_replica_selector() -> None:
    cluster = three(**{"1.broker.rack": "b"})
    cluster.connect().ask(produce("t", batch_of_bytes(300)), 9)
    assert preferred(cluster.connect().ask(fetch(("t", 0, 0), rack="b"), 11)) == -1


@pytest.mark.rule("N-3")
def test_follower_whose_log_ends_before_the_fetch_offset_is_no_preferred_replica() -> None:
    cluster = racks()
    hold(cluster, 1, at=1)
    client = cluster.connect()
    for _ in range(3):
        client.ask(produce("t", batch_of_bytes(100)), 9)
    assert preferred(client.ask(fetch(("t", 0, 1), rack="b"), 11)) == 1
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == 1
    assert preferred(client.ask(fetch(("t", 0, 2), rack="b", isolation=0), 11)) == -1


@pytest.mark.rule("N-3")
def test_out_of_sync_follower_is_not_a_preferred_read_replica() -> None:
    cluster = racks()
    hold(cluster, 1)
    client = cluster.connect()
    client.ask(produce("t", batch_of_bytes(100)), 9)
    cluster.advance(31_000)
    assert isr(cluster) == (0, 2)
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == -1


@pytest.mark.rule("N-6", "N-7")
def test_stopped_follower_is_no_preferred_read_replica_until_it_is_restarted() -> None:
    cluster = racks()
    client = cluster.connect()
    client.ask(produce("t", batch_of_bytes(100)), 9)
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == 1
    cluster.state.stop_broker(1)
    cluster.run()
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == -1
    cluster.state.start_broker(1)
    cluster.run()
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == 1


@pytest.mark.rule("N-5")
def test_leader_epoch_is_checked_before_the_preferred_read_replica_is_selected() -> None:
    cluster = racks()
    client = cluster.connect()
    client.ask(produce("t", batch_of_bytes(100)), 9)
    assert errors(client.ask(fetch(("t", 0, 0), rack="b", epoch=1), 11)) == [75]


class LastOne:
    """A replica selector written by a user (N-14)."""

    def select(self, topic_partition: Any, client_metadata: Any, partition_view: Any) -> Any:
        if client_metadata.client_id == "broken":
            raise RuntimeError("as users' classes do")
        return partition_view.replicas[-1]


@pytest.mark.rule("N-14")
def test_fetch_gets_no_preferred_read_replica_if_the_custom_selector_raises_an_error() -> None:
    cluster = three(**{"replica.selector.class": f"{__name__}:LastOne"})
    cluster.connect().ask(produce("t", batch_of_bytes(100)), 9)
    assert preferred(cluster.connect().ask(fetch(("t", 0, 0)), 11)) == 2
    assert preferred(cluster.connect(client_id="broken").ask(fetch(("t", 0, 0)), 11)) == -1


class WithoutConfiguration:
    """A selector of a user whose `configure` fails."""

    def configure(self, settings: Any) -> None:
        raise KeyError("zone")


@pytest.mark.rule("N-14")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nothing.here:Class", "No module named 'nothing'"),
        ("builtins:nothing", "module 'builtins' has no attribute 'nothing'"),
        ("Class", "a Python class must be given as package.module:Class"),
        (":Class", "ValueError: Empty module name"),
        ("builtins:range", "TypeError: range expected at least 1 argument, got 0"),
        (f"{__name__}:WithoutConfiguration", "KeyError: 'zone'"),
        ("builtins:dict", "the class lacks the method select, which every replica selector must have"),
    ],
)
def test_replica_selector_class_that_cannot_be_loaded_is_rejected(name: str, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"replica.selector.class={name}: {reason}; allowed are ")) as raised:
        three(**{"replica.selector.class": name})
    assert "RackAwareReplicaSelector or a Python class, for example mypackage.racks:NearestSelector" in str(
        raised.value
    )


@pytest.mark.rule("N-11", "N-12")
def test_follower_fetches_at_offsets_4_and_2_set_the_high_watermark_to_2() -> None:
    cluster = racks()
    for broker_id in (1, 2):
        hold(cluster, broker_id)
    client = cluster.connect()
    for _ in range(4):
        client.ask(produce("t", batch_of_bytes(100)), 9)
    assert preferred(client.ask(fetch(("t", 0, 3), rack="b"), 11)) == -1
    client.ask(fetch(("t", 0, 4), replica_id=1), 11)
    client.ask(fetch(("t", 0, 2), replica_id=2), 11)
    assert replica(cluster, 0).log.high_watermark == 2
    assert preferred(client.ask(fetch(("t", 0, 2), rack="b"), 11)) == 1
    assert preferred(client.ask(fetch(("t", 0, 2), rack="c"), 11)) == 2


@pytest.mark.rule("M-6", "E-3")
def test_followers_replicate_records_and_the_leader_epoch_of_a_new_leader() -> None:
    cluster = three()
    cluster.connect().ask(produce("t", batch(b"a"), acks=-1), 9)
    cluster.state.stop_broker(0)
    cluster.run()
    state = cluster.state.controller.image.partition("t", 0)
    assert state is not None
    assert (state.leader, state.leader_epoch, state.isr) == (1, 1, (1, 2))
    assert produced(cluster.connect(1).ask(produce("t", batch(b"b"), acks=-1), 9)).base_offset == 1
    assert [e.start_offset for e in replica(cluster, 2).log.epochs.entries()] == [0, 1]
    cluster.state.start_broker(0)
    cluster.run()
    assert replica(cluster, 0).log.read_all() == replica(cluster, 1).log.read_all()
    assert isr(cluster) == (1, 2, 0)  # the last to join is the last of the list (M-13)


@pytest.mark.rule("E-3")
def test_restarted_leader_replaces_unreplicated_records_by_those_of_the_new_leader() -> None:
    cluster = three(**{"replica.lag.time.max.ms": "1000"})
    client = cluster.connect()
    client.ask(produce("t", batch(b"common"), acks=-1), 9)
    hold(cluster, 1)
    hold(cluster, 2)
    client.ask(produce("t", batch(b"lost", b"lost too")), 9)
    cluster.state.stop_broker(0)
    cluster.run()
    other = cluster.connect(1)
    assert produced(other.ask(produce("t", batch(b"kept")), 9)).base_offset == 1
    cluster.state.start_broker(0)
    cluster.run()
    assert replica(cluster, 0).log.read_all() == replica(cluster, 1).log.read_all()
    assert replica(cluster, 0).log.log_end_offset == 2


@pytest.mark.rule("P-13")
def test_parked_produce_gets_error_not_leader_or_follower_if_its_leader_changes() -> None:
    cluster = three()
    hold(cluster, 2)
    client = cluster.connect()
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=10_000), 9)
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    assert produced(client.latest).error_code == 6


@pytest.mark.rule("F-29")
def test_parked_fetch_completes_when_leadership_moves() -> None:
    cluster = three()
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=20_000, epoch=0), 11)
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    assert errors(client.latest) == [74]


@pytest.mark.rule("F-29")
def test_parked_fetch_completes_when_its_topic_is_deleted() -> None:
    cluster = three()
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    assert errors(client.latest) == [3]


def test_electing_a_broker_that_is_not_an_in_sync_replica_raises_an_error() -> None:
    cluster = three()
    with pytest.raises(KafkaError, match="in-sync"):
        cluster.state.controller.elect("t", 0, 7)


def test_partition_whose_only_replica_is_stopped_has_no_leader_until_it_restarts() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 1)
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    cluster.state.stop_broker(0)
    cluster.run()
    assert cluster.state.controller.image.leader_of("t", 0)[0] == -1
    cluster.state.start_broker(0)
    cluster.run()
    assert cluster.state.controller.image.leader_of("t", 0)[0] == 0
    assert replica(cluster, 0).log.log_end_offset == 1


def test_acks_all_response_is_delayed_by_the_setting_kafkaproto_replica_delay_ms() -> None:
    cluster = three(**{"kafkaproto.replica.delay.ms": "250"})
    client = cluster.connect()
    start_ms = cluster.now_ms
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=5000), 9)
    cluster.advance(2000)
    assert client.answers[0].at_ms == start_ms + 250


def test_replicas_of_a_partition_share_the_same_record_bytes_in_memory() -> None:
    cluster = three()
    used = cluster.state.budget.used_bytes
    cluster.connect().ask(produce("t", batch_of_bytes(40_000), acks=-1), 9)
    assert cluster.state.budget.used_bytes - used < 2 * 40_000
    assert replica(cluster, 0).log.store is replica(cluster, 2).log.store


@pytest.mark.rule("P-15")
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_followers_that_restart_at_the_same_time_all_rejoin_the_isr(order: tuple[int, ...]) -> None:
    cluster = three()
    cluster.connect().ask(produce("t", batch(b"a"), acks=-1), 9)
    for broker_id in order:
        cluster.state.stop_broker(broker_id)
        cluster.run()
    for broker_id in order:
        cluster.state.start_broker(broker_id)
        cluster.run()
    assert set(isr(cluster)) == {0, 1, 2}


@pytest.mark.rule("P-15")
def test_removing_one_isr_member_and_adding_another_at_the_same_time_both_succeed() -> None:
    cluster = three()
    cluster.state.isr_changes.propose("t", 0, (0, 1))
    cluster.run()
    assert isr(cluster) == (0, 1)
    cluster.state.isr_changes.propose("t", 0, (0,))
    cluster.state.isr_changes.propose("t", 0, (0, 1, 2))
    cluster.run()
    assert isr(cluster) == (0, 2)


def test_follower_slowed_by_300_ms_lags_while_other_followers_replicate_immediately() -> None:
    cluster = three(**{"replica.fetch.max.bytes": "100"})
    for fetcher in cluster.state.nodes[2].replicas.fetchers.values():
        fetcher.slow("t", 0, 300)
    start_ms = cluster.now_ms
    cluster.connect().ask(produce("t", batch_of_bytes(90), acks=1), 9)
    cluster.connect().ask(produce("t", batch_of_bytes(90), acks=1), 9)
    ends = []
    for _ in range(7):
        ends.append(
            (cluster.now_ms - start_ms, replica(cluster, 1).log.log_end_offset, replica(cluster, 2).log.log_end_offset)
        )
        cluster.advance(100)
    assert ends == [(at, 2, at // 300) for at in range(0, 700, 100)]
    release(cluster, 2)
    cluster.connect().ask(produce("t", batch_of_bytes(90), acks=1), 9)
    assert replica(cluster, 2).log.log_end_offset == 3


@pytest.mark.rule("N-9", "N-15")
def test_follower_catches_up_if_the_leader_log_start_lies_inside_a_batch() -> None:
    """DeleteRecords moved the new leader's log start into a batch, exactly to the end of the old leader's log.

    Found by seed 1610 of the simulation.
    """
    cluster = three()
    client = cluster.connect()
    client.ask(produce("t", batch(b"0"), acks=-1), 9)
    hold(cluster, 1)
    hold(cluster, 2)
    client.ask(produce("t", batch(b"1")), 9)  # only the leader has it
    cluster.state.stop_broker(0)
    cluster.run()
    leader, _ = cluster.state.controller.image.leader_of("t", 0)
    for follower in {1, 2} - {leader}:
        cluster.state.nodes[follower].replicas.release("t", 0)
    other = cluster.connect(leader)
    assert produced(other.ask(produce("t", batch(b"a", b"b", b"c", b"d"), acks=-1), 9)).base_offset == 1
    replica(cluster, leader).delete_records_before(2)
    cluster.state.start_broker(0)
    cluster.run()
    cluster.advance(2000)
    log = replica(cluster, 0).log
    assert (log.log_start_offset, log.log_end_offset) == (2, 5)
    assert 0 in cluster.state.controller.image.topics["t"].partitions[0].isr
    other.ask(produce("t", batch(b"e")), 9)
    cluster.advance(1000)
    assert log.log_end_offset == 6
