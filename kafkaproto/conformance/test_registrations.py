"""Tests of UnregisterBroker, AddRaftVoter and RemoveRaftVoter."""

from __future__ import annotations

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.add_raft_voter import AddRaftVoterRequest, Listener
from kafkaproto.messages.describe_cluster import DescribeClusterRequest
from kafkaproto.messages.remove_raft_voter import RemoveRaftVoterRequest
from kafkaproto.messages.unregister_broker import UnregisterBrokerRequest

DIRECTORY, NO_DIRECTORY = b"1" * 16, bytes(16)
CONTROLLER, OTHER = Listener("CONTROLLER", "host", 9), Listener("OTHER", "host", 9)
INCONSISTENT_CLUSTER_ID, INVALID_REQUEST, UNSUPPORTED_VERSION, NOT_REGISTERED = 104, 42, 35, 102


def unregistered(subject: Subject, broker_id: int) -> tuple[int, str | None]:
    response = subject.ask_once(UnregisterBrokerRequest(broker_id), 0)
    return response.error_code, response.error_message


def running(subject: Subject) -> int:
    return len(subject.ask_once(DescribeClusterRequest(), 1).brokers)


@pytest.mark.rule("AD-26", "SN-71")
@pytest.mark.parametrize(
    "message",
    [
        pytest.param("", marks=pytest.mark.releases(before="4.0"), id="3.9"),
        pytest.param("Broker ID {} is not currently registered", marks=pytest.mark.releases("4.0"), id="4.0"),
    ],
)
def test_unknown_broker_cannot_be_unregistered(subject: Subject, message: str) -> None:
    for broker_id in (99, -1):
        assert unregistered(subject, broker_id) == (NOT_REGISTERED, message.format(broker_id))


@pytest.mark.needs(brokers=3)
@pytest.mark.rule("AD-26")
def test_stopped_broker_can_be_unregistered_and_registers_again_when_it_starts(subject: Subject) -> None:
    subject.stop_broker(2)
    wait_until(subject, lambda: running(subject) == 2, "DescribeCluster returns only the running brokers 0 and 1")
    assert unregistered(subject, 2) == (0, "")
    assert unregistered(subject, 2)[0] == NOT_REGISTERED
    subject.start_broker(2)
    wait_until(subject, lambda: running(subject) == 3, "DescribeCluster returns all three brokers")


@pytest.mark.needs(brokers=3, racks=True)
@pytest.mark.releases("4.0")
@pytest.mark.rule("M-7", "AD-26")
def test_describe_cluster_returns_a_stopped_broker_only_with_include_fenced_brokers(subject: Subject) -> None:
    def described(*, with_fenced: bool) -> list[tuple[int, str, int, str | None, bool]]:
        request = DescribeClusterRequest(include_fenced_brokers=with_fenced)
        brokers = subject.ask_once(request, 2).brokers
        return sorted((b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in brokers)

    all_three = [(i, *subject.bootstrap[i], f"r{i}", False) for i in range(3)]
    assert described(with_fenced=True) == described(with_fenced=False) == all_three
    subject.stop_broker(2)
    wait_until(subject, lambda: running(subject) == 2, "DescribeCluster returns only the running brokers 0 and 1")
    assert described(with_fenced=False) == all_three[:2]
    assert described(with_fenced=True) == [*all_three[:2], (*all_three[2][:4], True)]
    assert unregistered(subject, 2) == (0, "")
    wait_until(
        subject,
        lambda: described(with_fenced=True) == all_three[:2],
        "DescribeCluster returns only the registered brokers 0 and 1",
    )
    subject.start_broker(2)
    wait_until(subject, lambda: described(with_fenced=False) == all_three, "DescribeCluster returns all three brokers")


@pytest.mark.rule("AD-27", "SN-71")
def test_no_voter_can_be_added_to_a_static_quorum(subject: Subject) -> None:
    own = subject.ask_once(DescribeClusterRequest(), 1).cluster_id
    no_endpoint = "Add voter request didn't include the endpoint (Endpoints(endpoints={{{}}})) for the default listener ListenerName(CONTROLLER)"
    other = no_endpoint.format("ListenerName(OTHER)=host/<unresolved>:9")
    static = "Cluster doesn't support adding voter because the kraft.version feature is 0"
    wrong_id = f'The given id "x" doesn\'t match the cluster id "{own}"'
    for version in subject.served(ApiKey.ADD_RAFT_VOTER, (0,)):
        for cluster_id, voter_id, directory, listeners, expected in (
            ("x", -1, NO_DIRECTORY, [], (INCONSISTENT_CLUSTER_ID, wrong_id)),
            (own, 7, NO_DIRECTORY, [], (INVALID_REQUEST, "Add voter request didn't include a valid voter")),
            (None, -1, DIRECTORY, [CONTROLLER], (INVALID_REQUEST, "Add voter request didn't include a valid voter")),
            (own, 7, DIRECTORY, [], (INVALID_REQUEST, no_endpoint.format(""))),
            (own, 7, DIRECTORY, [OTHER], (INVALID_REQUEST, other)),
            (own, 7, DIRECTORY, [CONTROLLER], (UNSUPPORTED_VERSION, static)),
            (None, 0, DIRECTORY, [OTHER, CONTROLLER], (UNSUPPORTED_VERSION, static)),
        ):
            request = AddRaftVoterRequest(cluster_id, 1000, voter_id, directory, listeners)
            response = subject.ask_once(request, version)
            assert (response.error_code, response.error_message) == expected


@pytest.mark.rule("AD-27", "SN-71")
def test_no_voter_can_be_removed_from_a_static_quorum(subject: Subject) -> None:
    own = subject.ask_once(DescribeClusterRequest(), 1).cluster_id
    invalid = INVALID_REQUEST, "Remove voter request didn't include a valid voter"
    static = UNSUPPORTED_VERSION, "Cluster doesn't support removing voter because the kraft.version feature is 0"
    wrong_id = INCONSISTENT_CLUSTER_ID, f'The given id "x" doesn\'t match the cluster id "{own}"'
    for cluster_id, voter_id, directory, expected in (
        ("x", -1, NO_DIRECTORY, wrong_id),
        (own, 7, NO_DIRECTORY, invalid),
        (None, -1, DIRECTORY, invalid),
        (own, 7, DIRECTORY, static),
        (None, 0, DIRECTORY, static),
    ):
        response = subject.ask_once(RemoveRaftVoterRequest(cluster_id, voter_id, directory), 0)
        assert (response.error_code, response.error_message) == expected
