"""kafka-reassign-partitions of Kafka 3.9.1 moves a topic under a throttle: settings, duration and cleanup (R-11)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.testing import TestCluster, cluster
from tests.support.broker.slow_replication import SlowFollower
from tests.support.clients.kafka_tools import run_tool

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(180)]
TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
LEADER, FOLLOWER = "leader.replication.throttled", "follower.replication.throttled"
RECORD_BYTES = 10_000
BATCH_RECORDS = 10
TOPICS = {"foo": {"assignment": {0: [0, 1, 2], 1: [1, 2, 3]}}, "bar": {"assignment": {0: [1, 2, 3]}}}


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(6, TOPICS) as running:
        for topic in TOPICS:
            fill(running, topic, 30)
        yield running


def fill(kafka: TestCluster, topic: str, batches: int) -> None:
    for _ in range(batches):
        kafka.produce(topic, [b"x" * RECORD_BYTES] * BATCH_RECORDS, partition=0)


class Plan:
    """A reassignment in the form of the tool's JSON file."""

    def __init__(self, kafka: TestCluster, folder: Path, **replicas: list[int]) -> None:
        self.kafka = kafka
        self.path = folder / f"{'-'.join(replicas)}-{len(list(folder.iterdir()))}.json"
        partitions = [{"topic": name, "partition": 0, "replicas": brokers} for name, brokers in replicas.items()]
        self.path.write_text(json.dumps({"version": 1, "partitions": partitions}))

    def run(self, *arguments: str) -> str:
        file = ("--reassignment-json-file", str(self.path))
        return run_tool(TOOL, "--bootstrap-server", self.kafka.bootstrap, *arguments, *file)


def lists(kafka: TestCluster, topic: str) -> tuple[str | None, str | None]:
    """Return the throttled leaders and followers of a topic."""
    configs = kafka.run_in_loop(lambda: dict(kafka.state.controller.image.topics[topic].configs))
    return configs.get(f"{LEADER}.replicas"), configs.get(f"{FOLLOWER}.replicas")


def rates(kafka: TestCluster) -> dict[int, dict[str, Any]]:
    return kafka.run_in_loop(lambda: {i: dict(v) for i, v in kafka.state.config.dynamic_broker.items() if v})


@pytest.mark.rule("R-11")
def test_kafka_reassign_partitions_tool_sets_and_removes_replication_throttles(
    kafka: TestCluster, tmp_path: Path
) -> None:
    """Kafka's ReassignPartitionsUnitTest.testMoveMap: foo-0 moves from (0,1,2) to 5, bar-0 from (1,2,3) to 0."""
    plan = Plan(kafka, tmp_path, foo=[5, 1, 2], bar=[0, 2, 3])
    output = plan.run("--execute", "--throttle", "1000")
    assert "The inter-broker throttle limit was set to 1000 B/s" in output
    assert lists(kafka, "foo") == ("0:0,0:1,0:2", "0:5")
    assert lists(kafka, "bar") == ("0:1,0:2,0:3", "0:0")
    both = {f"{LEADER}.rate": 1000, f"{FOLLOWER}.rate": 1000}
    assert rates(kafka) == dict.fromkeys((0, 1, 2, 3, 5), both)
    assert "Reassignment of partition foo-0 is still in progress" in plan.run("--verify")
    assert lists(kafka, "foo") == ("0:0,0:1,0:2", "0:5")

    plan.run("--execute", "--additional", "--throttle", "100000000")
    assert rates(kafka) == dict.fromkeys((0, 1, 2, 3, 5), dict.fromkeys(both, 100_000_000))
    kafka.clock.advance(20_000)
    assert [kafka.partition(topic, 0).isr for topic in ("foo", "bar")] == [(1, 2, 5), (2, 3, 0)]  # M-13

    assert "Reassignment of partition bar-0 is completed" in plan.run("--verify", "--preserve-throttles")
    assert lists(kafka, "foo") == ("0:0,0:1,0:2", "0:5") and len(rates(kafka)) == 5
    output = plan.run("--verify")
    assert "Clearing broker-level throttles on brokers 0,1,2,3,4,5" in output
    assert lists(kafka, "foo") == lists(kafka, "bar") == (None, None) and rates(kafka) == {}


@pytest.mark.rule("R-11", "R-3")
@pytest.mark.parametrize("rate", [100_000, 400_000])
def test_throttled_partition_move_ends_at_the_time_computed_from_bytes_and_throttle(tmp_path: Path, rate: int) -> None:
    """A partition without followers moves to another broker in virtual time, exact to the millisecond."""
    with cluster(2, {"foo": {"assignment": {0: [0]}}}, clock="manual") as kafka:
        fill(kafka, "foo", 30)
        start_ms = kafka.run_in_loop(kafka.state.now_ms)
        Plan(kafka, tmp_path, foo=[1]).run("--execute", "--throttle", str(rate))
        [header] = {h.size for h in batch_headers(kafka)}
        *_, (last_ms, _) = SlowFollower([header] * 30, rate, rate).run()
        kafka.clock.advance(last_ms - 1)
        assert kafka.partition("foo", 0).is_reassigned
        kafka.clock.advance(1)
        assert kafka.partition("foo", 0).replicas == (1,)
        assert kafka.run_in_loop(kafka.state.now_ms) == start_ms + last_ms
        assert 0.9 * 30 * header / rate * 1000 <= last_ms + (1 << 20) / rate * 1000  # throttling_test.py


def batch_headers(kafka: TestCluster) -> list[Any]:
    log = kafka.state.nodes[0].replicas.partitions[("foo", 0)].log
    return kafka.run_in_loop(lambda: [header for _, header in log.batches(0)])


@pytest.mark.rule("R-3", "R-7")
@pytest.mark.parametrize("side", [LEADER, FOLLOWER])
def test_throttled_reassignment_moves_data_at_50_to_110_percent_of_the_throttle_rate(side: str) -> None:
    """Kafka's ReplicationQuotasTest: the bytes moved per second are 0.5 to 1.1 of the limit."""
    total, rate = 30 * RECORD_BYTES * BATCH_RECORDS, 1_000_000
    config = {"replica.fetch.max.bytes": "110000"}
    with cluster(2, {"foo": {"assignment": {0: [0]}}}, config, clock="system") as kafka:
        fill(kafka, "foo", 30)
        kafka.alter_topic("foo", **{f"{side}.replicas".replace(".", "_"): "*"})
        kafka.alter_broker(**{f"{side}.rate".replace(".", "_"): rate})
        start_ms = kafka.run_in_loop(kafka.state.now_ms)
        kafka.run_in_loop(lambda: kafka.state.controller.reassign("foo", 0, [1]))
        kafka.wait_for(lambda journal: any(event.facts["isr"] == [1] for event in journal.events("isr")), 20)
        [at_ms] = [event.at_ms for event in kafka.journal.events("isr") if event.facts["isr"] == [1]]
        assert 0.5 <= total / ((at_ms - start_ms) / 1000) / rate <= 1.1
