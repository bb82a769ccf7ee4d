"""kafka-configs of Kafka 3.9.1 sets, shows and removes quotas and topic settings; what it prints is what it prints of a real 3.9.1."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from broker.testing import TestCluster, cluster
from tests.clients.kafka_tools import run_tool, run_tool_in_vain

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(180)]
TOOL = "kafka.admin.ConfigCommand"
USERS, CLIENTS, IPS, TOPICS = (f"--entity-type {kind}" for kind in ("users", "clients", "ips", "topics"))
AT_ONCE = 2


def configs(kafka: TestCluster, *commands: str) -> list[str]:
    """What the tool prints for each; they do not touch each other, so they run side by side."""

    def run(command: str) -> str:
        return run_tool(TOOL, "--bootstrap-server", kafka.bootstrap, *command.split()).strip()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(run, commands))


def test_Q8_Q19_quotas_of_every_kind_of_entity_are_set_described_and_removed() -> None:
    alice, etl = "--entity-name alice", "--entity-name etl"
    with cluster() as kafka:
        said = configs(
            kafka,
            f"--alter --add-config producer_byte_rate=1000,request_percentage=12.5 {USERS} {alice}",
            f"--alter --add-config producer_byte_rate=1001 {USERS} {alice} {CLIENTS} {etl}",
            f"--alter --add-config producer_byte_rate=1002 {USERS} --entity-default {CLIENTS} --entity-default",
            f"--alter --add-config controller_mutation_rate=0.5 {CLIENTS} --entity-default",
            f"--alter --add-config consumer_byte_rate=1004 {CLIENTS} {etl}",
            f"--alter --add-config producer_byte_rate=1005 {USERS} --entity-default",
            f"--alter --add-config connection_creation_rate=7 {IPS} --entity-name 127.0.0.9",
            f"--alter --add-config connection_creation_rate=8 {IPS} --entity-default",
        )
        assert said == [
            "Completed updating config for user alice.",
            "Completed updating config for user alice.",
            "Completed updating default config for users in the cluster.",
            "Completed updating default config for clients in the cluster.",
            "Completed updating config for client etl.",
            "Completed updating default config for users in the cluster.",
            "Completed updating config for ip 127.0.0.9.",
            "Completed updating default config for ips in the cluster.",
        ]
        described = configs(
            kafka,
            f"--describe {USERS}",
            f"--describe {USERS} {alice}",
            f"--describe {USERS} --entity-name nobody",
            f"--describe {USERS} {CLIENTS}",
            f"--describe {CLIENTS}",
            f"--describe {IPS}",
        )
        of_alice = "Quota configs for user-principal 'alice' are request_percentage=12.5, producer_byte_rate=1000.0"
        assert [sorted(text.splitlines()) for text in described] == [
            ["Quota configs for the default user-principal are producer_byte_rate=1005.0", of_alice],
            [of_alice],
            [],
            [
                "Quota configs for the default user-principal, the default client-id are producer_byte_rate=1002.0",
                "Quota configs for user-principal 'alice', client-id 'etl' are producer_byte_rate=1001.0",
            ],
            [
                "Quota configs for client-id 'etl' are consumer_byte_rate=1004.0",
                "Quota configs for the default client-id are controller_mutation_rate=0.5",
            ],
            [
                "Quota configs for ip '127.0.0.9' are connection_creation_rate=7.0",
                "Quota configs for the default ip are connection_creation_rate=8.0",
            ],
        ]
        configs(
            kafka,
            f"--alter --delete-config producer_byte_rate {USERS} {alice}",
            f"--alter --delete-config producer_byte_rate {USERS} {alice} {CLIENTS} {etl}",
            f"--alter --delete-config consumer_byte_rate {CLIENTS} {etl}",
            f"--alter --delete-config connection_creation_rate {IPS} --entity-default",
        )
        held = kafka.run_in_loop(lambda: kafka.state.quota_store.describe([], False))
        assert {tuple(entity.components()): dict(values) for entity, values in held} == {
            (("user", "alice"),): {"request_percentage": 12.5},
            (("user", None), ("client-id", None)): {"producer_byte_rate": 1002},
            (("client-id", None),): {"controller_mutation_rate": 0.5},
            (("user", None),): {"producer_byte_rate": 1005},
            (("ip", "127.0.0.9"),): {"connection_creation_rate": 7},
        }


def test_Q20_what_cannot_be_is_refused_by_the_broker_and_nothing_is_set() -> None:
    with cluster() as kafka:
        whose = (*USERS.split(), "--entity-name", "alice")
        where = ("--bootstrap-server", kafka.bootstrap)
        said = run_tool_in_vain(TOOL, *where, "--alter", "--add-config", "producer_byte_rate=0", *whose)
        assert "InvalidRequestException: Quota producer_byte_rate is 0, but must be greater than 0." in said
        assert kafka.run_in_loop(lambda: kafka.state.quota_store.describe([], False)) == []


def test_settings_of_a_topic_are_set_described_and_removed() -> None:
    t = f"{TOPICS} --entity-name t"
    with cluster(1, {"t": 1}) as kafka:
        [said] = configs(kafka, f"--alter --add-config max.message.bytes=5000,cleanup.policy=[compact,delete] {t}")
        assert said == "Completed updating config for topic t."
        [described] = configs(kafka, f"--describe {t}")
        assert [line.strip() for line in described.splitlines()] == [
            "Dynamic configs for topic t are:",
            "cleanup.policy=compact,delete sensitive=false synonyms="
            "{DYNAMIC_TOPIC_CONFIG:cleanup.policy=compact,delete, DEFAULT_CONFIG:log.cleanup.policy=delete}",
            "max.message.bytes=5000 sensitive=false synonyms="
            "{DYNAMIC_TOPIC_CONFIG:max.message.bytes=5000, DEFAULT_CONFIG:message.max.bytes=1048588}",
        ]
        configs(kafka, f"--alter --delete-config cleanup.policy {t}")
        held = kafka.run_in_loop(lambda: dict(kafka.state.controller.image.topics["t"].configs))
        assert held == {"max.message.bytes": "5000"}
