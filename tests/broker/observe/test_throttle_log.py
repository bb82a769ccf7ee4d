"""Throttles in the journal with all their numbers, and in the log at most once per second and quota entity."""

from __future__ import annotations

import logging
from dataclasses import replace

import pytest

from kafkaproto.broker.observe.journal import ThrottleSeen
from kafkaproto.broker.observe.throttle_log import ThrottleLog
from kafkaproto.broker.quota.entities import DEFAULT, QuotaEntity
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.memory import memory_left_within
from tests.support.wire import limit, metadata, produce_of_bytes


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    virtual_cluster.topic("t")
    return virtual_cluster


@pytest.mark.rule("Q-6")
def test_journal_entry_of_a_throttle_contains_the_exceeded_quota_and_throttle_time(cluster: VirtualCluster) -> None:
    limit(cluster, client_id="x", producer_byte_rate=1000.0)
    client = cluster.connect(client_id="x")
    start_ms = cluster.now_ms
    client.ask(produce_of_bytes(client, "t", 5000), 9)
    cluster.advance(1500)
    client.ask(produce_of_bytes(client, "t", 8000), 9)
    [throttle] = cluster.state.journal.throttles()
    assert (throttle.at_ms, throttle.broker_id, throttle.connection_id) == (
        start_ms + 1500,
        0,
        client.connection.connection_id,
    )
    assert (throttle.api, throttle.api_version, throttle.client_id, throttle.correlation_id) == ("Produce", 9, "x", 2)
    reason = throttle.reason
    assert not isinstance(reason, ForcedThrottle)
    assert (reason.quota, reason.entity, reason.value, reason.bound) == (
        "Produce",
        QuotaEntity(client_id="x"),
        8000,
        1000,
    )
    assert reason.window_ms == 10_500 and reason.rate == 13_000 / 10.5
    assert reason.samples == ((start_ms, 5000.0), (start_ms + 1500, 8000.0))
    assert throttle.throttle_time_ms == reason.throttle_ms == 2500
    assert throttle.ended_ms is None
    cluster.advance(2500)
    assert [s.ended_ms for s in cluster.state.journal.throttles()] == [start_ms + 4000]
    assert throttle.ended_ms is None  # the copy read earlier does not change


@pytest.mark.rule("T-10", "T-11")
def test_journal_gives_a_throttle_an_end_time_when_the_connection_is_closed(cluster: VirtualCluster) -> None:
    cluster.state.forced_throttles.add(ForcedThrottle(10_000))
    client = cluster.connect()
    client.ask(metadata(), 9)
    cluster.advance(300)
    client.connection.close()
    assert [s.ended_ms for s in cluster.state.journal.throttles()] == [cluster.now_ms]


def test_method_journal_throttles_returns_only_throttles_of_a_given_api_or_client_id(cluster: VirtualCluster) -> None:
    cluster.state.forced_throttles.add(ForcedThrottle(1))
    for name in ("a", "b"):
        cluster.connect(client_id=name).ask(metadata(), 9)
    journal = cluster.state.journal
    assert [t.client_id for t in journal.throttles("Metadata")] == ["a", "b"]
    assert [t.client_id for t in journal.throttles(client_id="b")] == ["b"]
    assert journal.throttles("Fetch") == []
    with pytest.raises(ValueError, match="Metadat"):
        journal.throttles("Metadat")


def test_throttle_of_a_quota_entity_is_logged_at_most_once_per_second(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkaproto.quota")
    cluster.state.quota_store.set(QuotaEntity(client_id=DEFAULT), "producer_byte_rate", 1000.0)
    a = [cluster.connect(client_id="a") for _ in range(4)]
    b = cluster.connect(client_id="b")

    def lines() -> list[str]:
        lines_logged = [r.getMessage() for r in caplog.records if r.name == "kafkaproto.quota"]
        caplog.clear()
        return lines_logged

    for client in (*a[:3], b):
        client.ask(produce_of_bytes(client, "t", 20_000), 9)
    limit(cluster, client_id="b", producer_byte_rate=500.0)
    own = cluster.connect(client_id="b")
    own.ask(produce_of_bytes(own, "t", 20_000), 9)
    of_all, of_one = lines()
    assert of_all == (
        "broker 0: Produce v9 of client-id 'a': throttled for 10000 ms: 20,000 bytes: 2,000 bytes/s over 10 s "
        "exceeds the Produce quota of 1,000 (client-id <default>)"
    )
    assert of_one.endswith("exceeds the Produce quota of 500 (client-id 'b')")
    cluster.advance(1000)
    a[3].ask(produce_of_bytes(a[3], "t", 1000), 9)
    assert [line.endswith("; 3 more since the last line") for line in lines()] == [True]


def test_log_line_of_a_throttle_forced_by_a_test_rule_contains_the_rule_id(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkaproto.quota")
    rule = cluster.state.forced_throttles.add(ForcedThrottle(7, times=1))
    cluster.connect(client_id=None).ask(metadata(), 9)
    lines_logged = [r.getMessage() for r in caplog.records if r.name == "kafkaproto.quota"]
    assert lines_logged == [f"broker 0: Metadata v9 of client-id None: throttled for 7 ms by rule {rule.rule_id}"]


def throttled_once(cluster: VirtualCluster) -> tuple[ThrottleLog, ThrottleSeen]:
    """Return the throttle log of the cluster and a throttle by a rule, which has been logged."""
    cluster.state.forced_throttles.add(ForcedThrottle(7, times=1))
    cluster.connect().ask(metadata(), 9)
    [throttle] = cluster.state.journal.throttles()
    [log] = [observer for observer in cluster.state.events.observers if isinstance(observer, ThrottleLog)]
    return log, throttle


def by_rule(throttle: ThrottleSeen, rule_id: int, later_ms: int) -> ThrottleSeen:
    """Return a copy of the throttle by another rule, `later_ms` later."""
    rule = ForcedThrottle(7)
    rule.rule_id = rule_id
    return replace(throttle, at_ms=throttle.at_ms + later_ms, reason=rule)


def test_memory_of_the_throttle_log_does_not_grow_with_the_number_of_old_throttles(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "kafkaproto.quota")  # lines are kept at this level
    log, throttle = throttled_once(cluster)
    for number in range(2000):
        log.note(by_rule(throttle, 10**6 + number, 10 * number))
    with memory_left_within(200_000):
        for number in range(2000, 20_000):
            log.note(by_rule(throttle, 10**6 + number, 10 * number))


def test_each_forced_throttle_rule_is_logged_at_most_once_per_second(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kafkaproto.quota")
    log, throttle = throttled_once(cluster)
    caplog.clear()
    rules = range(10**6, 10**6 + 1500)
    for _ in range(2):
        for number in rules:
            log.note(by_rule(throttle, number, 999))
    assert len(caplog.records) == len(rules)


def test_throttle_of_a_quota_entity_is_logged_again_after_the_clock_is_set_back(
    cluster: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """A cluster reset sets the clock back to wall time."""
    caplog.set_level(logging.INFO, "kafkaproto.quota")
    log, throttle = throttled_once(cluster)
    for later_ms in (999, -60_000, -59_001):
        log.note(replace(throttle, at_ms=throttle.at_ms + later_ms))
    assert len([r for r in caplog.records if r.name == "kafkaproto.quota"]) == 2
