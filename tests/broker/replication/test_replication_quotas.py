"""Replication quotas (KIP-73) in virtual time: which replicas are throttled, for how long, and which bytes count."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from kafkaproto.api import codec
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota, response_bytes
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tests.support.broker.replication_quotas import FOLLOWER, LEADER, set_list, set_rate
from tests.support.broker.slow_replication import SlowFollower
from tests.support.scene import answered_at, fill, hold, only, release, replica, three
from tests.support.wire import batch_of_bytes, fetch, flat, produce, sizes

KB = 1000


def quota(cluster: VirtualCluster, side: str, broker_id: int) -> ReplicationQuota:
    replicas = cluster.state.nodes[broker_id].replicas
    return replicas.leader_quota if side == LEADER else replicas.follower_quota


def out_of_sync(*sizes_bytes: int, semantics: Any = "kip", **config: str) -> VirtualCluster:
    """Return a cluster with t-0 led by broker 0; broker 2 is held, out of the ISR, and lacks batches of these sizes."""
    cluster = three(semantics, **{"replica.lag.time.max.ms": "1000", **config})
    hold(cluster, 2)
    fill(cluster, "t", *[batch_of_bytes(size) for size in sizes_bytes])
    cluster.advance(3000)
    assert replica(cluster, 0).isr == {0, 1}
    return cluster


def as_follower(cluster: VirtualCluster, offset: int, broker_id: int = 2, **more: Any) -> Any:
    """Fetch in the name of a replica and return the partition data of the immediate response."""
    return only(cluster.connect().ask(fetch(("t", 0, offset), replica_id=broker_id, **more), 11))


# ---- lists and rates ---------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("R-1")
@pytest.mark.parametrize(
    ("text", "on_0", "on_1"),
    [
        ("0:0,0:1,1:0", {0, 1}, {0}),
        (" 1:1 , 0:1", set(), {0, 1}),
        ("", set(), set()),
        (" ", set(), set()),
        ("*", {0, 1}, {0, 1}),
        (" * ", {0, 1}, {0, 1}),
        ("0:2", set(), set()),
        ("1:0,", {1}, set()),
    ],
)
def test_throttled_replicas_setting_throttles_only_listed_partition_and_broker_pairs(
    text: str, on_0: set[int], on_1: set[int]
) -> None:
    """The tests shouldParse... of Kafka's DynamicConfigChangeTest."""
    for side in (LEADER, FOLLOWER):
        cluster = VirtualCluster(3)
        cluster.topic("t", 2, 3)
        cluster.topic("other", 2, 3)
        set_list(cluster, side, "0:0,0:1,0:2,1:0,1:1")
        set_list(cluster, side, text)  # replaces the previous list
        for broker_id, expected_indexes in ((0, on_0), (1, on_1)):
            for throttled_side in (LEADER, FOLLOWER):
                listed = {index for index in (0, 1) if quota(cluster, throttled_side, broker_id).lists("t", index)}
                assert listed == (expected_indexes if throttled_side == side else set())
                assert not quota(cluster, throttled_side, broker_id).lists("other", 0)
    cluster.state.controller.delete_topic("t")
    assert not any(quota(cluster, FOLLOWER, b).lists("t", i) for b in (0, 1) for i in (0, 1))


@pytest.mark.rule("D10", "R-1")
@pytest.mark.parametrize(
    ("text", "kip", "kafka"),
    [
        ("0:1,1:2", True, True),
        ("0-1,1-2", True, False),
        ("0:1,1-2", True, False),
        ("", True, True),
        ("*", True, True),
        ("0:1,*", False, False),
        ("**", False, False),
        ("a:1", False, False),
        ("0:", False, False),
        ("0:1:2", False, False),
        ("0: 1", False, False),
        ("-1:1", False, False),
    ],
)
def test_throttled_replicas_list_may_contain_hyphens_only_if_broker_follows_kips(
    text: str, kip: bool, kafka: bool
) -> None:
    for semantics, allowed in (("kip", kip), ("kafka", kafka)):
        cluster = three(semantics)
        if allowed:
            set_list(cluster, LEADER, text)
            assert cluster.state.controller.image.topics["t"].configs[LEADER] == text
        else:
            with pytest.raises(ValueError, match="must be \\* or a list of partition:broker"):
                set_list(cluster, LEADER, text)
    if kip and text not in ("", "*"):
        cluster = three("kip")
        set_list(cluster, LEADER, text)
        assert quota(cluster, LEADER, 1).lists("t", 0)


