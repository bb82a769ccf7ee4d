"""Kafka's command-line tools of 3.9.1 and 4.2.0 print the same against this broker as against a real Kafka of their version."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest

from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.conformance.subject import settings_of
from kafkaproto.testing import TestCluster, cluster
from tests.support.tools.jvm import ToolsProcess
from tests.support.tools.logging_kafka import logging_classes
from tests.support.tools.playing import Target, differences, play
from tests.support.tools.scenarios import SCENARIOS
from tests.support.tools.steps import VERSIONS, Scenario
from tests.support.tools.usage import misused

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.kafka, pytest.mark.timeout(300)]
PROFILE = "default"
SETTLES_WITHIN_S = 2.0
RACKS = {f"{broker_id}.broker.rack": f"r{broker_id}" for broker_id in range(3)}
LIKE_KAFKA_CLUSTER = {
    "broker.session.timeout.ms": "30000",
    "inter.broker.listener.name": "PLAINTEXT",
    "log.initial.task.delay.ms": "100",
}
"""Further settings that `KafkaCluster` gives each broker."""


class OwnBrokers(NamedTuple):
    """Stops and starts brokers of this project's cluster."""

    running: TestCluster

    def stop_broker(self, broker_id: int) -> None:
        self.running.broker(broker_id).stop()

    def start_broker(self, broker_id: int) -> None:
        self.running.broker(broker_id).start()


class Side(NamedTuple):
    """A cluster and the tools that run against it, so that both sides play a scenario at the same time: they mostly wait."""

    tools: ToolsProcess
    target: Target


class Pair(NamedTuple):
    """A real Kafka of one version, and this broker with its release."""

    kafka: Side
    ours: Side


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """Restore the level of this broker's loggers, which one scenario changes."""
    logger = logging.getLogger("kafkaproto")
    before = logger.level
    yield
    logger.setLevel(before)


@pytest.fixture(scope="module", params=VERSIONS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    version = request.param
    settings = settings_of(PROFILE)
    folders = [tmp_path_factory.mktemp(name) for name in ("kafka", "ours")]
    real = KafkaCluster(settings, version, logging_classes(version, tmp_path_factory.mktemp("logging")))
    release = version.rpartition(".")[0]
    try:
        with (
            cluster(
                3, config={**settings, **RACKS, **LIKE_KAFKA_CLUSTER}, profile="kafka", clock="system", release=release
            ) as ours,
            ToolsProcess(version) as tools_of_kafka,
            ToolsProcess(version) as tools_of_ours,
        ):
            addresses = [address.rpartition(":") for address in ours.bootstrap_servers]
            own = [(host, int(port)) for host, _, port in addresses]
            apache = Target(real.bootstrap, folders[0], real, SETTLES_WITHIN_S)
            yield Pair(Side(tools_of_kafka, apache), Side(tools_of_ours, Target(own, folders[1], OwnBrokers(ours))))
    finally:
        real.stop()


@pytest.mark.parametrize("scenario", [s for s in SCENARIOS if s.steps], ids=lambda scenario: scenario.name)
def test_kafka_command_line_tool_prints_equal_output_for_this_broker_and_for_kafka(
    pair: Pair, scenario: Scenario
) -> None:
    with ThreadPoolExecutor(2) as threads:
        expected, actual = threads.map(lambda side: play(side.tools, scenario, side.target), pair)
    assert not (texts := misused(expected)), "\n\n".join(texts)
    assert not (texts := differences(expected, actual)), "\n\n".join(texts)
