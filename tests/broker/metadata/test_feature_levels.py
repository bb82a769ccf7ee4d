"""Levels of features: what survives, and what acts, where a black box cannot look."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafkaproto.broker.config.cluster_config import ALL_BROKERS
from kafkaproto.broker.config.features import initial_features
from kafkaproto.broker.metadata.feature_levels import Features, FeatureUpdate
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaproto.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafkaproto.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.broker.processes import Processes

TRANSACTION, GROUP, ELIGIBLE = "transaction.version", "group.version", "eligible.leader.replicas.version"
MIN_INSYNC = "min.insync.replicas"


def update(cluster: Any, feature: str, level: int, kind: int = 2) -> int:
    request = UpdateFeaturesRequest(1000, [FeatureUpdateKey(feature, level, upgrade_type=kind)])
    return int(cluster.connect().ask(request, 1).error_code)


def test_changed_feature_levels_survive_a_crash_and_restart_of_the_broker(tmp_path: Path) -> None:
    processes = Processes(tmp_path, release_name="4.2")
    for feature, level in ((TRANSACTION, 1), (GROUP, 0), (ELIGIBLE, 0)):
        assert update(processes.cluster, feature, level) == 0
    before = dict(processes.cluster.state.controller.image.features)
    assert before[TRANSACTION] == 1 and GROUP not in before
    for _ in range(2):
        state = processes.crash_and_restart().state
        assert dict(state.controller.image.features) == before
        assert not state.config.has_eligible_leader_replicas
        assert state.config.dynamic_texts(ALL_BROKERS) == {MIN_INSYNC: "1"}
    assert update(processes.cluster, TRANSACTION, 2, 1) == 0
    assert processes.crash_and_restart().state.controller.image.features[TRANSACTION] == 2


def test_deleted_cluster_wide_min_insync_replicas_stays_deleted_after_a_restart(tmp_path: Path) -> None:
    processes = Processes(tmp_path, release_name="4.2")
    assert update(processes.cluster, ELIGIBLE, 0) == 0
    processes.cluster.state.remember_config(ALL_BROKERS, {})
    assert processes.crash_and_restart().state.config.dynamic_texts(ALL_BROKERS) == {}


def test_restart_as_kafka_3_9_resets_feature_levels_that_were_set_in_kafka_4_2(tmp_path: Path) -> None:
    newer = Processes(tmp_path, release_name="4.2")
    assert update(newer.cluster, "metadata.version", 25) == 0
    assert update(newer.cluster, TRANSACTION, 0) == 0
    newer.crash()
    older = Processes(tmp_path, release_name="3.9")
    assert older.cluster.state.controller.image.features == initial_features("3.9")


def test_cluster_reset_restores_the_default_feature_levels_of_the_kafka_release() -> None:
    cluster = VirtualCluster(release_name="4.2")
    assert update(cluster, ELIGIBLE, 0) == 0
    cluster.state.reset()
    assert cluster.state.controller.image.features == initial_features("4.2")
    assert cluster.state.config.has_eligible_leader_replicas


def test_changed_transaction_version_applies_to_a_running_transaction_coordinator() -> None:
    cluster = VirtualCluster(release_name="4.2")
    settings = cluster.state.nodes[0].transactions.coordinator.settings
    assert settings.server_version() == 2
    for level in (1, 0):
        assert update(cluster, TRANSACTION, level) == 0
        assert settings.server_version() == level


@pytest.mark.rule("AD-27")
def test_dynamic_quorum_rejects_a_new_voter_that_is_unreachable_or_already_present() -> None:
    """The expected errors are those of Kafka 4.2.0, whose quorum stays dynamic: the suite of conformance tests cannot raise its level."""
    cluster = VirtualCluster(release_name="4.2")
    client = cluster.connect()
    assert update(cluster, "kraft.version", 1, 1) == 0
    response = client.ask(UpdateFeaturesRequest(1000, [FeatureUpdateKey("kraft.version", 0, upgrade_type=3)]), 2)
    assert response.error_code == 95 and response.error_message.endswith(
        "Invalid update version 0 for feature kraft.version. Can't downgrade the version of this feature."
    )
    topic = DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData(0)])
    [voter] = client.ask(DescribeQuorumRequest([topic]), 2).topics[0].partitions[0].current_voters
    assert voter.replica_id == 0 and voter.replica_directory_id != bytes(16)

    def added(voter_id: int) -> tuple[int, str]:
        response = client.ask(AddRaftVoterRequest(None, 1000, voter_id, b"1" * 16, [Listener("CONTROLLER", "h", 9)]), 1)
        return response.error_code, response.error_message

    timeout = "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
    other = "directoryId=MTExMTExMTExMTExMTExMQ)"
    assert added(7) == (7, timeout)
    code, message = added(0)
    assert code == 126 and message.startswith(
        f"The voter id for ReplicaKey(id=0, {other} is already part of the set of "
    )
    removed = client.ask(RemoveRaftVoterRequest(None, 7, b"1" * 16), 0)
    assert removed.error_code == 127
    assert removed.error_message.startswith(f"Cannot remove voter ReplicaKey(id=7, {other} from the set of voters [Rep")


def test_emulated_kafka_2_8_without_feature_levels_rejects_every_feature_update() -> None:
    levels, errors = Features("2.8", 0, {}).updated([FeatureUpdate("metadata.version", 1)])
    [error] = errors.values()
    assert levels == {} and error is not None and error.error_code == 42