@pytest.mark.rule("R-2")
def test_replication_rate_of_a_broker_overrides_the_cluster_wide_rate() -> None:
    cluster = three()
    set_rate(cluster, LEADER, 1000)
    set_rate(cluster, LEADER, 2000, broker_id=1)
    assert [quota(cluster, LEADER, b).bound for b in range(3)] == [1000, 2000, 1000]
    assert [quota(cluster, FOLLOWER, b).bound for b in range(3)] == [2**63 - 1] * 3
    set_rate(cluster, LEADER, None, broker_id=1)
    assert quota(cluster, LEADER, 1).bound == 1000
    set_rate(cluster, LEADER, None)
    assert quota(cluster, LEADER, 1).bound == 2**63 - 1
    set_rate(cluster, FOLLOWER, 0)
    assert quota(cluster, FOLLOWER, 2).bound == 0
    with pytest.raises(KafkaError, match="Value must be at least 0"):
        set_rate(cluster, FOLLOWER, -1)


@pytest.mark.rule("R-12")
def test_replication_throttle_rate_takes_effect_only_as_a_dynamic_setting() -> None:
    cluster = three(**{"leader.replication.throttled.rate": "1000", "2.follower.replication.throttled.rate": "5"})
    assert quota(cluster, LEADER, 0).bound == quota(cluster, FOLLOWER, 2).bound == 2**63 - 1
    assert cluster.state.config.without_effect() == [
        "leader.replication.throttled.rate",
        "2.follower.replication.throttled.rate",
    ]
    set_rate(cluster, LEADER, 2000)
    assert quota(cluster, LEADER, 0).bound == 2000


@pytest.mark.rule("R-2")
def test_replication_quota_windows_have_the_configured_number_and_size() -> None:
    cluster = three(**{"replication.quota.window.num": "2", "replication.quota.window.size.seconds": "3"})
    leader_quota = quota(cluster, LEADER, 0)
    leader_quota.limit(100)
    leader_quota.record(300, 0)
    assert not leader_quota.exceeded(0)  # 300 bytes in a window of 3 s
    leader_quota.record(1, 0)
    assert leader_quota.exceeded(0)
    assert leader_quota.exceeded(3009) and not leader_quota.exceeded(3010)


@pytest.mark.rule("R-3")
def test_replication_quota_exceeded_by_1_byte_is_no_longer_exceeded_500_ms_later() -> None:
    """Kafka's ReplicationQuotaManagerTest.shouldExceedQuotaThenReturnBackBelowBoundAsTimePasses."""
    replication_quota = ReplicationQuota("LeaderReplication", 10)
    replication_quota.limit(100)
    replication_quota.record(0, 0)
    replication_quota.record(150, 1500)
    assert not replication_quota.exceeded(1500)
    replication_quota.record(1, 1500)
    assert replication_quota.exceeded(1500)
    assert not replication_quota.exceeded(2000)
    replication_quota.record(99, 2500)
    assert not replication_quota.exceeded(2500)
    replication_quota.record(1, 2500)
    assert replication_quota.exceeded(2500)
    assert not replication_quota.exceeded(4500)


# ---- the leader's side, played over the wire (N-12) -----------------------------------------------------------------------------------


@pytest.mark.rule("R-4", "R-5", "D11")
@pytest.mark.parametrize("semantics", ["kip", "kafka"])
def test_out_of_sync_follower_gets_no_records_while_its_measured_rate_is_above_quota(semantics: Any) -> None:
    """With list "0:0" and 100 kB/s, 1 MB is followed by about 10 s without records, with error 0 and the real high watermark."""
    cluster = out_of_sync(*[500 * KB] * 4, semantics=semantics)
    set_list(cluster, LEADER, "0:0")
    set_rate(cluster, LEADER, 100 * KB, broker_id=0)
    first = as_follower(cluster, 0)
    assert len(first.records) == 2**20  # truncated within a batch, as for any client (F-9)
    started = cluster.now_ms
    waits = 10_486  # 2**20 bytes and some at 100 kB/s
    for at_ms in (0, 1, 5000, 9000):
        cluster.advance(at_ms - (cluster.now_ms - started))
        data = as_follower(cluster, 2)
        assert (data.error_code, len(data.records), data.high_watermark, data.log_start_offset) == (0, 0, 4, 0)
    in_sync = as_follower(cluster, 2, broker_id=1)
    assert len(in_sync.records) == 1000 * KB  # D11; the bytes are counted
    cluster.advance(waits - 9000)
    assert len(as_follower(cluster, 2).records) == 0


