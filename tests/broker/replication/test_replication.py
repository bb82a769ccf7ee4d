"""Followers that really fetch and lag: acknowledgement, high watermark, in-sync replicas, elections, in virtual time."""

from __future__ import annotations

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
def test_acks_all_is_answered_when_every_in_sync_replica_has_the_records() -> None:
    cluster = three()
    client = cluster.connect()
    answer = client.ask(produce("t", batch(b"a", b"b"), acks=-1), 9)
    assert (produced(answer).error_code, produced(answer).base_offset) == (0, 0)
    assert [replica(cluster, b).log.log_end_offset for b in range(3)] == [2, 2, 2]
    assert replica(cluster, 0).log.high_watermark == 2


@pytest.mark.rule("P-13")
def test_acks_all_waits_for_a_held_follower_and_acks_1_does_not() -> None:
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
def test_a_timeout_answers_7_with_the_real_offset_and_the_data_stays() -> None:
    cluster = three()
    cluster.connect().ask(produce("t", batch(b"a"), acks=-1), 9)
    hold(cluster, 2)
    client = cluster.connect()
    begun = cluster.now_ms
    client.send(produce("t", batch(b"b"), acks=-1, timeout_ms=700), 9)
    cluster.advance(1000)
    assert client.answers[0].at_ms == begun + 700
    assert (produced(client.latest).error_code, produced(client.latest).base_offset) == (7, 1)
    assert replica(cluster, 0).log.log_end_offset == 2


@pytest.mark.rule("P-15")
def test_the_high_watermark_is_the_smallest_log_end_of_the_isr() -> None:
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
def test_a_follower_that_lags_too_long_leaves_the_isr_and_comes_back() -> None:
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
def test_acks_all_below_the_minimum_isr_is_refused_with_19_and_not_appended() -> None:
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3, min_insync_replicas="3")
    cluster.state.stop_broker(2)
    cluster.run()
    client = cluster.connect()
    assert produced(client.ask(produce("t", batch(b"a"), acks=-1), 9)).error_code == 19
    assert replica(cluster, 0).log.log_end_offset == 0
    assert produced(client.ask(produce("t", batch(b"a"), acks=1), 9)).error_code == 0


@pytest.mark.rule("P-7")
def test_the_minimum_isr_is_never_above_the_replication_factor() -> None:
    cluster = VirtualCluster(1)
    cluster.topic("t", 1, 1, min_insync_replicas="3")
    assert produced(cluster.connect().ask(produce("t", batch(b"a"), acks=-1), 9)).error_code == 0


@pytest.mark.rule("P-15")
def test_the_high_watermark_stands_still_below_the_minimum_isr() -> None:
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
def test_an_append_that_does_not_move_the_high_watermark_does_not_wake_a_consumer() -> None:
    """Scenario 7: the lagging follower's fetch wakes it."""
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
def test_a_followers_answer_has_the_high_watermark_before_its_own_fetch_moved_it() -> None:
    cluster = VirtualCluster(2, semantics="kafka")
    cluster.topic("t", 1, 2)
    hold(cluster, 1)
    client = cluster.connect()
    client.ask(produce("t", batch(b"a")), 9)
    client.ask(produce("t", batch(b"b")), 9)
    answer = client.ask(fetch(("t", 0, 1), replica_id=1), 11)
    assert flat(answer)[0][1].high_watermark == 0
    assert replica(cluster, 0).log.high_watermark == 1


@pytest.mark.rule("D5", "N-10")
def test_under_kip_a_follower_hears_the_high_watermark_in_the_same_turn() -> None:
    cluster = three()
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert [replica(cluster, b).log.high_watermark for b in range(3)] == [1, 1, 1]


@pytest.mark.rule("D5", "N-10")
def test_under_kafka_a_follower_hears_the_high_watermark_with_the_next_fetch() -> None:
    cluster = three("kafka")
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert [replica(cluster, b).log.high_watermark for b in range(3)] == [1, 0, 0]
    cluster.advance(499)
    assert replica(cluster, 1).log.high_watermark == 0
    cluster.advance(1)
    assert [replica(cluster, b).log.high_watermark for b in range(3)] == [1, 1, 1]


