"""A quorum that `kraft.version` 1 makes dynamic: this broker returns the same as a real Kafka 4.2.0 (KIP-853)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.describe_quorum import (
    DescribeQuorumRequest,
    DescribeQuorumRequestPartitionData,
    DescribeQuorumRequestTopicData,
)
from kafkaproto.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafkaproto.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.support.conformance.real_kafka import NewerKafka, as_on_kafka
from tests.support.conformance.virtual import VirtualNewer

FEATURE = "kraft.version"
UPGRADE, UNSAFE_DOWNGRADE = 1, 3
ABSENT = 7
"""The id of a controller that the cluster does not have."""
DIRECTORY = b"1" * 16


def voters(subject: Subject) -> Any:
    topic = DescribeQuorumRequestTopicData("__cluster_metadata", [DescribeQuorumRequestPartitionData(0)])
    return subject.ask_once(DescribeQuorumRequest([topic]), 2).topics[0].partitions[0].current_voters


def finalized_level(subject: Subject) -> int:
    features = subject.ask_once(ApiVersionsRequest("a-client", "1.0"), 4).finalized_features
    return next((feature.max_version_level for feature in features if feature.name == FEATURE), 0)


def outcome(response: Any) -> tuple[int, str | None]:
    """Return (error code, error message) of a response, without the random directory ids in the message."""
    message = response.error_message
    return response.error_code, message and re.sub(r"directoryId=[\w-]{22}", "directoryId=random", message)


def story(subject: Subject) -> Iterator[tuple[str, Any]]:
    """Make the quorum dynamic, and try to change its voters. Yields what the broker returns, each value with a name."""

    def update(level: int, upgrade_type: int) -> tuple[int, str | None]:
        request = UpdateFeaturesRequest(5_000, [FeatureUpdateKey(FEATURE, level, upgrade_type=upgrade_type)])
        return outcome(subject.ask_once(request, 2))

    def add(voter_id: int) -> tuple[int, str | None]:
        listeners = [Listener("CONTROLLER", "127.0.0.1", 9)]
        return by_role(outcome(subject.ask_once(AddRaftVoterRequest(None, 1_000, voter_id, DIRECTORY, listeners), 1)))

    def remove(voter_id: int, directory: bytes) -> tuple[int, str | None]:
        return by_role(outcome(subject.ask_once(RemoveRaftVoterRequest(None, voter_id, directory), 0)))

    def by_role(error: tuple[int, str | None]) -> tuple[int, str | None]:
        """Replace the id of the controller, which is 0 here and 100 in the cluster of the real Kafka."""
        code, message = error
        return code, message and message.replace(f"(id={voter.replica_id},", "(id=controller,")

    [voter] = voters(subject)
    yield "static voter has a directory id", voter.replica_directory_id != bytes(16)
    yield "upgrade", update(1, UPGRADE)
    wait_until(subject, lambda: finalized_level(subject) == 1, "the level is 1")
    yield "downgrade", update(0, UNSAFE_DOWNGRADE)
    [voter] = voters(subject)
    yield "dynamic voter has a directory id", voter.replica_directory_id != bytes(16)
    yield "add an absent controller", add(ABSENT)
    yield "add the controller", add(voter.replica_id)
    yield "remove an absent controller", remove(ABSENT, DIRECTORY)
    yield "remove the controller with another directory", remove(voter.replica_id, DIRECTORY)


@pytest.mark.java
@pytest.mark.timeout(120)
@pytest.mark.rule("AD-27")
def test_broker_answers_quorum_requests_like_a_kafka_cluster_with_one_controller() -> None:
    assert dict(story(VirtualNewer("default"))) == as_on_kafka(NewerKafka("default"), story)