@pytest.mark.rule("R-3", "R-4")
def test_throttled_follower_gets_records_as_soon_as_the_rate_is_below_the_quota() -> None:
    cluster = out_of_sync(*[500 * KB] * 4)
    for broker_id in (1, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(True, cluster.now_ms)  # their own fetches count, too
    set_list(cluster, LEADER, "0:0")
    set_rate(cluster, LEADER, 100 * KB)
    started = cluster.now_ms
    as_follower(cluster, 0, partition_max=500 * KB)
    counted = 4 + answer_with(500 * KB)
    due_ms = -(-counted * 1000 // (100 * KB))
    cluster.advance(due_ms - 1 - (cluster.now_ms - started))
    assert len(as_follower(cluster, 1).records) == 0
    # The empty response of a throttled fetch counts, too.
    counted += 4 + answer_with(0)
    due_ms = -(-counted * 1000 // (100 * KB))
    cluster.advance(due_ms - (cluster.now_ms - started))
    assert len(as_follower(cluster, 1).records) > 0


def body_bytes(answer: FetchResponse, version: int) -> int:
    """Return the size of a response on the wire without its header."""
    out = bytearray()
    codec(1, version).encode_response(answer, out, None)
    return len(out)


def answer_with(records_bytes: int) -> int:
    """Return the size of a version 11 response with one partition of topic `t`."""
    data = PartitionData(0, records=b"x" * records_bytes, aborted_transactions=None)
    return body_bytes(FetchResponse(responses=[FetchableTopicResponse("t", partitions=[data])]), 11)


@pytest.mark.rule("R-1", "R-8")
def test_replication_throttle_limits_neither_replicas_outside_its_list_nor_consumers() -> None:
    for text in ("0:1", "1:0", "0:2", "", "*"):
        cluster = out_of_sync(*[500 * KB] * 4)
        set_list(cluster, LEADER, text)
        set_rate(cluster, LEADER, 100 * KB)
        fetched_bytes = [len(as_follower(cluster, 0).records) for _ in range(3)]
        assert fetched_bytes == ([2**20, 0, 0] if text == "*" else [2**20] * 3)
    for version in (4, 11):
        assert sizes(cluster.connect().ask(fetch(("t", 0, 0)), version)) == [2**20]


@pytest.mark.rule("R-4", "R-5")
def test_one_follower_fetch_may_exceed_the_replication_quota_by_its_whole_response() -> None:
    """Kafka's ReplicaManagerQuotasTest: a whole response may exceed the limit, because its bytes are counted after it is built."""
    cluster = VirtualCluster(2, {"replica.lag.time.max.ms": "1000"})
    cluster.topic("t", 3, 2)
    for index in range(3):
        leader = cluster.state.controller.image.topics["t"].partitions[index].leader
        if leader != 0:
            cluster.state.controller.elect("t", index, 0)
            cluster.run()
    for index in range(3):
        hold(cluster, 1, index=index)
        fill(cluster, "t", *[batch_of_bytes(50 * KB)] * 10, partition=index)
    cluster.advance(3000)
    set_list(cluster, LEADER, "0:0,1:0")
    set_rate(cluster, LEADER, 100 * KB, broker_id=0)
    leader_quota = quota(cluster, LEADER, 0)
    client = cluster.connect()
    request = fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), replica_id=1)
    for version in (1, 11, 13, 17):
        leader_quota.forget_samples()
        ids = {name: topic.topic_id for name, topic in cluster.state.controller.image.topics.items()}
        request = fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), replica_id=1, topic_ids=ids, version=version)
        before = cluster.now_ms
        response = client.ask(request, version)
        assert sizes(response) == [500 * KB] * 3
        [topic] = response.responses
        topic.partitions = topic.partitions[:2]
        assert leader_quota.rate(before) == 4 + body_bytes(response, version)
        assert sizes(client.ask(request, version)) == [0, 0, 500 * KB]