@pytest.mark.rule("N-10")
def test_a_consumer_that_waits_at_a_follower_is_answered_when_the_followers_high_watermark_moves() -> None:
    cluster = three("kafka")
    reader = cluster.connect(1)
    begun = cluster.now_ms
    reader.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.connect().ask(produce("t", batch(b"a")), 9)
    assert reader.answers == []
    cluster.advance(2000)
    assert reader.answers[0].at_ms == begun + 500
    assert sizes(reader.latest)[0] > 0


@pytest.mark.rule("N-8")
def test_a_follower_serves_v11_up_to_its_own_high_watermark_and_refuses_v10() -> None:
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
def test_a_consumer_in_a_followers_rack_is_sent_there_at_once() -> None:
    """Scenario 22."""
    cluster = racks()
    cluster.connect().ask(produce("t", batch_of_bytes(300)), 9)
    client = cluster.connect()
    answer = client.ask(fetch(("t", 0, 0), rack="b", max_wait_ms=5000), 11)
    data = flat(answer)[0][1]
    assert (data.error_code, data.preferred_read_replica, data.high_watermark, data.log_start_offset) == (0, 1, 1, 0)
    assert sizes(answer) == [0]
    assert data.aborted_transactions is None


@pytest.mark.rule("N-2", "N-4")
@pytest.mark.parametrize(("rack", "version"), [("a", 11), ("", 11), ("nowhere", 11), ("b", 10)])
def test_everybody_else_reads_at_the_leader(rack: str, version: int) -> None:
    cluster = racks()
    cluster.connect().ask(produce("t", batch_of_bytes(300)), 9)
    answer = cluster.connect().ask(fetch(("t", 0, 0), rack=rack if version >= 11 else ""), version)
    assert sizes(answer) == [300]
    assert preferred(answer) == -1


@pytest.mark.rule("N-1")
def test_without_a_selector_nobody_is_sent_anywhere() -> None:
    cluster = three(**{"1.broker.rack": "b"})
    cluster.connect().ask(produce("t", batch_of_bytes(300)), 9)
    assert preferred(cluster.connect().ask(fetch(("t", 0, 0), rack="b"), 11)) == -1


@pytest.mark.rule("N-3")
def test_a_follower_that_does_not_have_the_offset_yet_is_no_candidate() -> None:
    cluster = racks()
    hold(cluster, 1, at=1)
    client = cluster.connect()
    for _ in range(3):
        client.ask(produce("t", batch_of_bytes(100)), 9)
    assert preferred(client.ask(fetch(("t", 0, 1), rack="b"), 11)) == 1
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == 1
    assert preferred(client.ask(fetch(("t", 0, 2), rack="b", isolation=0), 11)) == -1


@pytest.mark.rule("N-3")
def test_a_follower_outside_the_isr_is_no_candidate() -> None:
    cluster = racks()
    hold(cluster, 1)
    client = cluster.connect()
    client.ask(produce("t", batch_of_bytes(100)), 9)
    cluster.advance(31_000)
    assert isr(cluster) == (0, 2)
    assert preferred(client.ask(fetch(("t", 0, 0), rack="b"), 11)) == -1


@pytest.mark.rule("N-6", "N-7")
def test_the_choice_is_made_anew_each_time_and_a_stopped_broker_is_none() -> None:
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
def test_the_epoch_is_checked_before_the_replica_is_chosen() -> None:
    cluster = racks()
    client = cluster.connect()
    client.ask(produce("t", batch_of_bytes(100)), 9)
    assert errors(client.ask(fetch(("t", 0, 0), rack="b", epoch=1), 11)) == [75]


class LastOne:
    """N-14: somebody's own selector."""

    def select(self, topic_partition: Any, client_metadata: Any, partition_view: Any) -> Any:
        if client_metadata.client_id == "broken":
            raise RuntimeError("as users' classes do")
        return partition_view.replicas[-1]


@pytest.mark.rule("N-14")
def test_a_python_class_chooses_and_an_exception_means_the_leader() -> None:
    cluster = three(**{"replica.selector.class": f"{__name__}:LastOne"})
    cluster.connect().ask(produce("t", batch_of_bytes(100)), 9)
    assert preferred(cluster.connect().ask(fetch(("t", 0, 0)), 11)) == 2
    assert preferred(cluster.connect(client_id="broken").ask(fetch(("t", 0, 0)), 11)) == -1


