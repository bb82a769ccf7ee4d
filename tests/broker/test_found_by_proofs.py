"""Regression tests in virtual time for bugs that the simulation and the comparison with a real broker found."""

from __future__ import annotations

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.batch import Compression
from tests.differential.batches import made
from tests.support.broker.replication_quotas import LEADER, set_list, set_rate
from tests.support.scene import elect, fetchers, fill, hold, release, replica, three
from tests.support.wire import batch, errors, fetch, flat, limit, produce, produced


@pytest.mark.rule("N-15")
def test_follower_fetch_reports_a_new_log_start_offset_of_the_follower_to_the_leader() -> None:
    cluster = three("kafka")
    fill(cluster, "t", batch(), batch(), acks=-1)
    cluster.advance(10_000)
    leader, follower = replica(cluster, 0), replica(cluster, 1)
    follower.log.raise_log_start(2)
    follower.expired(cluster.now_ms)
    cluster.advance(500)  # replica.fetch.wait.max.ms
    assert {i: follower_state.log_start_offset for i, follower_state in leader.followers.items()} == {1: 2, 2: 0}


@pytest.mark.rule("P-15")
def test_follower_that_never_fetches_from_a_new_leader_is_removed_from_the_isr() -> None:
    cluster = three("kafka", **{"replica.lag.time.max.ms": "2000"})
    cluster.topic("u", 1, 3)
    elect(cluster, 1, "u")
    [fetcher] = fetchers(cluster, 2, "u")
    fill(cluster, "t", batch(), acks=-1)
    fetcher.cut_link(True, cluster.now_ms)
    elect(cluster, 1)  # broker 2 follows broker 1 over the cut link
    assert cluster.state.controller.image.partition("t", 0).isr == (0, 1, 2)  # type: ignore[union-attr]
    cluster.advance(2001)
    assert cluster.state.controller.image.partition("t", 0).isr == (0, 1)  # type: ignore[union-attr]


@pytest.mark.rule("N-12")
def test_follower_fetch_corrects_offsets_set_by_a_client_that_posed_as_the_follower() -> None:
    cluster = three("kafka")
    fill(cluster, "t", batch(), batch(), acks=-1)
    cluster.connect(0).ask(fetch(("t", 0, 1), replica_id=2), 10)
    follower_state = replica(cluster, 0).followers[2]
    assert (follower_state.log_end_offset, follower_state.log_start_offset) == (1, -1)
    cluster.advance(500)
    assert (follower_state.log_end_offset, follower_state.log_start_offset) == (2, 0)


@pytest.mark.rule("P-4", "P-5")
@pytest.mark.parametrize(
    ("damage", "version", "acks", "error_code"),
    [
        ("cut", 5, 2, 87),  # P-4 is reported before P-5
        ("", 9, 2, 21),
        ("magic 3", 4, 2, 2),
        ("length tiny", 9, 1, 2),
        ("transactional", 9, 1, 53),
        ("transactional", 3, 2, 53),
        ("unknown codec", 4, 1, -1),
        ("unknown codec", 9, 1, -1),
    ],
)
def test_damaged_record_batch_is_rejected_with_an_error_and_not_appended(
    damage: str, version: int, acks: int, error_code: int
) -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    data = made({"values": [30], "codec": Compression.GZIP, "damage": damage})
    assert produced(cluster.connect().ask(produce("t", data, acks=acks), version)).error_code == error_code
    assert replica(cluster, 0).log.log_end_offset == 0


@pytest.mark.rule("P-4")
def test_batch_of_impossible_length_fails_all_partitions_of_the_produce_request() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", 2)
    request = produce("t", made({"values": [30], "codec": 0, "damage": "length tiny"}))
    request.topic_data += produce("t", batch(), 1).topic_data
    response = cluster.connect().ask(request, 9)
    assert [p.error_code for t in response.responses for p in t.partition_responses] == [2, 2]
    assert replica(cluster, 0, index=1).log.log_end_offset == 0