@pytest.mark.rule("R-6")
def test_parked_follower_fetch_does_not_count_throttled_bytes_towards_min_bytes() -> None:
    for segment_bytes in ("1000000000", "60000"):
        cluster = out_of_sync(*[50 * KB] * 4, semantics="kafka", **{"log.segment.bytes": segment_bytes})
        set_list(cluster, LEADER, "0:0")
        set_rate(cluster, LEADER, 10 * KB)
        assert len(as_follower(cluster, 0).records) > 0
        out_of_it, in_it = cluster.connect(), cluster.connect()
        started = cluster.now_ms
        for client, broker_id in ((out_of_it, 2), (in_it, 1)):
            client.send(fetch(("t", 0, 3), replica_id=broker_id, max_wait_ms=700, min_bytes=60 * KB), 11)
        cluster.connect().ask(produce("t", batch_of_bytes(50 * KB)), 9)
        cluster.advance(700)
        in_reach = 1 if segment_bytes == "60000" else 2
        assert (answered_at(in_it, started), sizes(in_it.latest)) == ([0], [in_reach * 50 * KB])
        assert (answered_at(out_of_it, started)[0], sizes(out_of_it.latest)) == (700, [0])


@pytest.mark.rule("R-6")
@pytest.mark.parametrize("follower", [0, 2])
def test_parked_fetch_of_a_throttled_follower_waits_its_full_max_wait(follower: int) -> None:
    """A follower with id 0 is treated like any other follower."""
    leader = 1
    cluster = VirtualCluster(3, {"replica.lag.time.max.ms": "1000"}, semantics="kafka")
    controller = cluster.state.controller
    controller.put_topic(controller.plan_topic("t", assignment={0: [leader, 0, 2]}))
    cluster.run()
    hold(cluster, follower)
    fill(cluster, "t", batch_of_bytes(50 * KB))
    cluster.advance(3000)
    set_list(cluster, LEADER, f"0:{leader}")
    set_rate(cluster, LEADER, KB, broker_id=leader)
    assert len(only(cluster.connect(leader).ask(fetch(("t", 0, 0), replica_id=follower), 11)).records) > 0
    client, started = cluster.connect(leader), cluster.now_ms
    client.send(fetch(("t", 0, 0), replica_id=follower, max_wait_ms=700), 11)
    fill(cluster, "t", batch_of_bytes(100))
    cluster.advance(700)
    assert (answered_at(client, started), sizes(client.latest)) == ([700], [0])


@pytest.mark.rule("R-12")
def test_parked_follower_fetch_gets_records_if_the_replication_throttle_is_lifted() -> None:
    cluster = out_of_sync(*[500 * KB] * 4)
    set_list(cluster, LEADER, "0:0")
    set_rate(cluster, LEADER, KB)
    as_follower(cluster, 0)
    assert len(as_follower(cluster, 2).records) == 0
    for lift, limit_again in (
        (lambda: set_rate(cluster, LEADER, None), lambda: set_rate(cluster, LEADER, KB)),
        (lambda: set_list(cluster, LEADER, "0:1"), lambda: set_list(cluster, LEADER, "*")),
    ):
        client = cluster.connect()
        client.send(fetch(("t", 0, 2), replica_id=2, max_wait_ms=700), 11)
        lift()
        assert client.answers == []  # without new records nothing completes the fetch
        cluster.advance(700)
        assert len(only(client.latest).records) > 0
        assert len(as_follower(cluster, 2).records) > 0
        limit_again()
        assert len(as_follower(cluster, 2).records) == 0


# ---- real followers ------------------------------------------------------------------------------------------------------------------


def moving(
    batch_sizes: list[int], leader_rate: int | None, follower_rate: int | None, semantics: Any = "kip", **config: str
) -> tuple[VirtualCluster, list[tuple[int, int]]]:
    """Move a partition from broker 0 to broker 1 under throttles.

    Returns the cluster and (time in ms, bytes) of each append on broker 1 until the move is complete.
    """
    cluster = VirtualCluster(2, config, semantics=semantics)
    cluster.state.controller.put_topic(cluster.state.controller.plan_topic("t", assignment={0: [0]}))
    cluster.run()
    fill(cluster, "t", *[batch_of_bytes(size) for size in batch_sizes])
    cluster.advance(60_000)
    set_list(cluster, LEADER, "0:0")
    set_list(cluster, FOLLOWER, "0:1")
    set_rate(cluster, LEADER, leader_rate, broker_id=0)
    set_rate(cluster, FOLLOWER, follower_rate, broker_id=1)
    started = cluster.now_ms
    cluster.state.controller.reassign("t", 0, [1])
    appends: list[tuple[int, int]] = []
    bytes_before = 0
    events = 0
    cluster.run()
    while True:
        partition = cluster.state.nodes[1].replicas.partitions[("t", 0)]
        bytes_now = sum(batch_sizes[: partition.log.log_end_offset])
        if bytes_now > bytes_before:
            appends.append((cluster.now_ms - started, bytes_now - bytes_before))
            bytes_before = bytes_now
        state = cluster.state.controller.image.partition("t", 0)
        assert state is not None
        if not state.is_reassigned:
            assert state.replicas == state.isr == (1,)
            return cluster, appends
        deadline = cluster.state.timers.next_deadline_ms()
        assert deadline is not None, "no follower fetches any more"
        cluster.advance(deadline - cluster.now_ms)
        events += 1
        assert events < 50_000