@pytest.mark.rule("N-14")
def test_a_selector_that_cannot_be_loaded_is_an_error_that_says_what_could() -> None:
    with pytest.raises(ValueError, match=r"nothing\.here:Class.*RackAwareReplicaSelector"):
        three(**{"replica.selector.class": "nothing.here:Class"})


@pytest.mark.rule("N-11", "N-12")
def test_a_fake_followers_fetch_drives_high_watermark_isr_and_eligibility() -> None:
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
def test_a_new_leader_adds_its_epoch_and_followers_follow_it() -> None:
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
    assert isr(cluster) == (0, 1, 2)


@pytest.mark.rule("E-3")
def test_a_restarted_leader_cuts_what_only_it_had_and_takes_over_the_new_leaders_records() -> None:
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
def test_losing_leadership_answers_6() -> None:
    cluster = three()
    hold(cluster, 2)
    client = cluster.connect()
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=10_000), 9)
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    assert produced(client.latest).error_code == 6


@pytest.mark.rule("F-29")
def test_a_parked_fetch_is_answered_when_leadership_moves() -> None:
    cluster = three()
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=20_000, epoch=0), 11)
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    assert errors(client.latest) == [74]


@pytest.mark.rule("F-29")
def test_a_parked_fetch_is_answered_when_its_topic_goes() -> None:
    cluster = three()
    client = cluster.connect()
    client.send(fetch(("t", 0, 0), max_wait_ms=20_000), 11)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    assert errors(client.latest) == [3]


def test_only_an_in_sync_replica_can_be_made_leader() -> None:
    cluster = three()
    with pytest.raises(KafkaError, match="in-sync"):
        cluster.state.controller.elect("t", 0, 7)


def test_a_partition_whose_only_replica_is_down_has_no_leader_until_it_is_back() -> None:
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


def test_a_delay_of_replication_holds_acks_all_back_by_as_much() -> None:
    cluster = three(**{"kafkaproto.replica.delay.ms": "250"})
    client = cluster.connect()
    begun = cluster.now_ms
    client.send(produce("t", batch(b"a"), acks=-1, timeout_ms=5000), 9)
    cluster.advance(2000)
    assert client.answers[0].at_ms == begun + 250


def test_replicating_copies_no_bytes() -> None:
    cluster = three()
    used = cluster.state.budget.used_bytes
    cluster.connect().ask(produce("t", batch_of_bytes(40_000), acks=-1), 9)
    assert cluster.state.budget.used_bytes - used < 2 * 40_000
    assert replica(cluster, 0).log.store is replica(cluster, 2).log.store


@pytest.mark.rule("P-15")
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_followers_that_come_back_in_one_turn_all_join(order: tuple[int, ...]) -> None:
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
def test_who_leaves_and_who_joins_in_one_turn_are_both_heard() -> None:
    cluster = three()
    cluster.state.isr_changes.propose("t", 0, (0, 1))
    cluster.run()
    assert isr(cluster) == (0, 1)
    cluster.state.isr_changes.propose("t", 0, (0,))
    cluster.state.isr_changes.propose("t", 0, (0, 1, 2))
    cluster.run()
    assert isr(cluster) == (0, 2)


def test_a_slow_follower_takes_each_fetch_so_much_later_and_others_do_not() -> None:
    cluster = three(**{"replica.fetch.max.bytes": "100"})
    for fetcher in cluster.state.nodes[2].replicas.fetchers.values():
        fetcher.slow("t", 0, 300)
    begun = cluster.now_ms
    cluster.connect().ask(produce("t", batch_of_bytes(90), acks=1), 9)
    cluster.connect().ask(produce("t", batch_of_bytes(90), acks=1), 9)
    ends = []
    for _ in range(7):
        ends.append(
            (cluster.now_ms - begun, replica(cluster, 1).log.log_end_offset, replica(cluster, 2).log.log_end_offset)
        )
        cluster.advance(100)
    assert ends == [(at, 2, at // 300) for at in range(0, 700, 100)]
    release(cluster, 2)
    cluster.connect().ask(produce("t", batch_of_bytes(90), acks=1), 9)
    assert replica(cluster, 2).log.log_end_offset == 3


@pytest.mark.rule("N-9", "N-15")
def test_a_follower_that_ends_inside_its_leaders_first_batch_begins_again_there() -> None:
    """DeleteRecords cut into a batch of the new leader just where the old leader's log ends. Found by seed 1610 of the simulation."""
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
