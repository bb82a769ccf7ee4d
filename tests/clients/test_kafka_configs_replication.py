"""kafka-configs of Kafka 3.9.1 sets, shows and removes throttled replicas and rates (R-1, R-2)."""

from __future__ import annotations

import pytest

from kafkaproto.testing import TestCluster, cluster
from tests.support.clients.kafka_tools import run_tool

pytestmark = [pytest.mark.clients, pytest.mark.java, pytest.mark.timeout(120)]


def configs(kafka: TestCluster, *arguments: str) -> str:
    return run_tool("kafka.admin.ConfigCommand", "--bootstrap-server", kafka.bootstrap, *arguments)


@pytest.mark.rule("R-1", "R-2")
def test_kafka_configs_tool_sets_describes_and_removes_replication_throttles() -> None:
    with cluster(2, {"t": 1}) as kafka:
        quotas = [node.replicas.leader_quota for node in kafka.state.nodes]
        entity = ("--entity-type", "brokers", "--entity-name", "1")
        every = ("--entity-type", "brokers", "--entity-default")
        topic = ("--entity-type", "topics", "--entity-name", "t")
        rate = "leader.replication.throttled.rate"
        configs(kafka, "--alter", *entity, "--add-config", f"{rate}=1000,follower.replication.throttled.rate=3000")
        configs(kafka, "--alter", *every, "--add-config", f"{rate}=2000")
        configs(kafka, "--alter", *topic, "--add-config", "leader.replication.throttled.replicas=[0:0,0:1]")
        assert [quota.bound for quota in quotas] == [2000, 1000] and all(quota.lists("t", 0) for quota in quotas)
        description = configs(kafka, "--describe", *entity)
        assert f"{rate}=1000 sensitive=false synonyms={{DYNAMIC_BROKER_CONFIG:{rate}=1000, " in description
        assert f"DYNAMIC_DEFAULT_BROKER_CONFIG:{rate}=2000}}" in description
        assert "leader.replication.throttled.replicas=0:0,0:1" in configs(kafka, "--describe", *topic)
        configs(kafka, "--alter", *entity, "--delete-config", rate)
        configs(kafka, "--alter", *topic, "--delete-config", "leader.replication.throttled.replicas")
        assert [quota.bound for quota in quotas] == [2000, 2000] and not any(quota.lists("t", 0) for quota in quotas)
        assert kafka.state.nodes[1].replicas.follower_quota.bound == 3000