@pytest.mark.rule("R-3", "R-4", "R-5", "R-6", "R-7")
@pytest.mark.parametrize("semantics", ["kip", "kafka"])
@pytest.mark.parametrize(
    ("batch_sizes", "leader_rate", "follower_rate"),
    [
        ([100 * KB] * 50, 500 * KB, None),
        ([100 * KB] * 50, None, 500 * KB),
        ([100 * KB] * 50, 500 * KB, 500 * KB),
        ([300 * KB] * 40, 300 * KB, 400 * KB),
        ([7777] * 300, 100 * KB, 50 * KB),
        ([1000 * KB] * 3, 20 * KB, 20 * KB),
        ([50 * KB], 1, 1),
        ([50 * KB] * 2, 0, None),
        ([KB] * 100, None, None),
    ],
)
def test_throttled_reassignment_copies_batches_at_the_times_of_the_reference_model(
    batch_sizes: list[int], leader_rate: int | None, follower_rate: int | None, semantics: Any
) -> None:
    if leader_rate == 0:
        batch_sizes = batch_sizes[:1]
    _, appends = moving(batch_sizes, leader_rate, follower_rate, semantics)
    predicted: dict[int, int] = {}
    for at_ms, size in SlowFollower(batch_sizes, leader_rate, follower_rate).run():
        predicted[at_ms] = predicted.get(at_ms, 0) + size
    assert appends == list(predicted.items())


@pytest.mark.rule("R-3", "R-4", "R-5", "R-6", "R-7")
@pytest.mark.parametrize("seed", range(60))
def test_throttled_reassignment_with_random_settings_copies_bytes_at_predicted_times(seed: int) -> None:
    rng = Random(seed)
    settings = {
        "replica.fetch.max.bytes": rng.choice((1000, 50_000, 2**20)),
        "replica.fetch.wait.max.ms": rng.choice((30, 90, 500, 1700)),
        "replica.fetch.backoff.ms": rng.choice((20, 333, 1000, 2000)),
        "replication.quota.window.num": rng.choice((1, 2, 11)),
        "replication.quota.window.size.seconds": rng.choice((1, 2)),
    }
    batch_sizes = [rng.choice((100, rng.randrange(100, 5000), 30_000)) for _ in range(rng.randrange(1, 60))]
    leader_rate, follower_rate = (
        rng.choice((None, 2 * KB, 20 * KB, rng.randrange(2 * KB, 300 * KB))) for _ in range(2)
    )
    config = {name: str(value) for name, value in settings.items()}
    _, appends = moving(batch_sizes, leader_rate, follower_rate, rng.choice(("kip", "kafka")), **config)
    predicted: dict[int, int] = {}
    for at_ms, size in SlowFollower(
        batch_sizes,
        leader_rate,
        follower_rate,
        settings["replica.fetch.max.bytes"],
        settings["replica.fetch.wait.max.ms"],
        settings["replica.fetch.backoff.ms"],
        settings["replication.quota.window.num"],
        1000 * settings["replication.quota.window.size.seconds"],
    ).run():
        predicted[at_ms] = predicted.get(at_ms, 0) + size
    assert appends == list(predicted.items())


@pytest.mark.rule("R-3")
@pytest.mark.parametrize(("leader_rate", "follower_rate"), [(500 * KB, None), (None, 500 * KB), (500 * KB, 500 * KB)])
def test_duration_of_a_throttled_reassignment_is_about_moved_bytes_divided_by_rate(
    leader_rate: int | None, follower_rate: int | None
) -> None:
    """Kafka's throttling_test.py: at least 0.9 times size / rate, at most the time of one more fetch."""
    sizes_bytes = [100 * KB] * 100
    cluster, appends = moving(sizes_bytes, leader_rate, follower_rate)
    expected_ms = sum(sizes_bytes) / 500
    one_fetch_ms = 2**20 / 500
    assert 0.9 * expected_ms <= appends[-1][0] + one_fetch_ms and appends[-1][0] <= expected_ms + 1500
    # the records are unchanged
    cluster.run()
    assert sum(sizes(cluster.connect(1).ask(fetch(("t", 0, 0), partition_max=1 << 30), 11))) == sum(sizes_bytes)


