"""Settings of consumer groups (KIP-848): this broker refuses to start with the same timeouts and protocols as Kafka's class `KafkaConfig`."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.testing.memory import VirtualCluster

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]

PROGRAM = """
import java.util.*;

public class Bounds {
    public static void main(String[] lines) {
        for (String line : lines) {
            var settings = new HashMap<String, String>(Map.of(
                "process.roles", "broker", "node.id", "1", "controller.quorum.voters", "2@127.0.0.1:1", "controller.listener.names", "C",
                "listeners", "PLAINTEXT://127.0.0.1:2"));
            for (String entry : line.split(";")) settings.put(entry.split("=", 2)[0], entry.split("=", 2)[1]);
            try {
                new kafka.server.KafkaConfig(settings);
                System.out.println("starts");
            } catch (IllegalArgumentException | org.apache.kafka.common.config.ConfigException error) {
                System.out.println("refuses");
            }
        }
    }
}
"""
SESSION, INTERVAL = "session.timeout.ms", "heartbeat.interval.ms"
TIMEOUTS: list[dict[str, int]] = [
    {SESSION: 45_000},
    {SESSION: 44_999},
    {SESSION: 60_000},
    {SESSION: 60_001},
    {SESSION: 3_000, f"min.{SESSION}": 1_000},
    {SESSION: 3_000, f"min.{SESSION}": 1_000, INTERVAL: 500},
    {SESSION: 3_000, f"min.{SESSION}": 1_000, INTERVAL: 500, f"min.{INTERVAL}": 100},
    {SESSION: 70_000, f"max.{SESSION}": 70_000},
    {INTERVAL: 4_999},
    {INTERVAL: 15_000},
    {INTERVAL: 15_001},
    {INTERVAL: 20_000, f"max.{INTERVAL}": 20_000},
    {f"min.{INTERVAL}": 6_000},
    {f"max.{INTERVAL}": 4_000},
    {f"min.{SESSION}": 50_000},
    {f"max.{SESSION}": 40_000},
    {f"min.{SESSION}": 5_000, SESSION: 5_000},
    {f"min.{SESSION}": 5_000, SESSION: 5_001},
]
PROTOCOLS = [
    "classic",
    "consumer",
    "",
    "classic,classic",
    "Classic",
    "share,consumer",
    "consumer, classic",
    "unknown,classic",
]
CASES = [
    *({f"group.consumer.{name}": str(value) for name, value in case.items()} for case in TIMEOUTS),
    *({"group.coordinator.rebalance.protocols": value} for value in PROTOCOLS),
]


def kafkas_decisions(version: str, program: Path) -> list[str]:
    program.write_text(PROGRAM)
    lines = [";".join(f"{name}={value}" for name, value in case.items()) for case in CASES]
    command = ["java", "-cp", f"{kafka_jars(version)}/*", str(program), *lines]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def decision(release: str, config: Mapping[str, str]) -> str:
    try:
        VirtualCluster(1, config, profile="kafka", release_name=release).state.close()
    except ConfigError:
        return "refuses"
    return "starts"


@pytest.mark.rule("GN-67")
@pytest.mark.parametrize("version", [KAFKA_VERSION, NEWER_VERSION])
def test_broker_refuses_to_start_with_exactly_the_group_settings_that_kafka_refuses(
    version: str, tmp_path: Path
) -> None:
    release = version.rpartition(".")[0]
    ours = [decision(release, case) for case in CASES]
    assert dict(enumerate(ours)) == dict(enumerate(kafkas_decisions(version, tmp_path / "Bounds.java")))
    assert {"starts", "refuses"} == set(ours)
