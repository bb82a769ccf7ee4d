"""Batches that a consumer's quota can never deliver are reported once, with the numbers (A11, Q-14)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.broker.quota.windows import SampledRate, longest_window_ms
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.pipeline.ask import ask
from kafkaproto.testing import TestCluster, cluster
from tests.support.wire import batch, fetch, limit, produce

QUOTA = 1000
LARGEST_BYTES = 11_998
"""The bytes that 1000 bytes per second allow within the longest window of 11 samples of one second."""
LOGGER = "kafkaproto.quotas"


def partition_with_response_of(world: VirtualCluster, topic: str, size_bytes: int) -> None:
    """Fill partition 0 of a new topic so that a Fetch v11 of it is charged `size_bytes`."""
    world.topic(topic)
    free = world.connect(client_id="free")
    free.ask(produce(topic, batch(b"x" * 10_000)), 9)
    free.ask(fetch((topic, 0, 0), partition_max=1 << 20, max_bytes=1 << 20), 11)
    missing = size_bytes - free.answers[-1].size_bytes
    world.state.controller.delete_topic(topic)
    world.run()
    world.topic(topic)
    free.ask(produce(topic, batch(b"x" * (10_000 + missing))), 9)
    free.ask(fetch((topic, 0, 0), partition_max=1 << 20, max_bytes=1 << 20), 11)
    assert free.answers[-1].size_bytes == size_bytes


def fetch_again_and_again(world: VirtualCluster, reader: MemoryClient, topic: str, times: int = 4) -> list[int]:
    """Fetch several times, waiting out each throttle, and return the throttle times in ms."""
    throttles = []
    for _ in range(times):
        throttles.append(
            reader.ask(fetch((topic, 0, 0), partition_max=1 << 20, max_bytes=1 << 20), 11).throttle_time_ms
        )
        world.advance(throttles[-1])
    return throttles


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [entry.getMessage() for entry in caplog.records if entry.name == LOGGER and entry.levelno == logging.WARNING]


@pytest.fixture
def world() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    limit(virtual_cluster, client_id="reader", consumer_byte_rate=QUOTA)
    return virtual_cluster


@pytest.mark.rule("Q-14")
def test_batch_too_large_for_a_fetch_quota_is_logged_once_with_its_size_and_quota(
    world: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    partition_with_response_of(world, "large", LARGEST_BYTES + 1)
    throttles = fetch_again_and_again(world, world.connect(client_id="reader"), "large")
    assert all(throttles)
    assert warnings(caplog) == [
        "broker 0: client-id 'reader' can never fetch large-0: its next batch makes a response of 11999 bytes, and "
        "consumer_byte_rate=1000 allows at most 11998 bytes within 11998 ms; set consumer_byte_rate to 1001 or more, or "
        "produce smaller batches"
    ]
    [event] = world.state.journal.events("undeliverable")
    assert event.facts == {
        "client_id": "reader",
        "topic": "large",
        "partition": 0,
        "response_bytes": LARGEST_BYTES + 1,
        "quota": QUOTA,
        "largest_bytes": LARGEST_BYTES,
        "window_ms": LARGEST_BYTES,
    }


@pytest.mark.rule("Q-14")
def test_broker_logs_no_warning_for_a_fetch_response_as_large_as_its_quota_allows(
    world: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    partition_with_response_of(world, "large", LARGEST_BYTES)
    assert all(fetch_again_and_again(world, world.connect(client_id="reader"), "large"))
    assert warnings(caplog) == []
    assert world.state.journal.events("undeliverable") == []


@pytest.mark.rule("Q-14")
def test_largest_fetch_that_a_byte_quota_permits_returns_records_without_a_throttle(world: VirtualCluster) -> None:
    """The window is longest if the last value of its oldest sample came at the end of the sample and nothing followed."""
    world.topic("empty")
    free = world.connect(client_id="free")
    free.ask(fetch(("empty", 0, 0)), 11)
    partition_with_response_of(world, "large", LARGEST_BYTES - 2 * free.answers[-1].size_bytes)
    reader = world.connect(client_id="reader")
    reader.ask(fetch(("empty", 0, 0)), 11)
    world.advance(999)
    reader.ask(fetch(("empty", 0, 0)), 11)
    world.advance(10_999)
    response = reader.ask(fetch(("large", 0, 0), partition_max=1 << 20, max_bytes=1 << 20), 11)
    assert (response.throttle_time_ms, bool(response.responses[0].partitions[0].records)) == (0, True)


@pytest.mark.rule("Q-14")
def test_batch_too_large_for_a_fetch_quota_is_logged_once_per_partition_and_quota(
    world: VirtualCluster, caplog: pytest.LogCaptureFixture
) -> None:
    for topic in ("one", "two"):
        partition_with_response_of(world, topic, LARGEST_BYTES + 100)
    reader = world.connect(client_id="reader")
    for topic in ("one", "two", "one"):
        fetch_again_and_again(world, reader, topic, 2)
    assert ["one-0" in text for text in warnings(caplog)] == [True, False]
    limit(world, client_id="reader", consumer_byte_rate=QUOTA // 2)
    fetch_again_and_again(world, reader, "one", 2)
    assert "consumer_byte_rate=500 allows at most 5999 bytes" in warnings(caplog)[2]


def test_emulated_kafka_1_1_returns_a_batch_larger_than_the_quota_after_a_delay(
    caplog: pytest.LogCaptureFixture,
) -> None:
    world = VirtualCluster(release_name="1.1")
    limit(world, client_id="reader", consumer_byte_rate=QUOTA)
    world.topic("large")
    world.connect(client_id="free").ask(produce("large", batch(b"x" * 20_000)), 5)
    reader = world.connect(client_id="reader")
    reader.send(fetch(("large", 0, 0), partition_max=1 << 20, max_bytes=1 << 20), 6)
    world.advance(60_000)
    assert len(reader.latest.responses[0].partitions[0].records) > 20_000
    assert warnings(caplog) == []


def test_method_explain_lists_a_batch_too_large_for_a_fetch_quota_only_once() -> None:
    with cluster(topics={"orders": 1}, clock="manual") as c:
        c.set_quota(client_id="pipeline", consumer_byte_rate=QUOTA)
        c.produce("orders", [b"x" * 20_000])
        for _ in range(2):
            ask(c.bootstrap, fetch(("orders", 0, 0), partition_max=1 << 20, max_bytes=1 << 20), 11)
            c.clock.advance(60_000)
        explained = c.explain()
    assert explained.count("can never fetch orders-0") == 1
    assert explained.splitlines()[-1].startswith("client-id 'pipeline' can never fetch orders-0: its next batch makes")


def fetch_once(c: TestCluster, offset: int = 0) -> None:
    ask(c.bootstrap, fetch(("orders", 0, offset), partition_max=1 << 20, max_bytes=1 << 20), 11)


def raise_the_quota(c: TestCluster) -> None:
    c.set_quota(client_id="pipeline", consumer_byte_rate=100 * QUOTA)


def fetch_the_next_batch(c: TestCluster) -> None:
    c.produce("orders", ["small"])
    c.clock.advance(60_000)
    fetch_once(c, 1)


def delete_the_topic(c: TestCluster) -> None:
    c.delete_topic("orders")


def recreate_the_topic(c: TestCluster) -> None:
    c.delete_topic("orders")
    c.create_topic("orders")
    c.produce("orders", ["small"])


def let_the_batch_expire(c: TestCluster) -> None:
    c.produce("orders", ["small"])
    c.alter_topic("orders", retention_ms=1000, segment_bytes=20_000)
    c.produce("orders", [b"y" * 15_000])
    c.clock.advance(10_000)
    c.run_retention()


@pytest.mark.rule("Q-14")
@pytest.mark.parametrize(
    "change", [raise_the_quota, fetch_the_next_batch, delete_the_topic, recreate_the_topic, let_the_batch_expire]
)
def test_method_explain_omits_an_unfetchable_batch_that_no_longer_blocks_a_consumer(
    change: Callable[[TestCluster], None], caplog: pytest.LogCaptureFixture
) -> None:
    with cluster(topics={"orders": 1}, clock="manual") as c:
        c.set_quota(client_id="pipeline", consumer_byte_rate=QUOTA)
        c.produce("orders", [b"x" * 20_000])
        fetch_once(c)
        assert "can never fetch orders-0" in c.explain()
        change(c)
        assert "can never fetch" not in c.explain()
    assert len(warnings(caplog)) == 1


@pytest.mark.rule("Q-14")
def test_method_explain_lists_only_the_newest_batch_too_large_for_a_fetch_quota(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with cluster(topics={"orders": 1}, clock="manual") as c:
        c.set_quota(client_id="pipeline", consumer_byte_rate=QUOTA)
        c.produce("orders", [b"x" * 20_000])
        fetch_once(c)
        fetch_the_next_batch(c)
        c.produce("orders", [b"x" * 30_000])
        c.clock.advance(60_000)
        fetch_once(c, 2)
        assert "makes a response of 301" in c.explain()
        assert "response of 201" not in c.explain()
    assert len(warnings(caplog)) == 1


@pytest.mark.parametrize("option", ["trace", "data_dir", "memory_bytes"])
def test_method_explain_lists_a_batch_above_the_fetch_quota_if_the_log_is_on_disk(option: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {option: 0 if option == "memory_bytes" else tmp_path}
    with cluster(topics={"orders": 1}, clock="manual", **options) as c:
        c.set_quota(client_id="pipeline", consumer_byte_rate=QUOTA)
        c.produce("orders", ["small", "small"])
        c.produce("orders", [b"x" * 200_000])
        fetch_once(c, 2)
        assert "can never fetch orders-0" in c.explain()


@given(st.integers(1, 12), st.integers(1, 1000), st.lists(st.integers(0, 3000), min_size=1, max_size=60))
def test_sampled_rate_window_is_never_longer_than_longest_window_ms_says(
    samples: int, window_ms: int, pauses_ms: list[int]
) -> None:
    rate, now_ms = SampledRate(samples, window_ms), 0
    for pause_ms in pauses_ms:
        now_ms += pause_ms
        assert rate.measured_window_ms(now_ms) <= max(longest_window_ms(samples, window_ms), window_ms)
        rate.record(1, now_ms)


@pytest.mark.parametrize("samples", [2, 11])
def test_sampled_rate_window_can_be_as_long_as_longest_window_ms_says(samples: int) -> None:
    rate = SampledRate(samples, 1000)
    rate.record(0, 0)
    rate.record(0, 999)
    assert rate.measured_window_ms(longest_window_ms(samples, 1000)) == longest_window_ms(samples, 1000)