@pytest.mark.rule("R-7")
def test_throttled_follower_causes_at_most_two_timer_events_per_second() -> None:
    """There is one event per second while all partitions are throttled by the follower, and two if throttled by the leader."""
    for leader_rate, follower_rate, wakes in ((KB, None, 2), (None, KB, 1)):
        cluster = VirtualCluster(2)
        cluster.state.controller.put_topic(cluster.state.controller.plan_topic("t", assignment={0: [0]}))
        cluster.run()
        fill(cluster, "t", *[batch_of_bytes(1000 * KB)] * 5)
        cluster.advance(60_000)
        set_list(cluster, LEADER, "*")
        set_list(cluster, FOLLOWER, "*")
        set_rate(cluster, LEADER, leader_rate)
        set_rate(cluster, FOLLOWER, follower_rate)
        cluster.state.controller.reassign("t", 0, [1])
        cluster.run()
        started, events = cluster.now_ms, []
        while cluster.now_ms - started < 10_000:
            deadline = cluster.state.timers.next_deadline_ms()
            assert deadline is not None
            cluster.advance(deadline - cluster.now_ms)
            events.append(cluster.now_ms - started)
        assert events == list(range(1000 // wakes, 10_001, 1000 // wakes))


def throttled_move(side: str, rate: int) -> VirtualCluster:
    """Start to move a partition with 5 batches of 500 kB from broker 0 to broker 1."""
    cluster = VirtualCluster(2, semantics="kafka")
    cluster.state.controller.put_topic(cluster.state.controller.plan_topic("t", assignment={0: [0]}))
    cluster.run()
    fill(cluster, "t", *[batch_of_bytes(500 * KB)] * 5)
    cluster.advance(60_000)
    set_list(cluster, side, "*")
    set_rate(cluster, side, rate)
    cluster.state.controller.reassign("t", 0, [1])
    cluster.run()
    return cluster


@pytest.mark.rule("R-6", "R-7")
@pytest.mark.parametrize(("side", "step_ms"), [(LEADER, 500), (FOLLOWER, 1000)])
def test_append_does_not_complete_the_fetch_of_a_throttled_follower(side: str, step_ms: int) -> None:
    cluster = throttled_move(side, 200 * KB)
    started, append_times_ms = cluster.now_ms, []
    assert replica(cluster, 1).log.log_end_offset == 2
    while replica(cluster, 1).log.log_end_offset < 10:
        before = replica(cluster, 1).log.log_end_offset
        cluster.advance(10)
        at_ms = cluster.now_ms - started
        if replica(cluster, 1).log.log_end_offset > before:
            append_times_ms.append(at_ms)
        held_back = side == FOLLOWER or quota(cluster, LEADER, 0).exceeded(cluster.now_ms)
        if at_ms % 700 == 30 and held_back and replica(cluster, 0).log.log_end_offset < 10:
            fill(cluster, "t", batch_of_bytes(100))
    assert append_times_ms and all(at_ms % step_ms == 0 for at_ms in append_times_ms)


def is_quiet(cluster: VirtualCluster) -> bool:
    """Return whether no follower has a timer due soon; compaction runs every 15 s, retention every five minutes."""
    deadline = cluster.state.timers.next_deadline_ms()
    return deadline is None or deadline - cluster.now_ms > 2000


@pytest.mark.rule("R-7")
@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_replication_throttle_timer_ends_if_follower_disconnects_or_topic_is_deleted(side: str) -> None:
    cluster = throttled_move(side, 200 * KB)
    [fetcher] = cluster.state.nodes[1].replicas.fetchers.values()
    fetcher.cut_link(True, cluster.now_ms)
    cluster.run()
    cluster.advance(60_000)
    assert replica(cluster, 1).log.log_end_offset == 2 and is_quiet(cluster)
    fetcher.cut_link(False, cluster.now_ms)
    cluster.run()
    assert replica(cluster, 1).log.log_end_offset == 4  # the throttle no longer applies
    cluster.state.stop_broker(1)
    cluster.run()
    cluster.advance(60_000)
    assert is_quiet(cluster)
    cluster.state.start_broker(1)
    cluster.run()
    assert replica(cluster, 1).isr == {1} or replica(cluster, 1).log.log_end_offset == 5
    cluster = throttled_move(side, 200 * KB)
    cluster.state.controller.delete_topic("t")
    cluster.run()
    cluster.advance(5000)
    assert is_quiet(cluster)


@pytest.mark.rule("R-7")
def test_throttled_follower_fetches_again_as_soon_as_its_throttle_is_removed() -> None:
    """The follower started behind a cut link while records of another leader exceeded the rate. Found by seed 1021 of the simulation."""
    cluster = VirtualCluster(3, semantics="kafka")
    controller = cluster.state.controller
    for topic, leader in (("t", 0), ("v", 1)):
        controller.put_topic(controller.plan_topic(topic, assignment={0: [leader]}))
        fill(cluster, topic, *[batch_of_bytes(500 * KB)] * 3)
        set_list(cluster, FOLLOWER, "*", topic)
    set_rate(cluster, FOLLOWER, 200 * KB)
    controller.reassign("t", 0, [0, 2])
    cluster.run()
    assert quota(cluster, FOLLOWER, 2).exceeded(cluster.now_ms)
    replicas = cluster.state.nodes[2].replicas
    replicas.cut_link(1, True, cluster.now_ms)
    controller.reassign("v", 0, [1, 2])
    cluster.run()
    set_rate(cluster, FOLLOWER, None)
    for topic in ("t", "v"):
        set_list(cluster, FOLLOWER, "", topic)
    replicas.cut_link(1, False, cluster.now_ms)
    cluster.run()
    cluster.advance(5000)
    assert replica(cluster, 2, "v").log.log_end_offset == 3


@pytest.mark.rule("R-7", "D11")
def test_in_sync_follower_is_never_throttled_but_its_bytes_count_towards_the_quota() -> None:
    cluster = three()
    for side in (LEADER, FOLLOWER):
        set_list(cluster, side, "*")
        set_rate(cluster, side, KB)
    for end in range(1, 6):
        fill(cluster, "t", batch_of_bytes(50 * KB), acks=-1)
        assert [replica(cluster, b).log.log_end_offset for b in range(3)] == [end] * 3
    assert quota(cluster, FOLLOWER, 1).rate(cluster.now_ms) == 250 * KB
    assert quota(cluster, LEADER, 0).rate(cluster.now_ms) > 500 * KB


@pytest.mark.rule("R-7")
def test_follower_throttle_of_a_topic_does_not_delay_replication_of_another_topic() -> None:
    cluster = VirtualCluster(2, {"replica.lag.time.max.ms": "1000"})
    for name in ("slow", "fast"):
        cluster.state.controller.put_topic(cluster.state.controller.plan_topic(name, assignment={0: [0, 1]}))
    cluster.run()
    for name in ("slow", "fast"):
        hold(cluster, 1, topic=name)
        fill(cluster, name, *[batch_of_bytes(1000 * KB)] * 4)
    cluster.advance(3000)
    set_list(cluster, FOLLOWER, "*", "slow")
    set_rate(cluster, FOLLOWER, 1000 * KB)
    for name in ("slow", "fast"):
        release(cluster, 1, topic=name)
    assert replica(cluster, 1, "fast").log.log_end_offset == 4
    # The first fetch reaches the limit but does not exceed it.
    assert replica(cluster, 1, "slow").log.log_end_offset == 1 + 1
    ends = []
    for _ in range(8):
        cluster.advance(500)
        ends.append(replica(cluster, 1, "slow").log.log_end_offset)
    assert ends == [2, 2, 2, 3, 3, 4, 4, 4]  # a fetch ends every 500 ms, and 1 MB is worth a second


@pytest.mark.rule("R-5")
def test_empty_follower_fetch_responses_count_towards_the_leader_replication_quota() -> None:
    cluster = three()
    assert cluster.state.timers.next_deadline_ms() is None
    set_list(cluster, LEADER, "0:0")
    started = cluster.now_ms
    cluster.advance(10_000)
    # Two followers, an answer without partitions every 500 ms, over the 10 s since the first.
    total = quota(cluster, LEADER, 0).rate(cluster.now_ms) * 9.5
    assert total == 2 * 20 * 16 and cluster.now_ms == started + 10_000
    set_list(cluster, LEADER, "")
    cluster.advance(1000)
    assert cluster.state.timers.next_deadline_ms() is None


@pytest.mark.rule("R-9")
def test_throttled_follower_replicates_two_partitions_at_the_same_pace() -> None:
    """Partitions that returned records move to the end; a response is limited by replica.fetch.response.max.bytes."""
    cluster = VirtualCluster(2, {"replica.fetch.response.max.bytes": "150000", "replica.lag.time.max.ms": "1000"})
    for name in ("a", "b"):
        cluster.state.controller.put_topic(cluster.state.controller.plan_topic(name, assignment={0: [0, 1]}))
        cluster.run()
        hold(cluster, 1, topic=name)
        fill(cluster, name, *[batch_of_bytes(100 * KB)] * 4)
        set_list(cluster, LEADER, "*", name)
    cluster.advance(3000)
    set_rate(cluster, LEADER, 100 * KB)
    for name in ("a", "b"):
        cluster.state.nodes[1].replicas.release(name, 0)
    cluster.run()
    ends = []
    for _ in range(10):
        ends.append([replica(cluster, 1, name).log.log_end_offset for name in ("a", "b")])
        cluster.advance(1000)
    settings = cluster.state.nodes[1].replicas.following.fetcher_settings()
    assert (settings.partition_max_bytes, settings.wait_max_ms, settings.backoff_ms) == (2**20, 500, 1000)
    assert VirtualCluster().state.nodes[0].replicas.following.fetcher_settings().response_max_bytes == 10 * 2**20
    assert all(abs(a - b) <= 1 for a, b in ends) and ends[-1] == [4, 4] and len({tuple(e) for e in ends}) > 3


@pytest.mark.rule("R-12")
def test_restarted_broker_keeps_throttle_lists_and_rates_but_not_recorded_bytes() -> None:
    cluster = three()
    set_list(cluster, LEADER, "0:0")
    set_rate(cluster, LEADER, KB)
    fill(cluster, "t", batch_of_bytes(50 * KB), acks=-1)
    leader_quota = quota(cluster, LEADER, 0)
    assert leader_quota.exceeded(cluster.now_ms)
    cluster.state.stop_broker(0)
    cluster.run()
    cluster.state.start_broker(0)
    cluster.run()
    assert leader_quota is quota(cluster, LEADER, 0) and leader_quota.lists("t", 0) and leader_quota.bound == KB
    assert not leader_quota.exceeded(cluster.now_ms)
    cluster.state.reset()
    assert not leader_quota.active


@pytest.mark.rule("R-5")
@pytest.mark.parametrize(
    "groups", [[], [[10]], [[0]], [[126]], [[127]], [[0, 300], [70_000]], [[1] * 130], [[1]] * 200, [[16383], [2**21]]]
)
def test_computed_follower_fetch_response_size_equals_the_encoded_size(groups: list[list[int]]) -> None:
    """groups: for each topic, the sizes of the records of its partitions."""
    topics = [
        FetchableTopicResponse(
            topic_id=bytes([number] * 16),
            partitions=[PartitionData(0, records=b"x" * size, aborted_transactions=None) for size in sizes_bytes],
        )
        for number, sizes_bytes in enumerate(groups)
    ]
    counted = response_bytes([(str(number), size) for number, group in enumerate(groups) for size in group])
    assert counted == 4 + body_bytes(FetchResponse(responses=topics), 17)


@pytest.mark.rule("R-4")
def test_follower_fetch_session_returns_withheld_records_when_the_throttle_ends() -> None:
    """In a session a throttled partition is returned once without records, and with its records after the throttle."""
    cluster = out_of_sync(*[500 * KB] * 4)
    set_list(cluster, LEADER, "*")
    set_rate(cluster, LEADER, 100 * KB)
    as_follower(cluster, 0)
    client = cluster.connect()
    opened = client.ask(fetch(("t", 0, 2), session=(0, 0), replica_id=2), 11)
    assert [len(data.records) for _, data in flat(opened)] == [0]
    assert flat(client.ask(fetch(session=(opened.session_id, 1), replica_id=2), 11)) == []
    cluster.advance(11_000)
    response = client.ask(fetch(session=(opened.session_id, 2), replica_id=2), 11)
    assert [len(data.records) for _, data in flat(response)] == [1000 * KB]