@pytest.mark.rule("F-20")
def test_partition_not_read_because_of_fetch_limits_has_null_aborted_transactions() -> None:
    cluster = VirtualCluster(semantics="kafka")
    cluster.topic("t", 2)
    fill(cluster, "t", batch())
    fill(cluster, "t", batch(), partition=1)
    client = cluster.connect()
    response = client.ask(fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), partition_max=50, isolation=1), 5)
    assert errors(response) == [0, 0, 3]
    assert [data.aborted_transactions for _, data in flat(response)] == [[], None, []]
    assert [data.aborted_transactions for _, data in flat(client.ask(fetch(("t", 2, 0)), 5))] == [[]]
    parted = client.ask(fetch(("t", 0, 8), last_epoch=0, isolation=1), 12)
    assert [data.aborted_transactions for _, data in flat(parted)] == [None]


@pytest.mark.rule("F-23")
def test_fetch_response_lists_unknown_topic_ids_before_unknown_partitions() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    ids = {"t": cluster.state.controller.image.topics["t"].topic_id, "nobody": b"\7" * 16}
    request = fetch(("t", 5, 0), ("nobody", 0, 0), ("t", 0, 0), topic_ids=ids, version=13)
    assert errors(cluster.connect().ask(request, 13)) == [0, 100, 3]


@pytest.mark.rule("P-12")
def test_recompression_clears_a_log_append_time_flag_that_the_producer_has_set() -> None:
    cluster = VirtualCluster()
    cluster.topic("t", compression_type="zstd")
    data = made({"values": [5, 5], "codec": Compression.LZ4, "damage": "log append time"})
    assert produced(cluster.connect().ask(produce("t", data), 9)).error_code == 0
    [(_, header)] = replica(cluster, 0).log.batches(0)
    assert header.base_timestamp == header.max_timestamp == 1_700_000_001_000
    assert not header.is_log_append_time


@pytest.mark.rule("Q-0")
def test_broker_restart_clears_the_bytes_measured_for_client_quotas() -> None:
    cluster = VirtualCluster()
    cluster.topic("t")
    limit(cluster, producer_byte_rate=5.0)
    request = produce("t", batch())
    throttles_ms = [cluster.connect().ask(request, 9).throttle_time_ms for _ in range(2)]
    assert 0 < throttles_ms[0] < throttles_ms[1]
    cluster.state.stop_broker(0)
    cluster.state.start_broker(0)
    cluster.run()
    assert cluster.connect().ask(request, 9).throttle_time_ms == throttles_ms[0]


def test_restarted_broker_deletes_its_replicas_of_topics_deleted_during_its_downtime() -> None:
    cluster = three("kafka")
    fill(cluster, "t", batch(), acks=-1)
    cluster.state.stop_broker(2)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    replicas = cluster.state.nodes[2].replicas
    assert replicas.topics == ("t",)
    cluster.state.setting_changed()
    cluster.state.start_broker(2)
    cluster.run()
    assert replicas.topics == () and not replicas.partitions


@pytest.mark.rule("D2", "X-2")
def test_unclean_leader_lowers_its_high_watermark_to_its_log_end_offset() -> None:
    cluster = three("kip", **{"replica.lag.time.max.ms": "2000"})
    hold(cluster, 1)
    fill(cluster, "t", batch(), batch())
    cluster.advance(4001)
    set_list(cluster, LEADER, "*")
    set_rate(cluster, LEADER, 0)
    fill(cluster, "t", batch())  # replication to broker 2 uses the rate up
    release(cluster, 1)
    cluster.advance(1000)
    log = replica(cluster, 1).log
    assert log.log_end_offset < log.high_watermark == 3
    cluster.state.stop_broker(2)
    cluster.state.stop_broker(0)
    cluster.state.controller.elect_unclean("t", 0)
    cluster.run()
    assert replica(cluster, 1).is_leader and log.high_watermark == log.log_end_offset
