"""kafka-configs of Kafka 3.9.1 sets, shows and removes quotas and topic settings."""

from __future__ import annotations

import pytest

from kafkaproto.testing import cluster
from tests.support.clients.configs_commands import COMMANDS, TOOL, TOPICS, USERS, configs, run_commands
from tests.support.clients.kafka_tools import run_failing_tool

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(180)]


@pytest.mark.rule("Q-8", "Q-19")
def test_kafka_configs_tool_sets_describes_and_removes_quotas_of_every_entity() -> None:
    with cluster() as kafka:
        assert run_commands(kafka.bootstrap) == COMMANDS
        quotas = kafka.run_in_loop(lambda: kafka.state.quota_store.describe([], False))
        assert {tuple(entity.components()): dict(values) for entity, values in quotas} == {
            (("user", "alice"),): {"request_percentage": 12.5},
            (("user", None), ("client-id", None)): {"producer_byte_rate": 1002},
            (("client-id", None),): {"controller_mutation_rate": 0.5},
            (("user", None),): {"producer_byte_rate": 1005},
            (("ip", "127.0.0.9"),): {"connection_creation_rate": 7},
        }


@pytest.mark.rule("Q-20")
def test_kafka_configs_tool_prints_the_error_for_an_invalid_quota_and_sets_no_quota() -> None:
    with cluster() as kafka:
        entity_options = (*USERS.split(), "--entity-name", "alice")
        bootstrap_options = ("--bootstrap-server", kafka.bootstrap)
        output = run_failing_tool(
            TOOL, *bootstrap_options, "--alter", "--add-config", "producer_byte_rate=0", *entity_options
        )
        assert "InvalidRequestException: Quota producer_byte_rate must be greater than 0" in output
        assert kafka.run_in_loop(lambda: kafka.state.quota_store.describe([], False)) == []


def test_kafka_configs_tool_sets_describes_and_removes_topic_settings() -> None:
    t = f"{TOPICS} --entity-name t"
    with cluster(1, {"t": 1}) as kafka:
        settings = "max.message.bytes=5000,cleanup.policy=[compact,delete]"
        assert configs(kafka.bootstrap, f"--alter --add-config {settings} {t}") == [
            "Completed updating config for topic t."
        ]
        [described] = configs(kafka.bootstrap, f"--describe {t}")
        assert [line.strip() for line in described.splitlines()] == [
            "Dynamic configs for topic t are:",
            "cleanup.policy=compact,delete sensitive=false synonyms="
            "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
            "max.message.bytes=5000 sensitive=false synonyms="
            "{DYNAMIC_TOPIC_CONFIG:max.message.bytes=5000, DEFAULT_CONFIG:message.max.bytes=1048588}",
        ]
        configs(kafka.bootstrap, f"--alter --delete-config cleanup.policy {t}")
        topic_configs = kafka.run_in_loop(lambda: dict(kafka.state.controller.image.topics["t"].configs))
        assert topic_configs == {"max.message.bytes": "5000"}
