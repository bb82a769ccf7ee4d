"""Tests of Metadata, DescribeCluster, FindCoordinator and ApiVersions."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.conformance.offered import NOT_IN_3_9, OFFERED_BY_3_9, OFFERED_IF_ENABLED
from kafkaproto.conformance.scene import Topic, new_topic, read, wait_until
from kafkaproto.conformance.served import CONSUMER_GROUP_APIS
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, fetch, flat
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.describe_cluster import DescribeClusterRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.partitioner import java_hash

NOT_REQUESTED = -(2**31)
ANY_TOPIC_OPERATION, ANY_CLUSTER_OPERATION = 0b1101_1111_1000, 0b1_1111_1010_0000
GHOST = b"\x03" * 16
FIRST_VERSION_BY_ID = 12


def ask(subject: Subject, version: int, topics: list[Any] | None, broker_id: int = 0, **more: Any) -> Any:
    more.setdefault("allow_auto_topic_creation", version < 4)
    return subject.ask_once(MetadataRequest(topics, **more), version, broker_id)


def by_name(*names: str | None) -> list[MetadataRequestTopic]:
    return [MetadataRequestTopic(name=name) for name in names]


@pytest.mark.needs(racks=True)
@pytest.mark.rule("M-1", "M-5", "M-6")
@pytest.mark.parametrize("version", [*range(13), pytest.param(13, marks=pytest.mark.releases(first="4.0"))])
def test_metadata_response_has_the_fields_of_the_request_version(subject: Subject, version: int) -> None:
    topic = new_topic(subject, assignment={0: [0, 1], 1: [2, 0]})
    topic_id = topic.topic_id
    response = ask(subject, version, by_name(topic.name))
    assert (response.cluster_id is not None) == (version >= 2)
    assert response.controller_id in (range(len(subject.bootstrap)) if version >= 1 else (-1,))
    assert sorted((b.node_id, b.host, b.port, b.rack) for b in response.brokers) == [
        (i, *subject.bootstrap[i], f"r{i}" if version >= 1 else None) for i in range(len(subject.bootstrap))
    ]
    [result] = response.topics
    assert (result.error_code, result.name, result.is_internal) == (0, topic.name, False)
    assert result.topic_id == (topic_id if version >= 10 else bytes(16))
    partitions = sorted(result.partitions, key=lambda p: p.partition_index)
    assert [(p.error_code, p.leader_id, p.replica_nodes, sorted(p.isr_nodes)) for p in partitions] == [
        (0, 0, [0, 1], [0, 1]),
        (0, 2, [2, 0], [0, 2]),
    ]
    assert {p.leader_epoch for p in partitions} == {0 if version >= 7 else -1}
    assert all(p.offline_replicas == [] for p in partitions)
    assert (result.topic_authorized_operations, response.cluster_authorized_operations) == (
        NOT_REQUESTED,
        NOT_REQUESTED,
    )
    if version >= 8:
        more = {"include_topic_authorized_operations": True}
        if version <= 10:
            more["include_cluster_authorized_operations"] = True
        response = ask(subject, version, by_name(topic.name), **more)
        assert response.topics[0].topic_authorized_operations == ANY_TOPIC_OPERATION
        assert response.cluster_authorized_operations == (ANY_CLUSTER_OPERATION if version <= 10 else NOT_REQUESTED)


@pytest.mark.needs(brokers=3)
@pytest.mark.rule("M-13")
@pytest.mark.parametrize(
    ("first", "then"),
    [
        pytest.param([0, 1, 2], [0, 2, 1], marks=pytest.mark.releases(before="4.2"), id="appended"),
        pytest.param([0, 1, 2], [0, 1, 2], marks=pytest.mark.releases(first="4.2"), id="ascending"),
    ],
)
def test_metadata_isr_lists_rejoined_replicas_last_before_4_2_and_by_id_from_4_2_on(
    subject: Subject, first: list[int], then: list[int]
) -> None:
    topic = new_topic(subject, assignment={0: [2, 0, 1]})
    assert topic.partition().isr_nodes == [2, 0, 1]
    for broker_id, expected in ((2, first), (1, then)):
        remaining = [i for i in topic.partition().isr_nodes if i != broker_id]
        subject.stop_broker(broker_id)
        wait_until(subject, partial(_has_isr, topic, remaining), f"the ISR of {topic.name}-0 is {remaining}")
        subject.start_broker(broker_id)
        wait_until(subject, partial(_has_isr, topic, expected), f"the ISR of {topic.name}-0 is {expected}")
    assert topic.partition().replica_nodes == [2, 0, 1]


def _has_isr(topic: Topic, expected: list[int]) -> bool:
    """Return whether the in-sync replicas of partition 0, as Metadata lists them, are the broker ids `expected` in the same order."""
    return list(topic.partition().isr_nodes) == expected


@pytest.mark.rule("M-1")
@pytest.mark.parametrize("version", [8, 12])
def test_metadata_returns_authorised_operations_for_missing_topics_and_illegal_names(
    subject: Subject, version: int
) -> None:
    topics = by_name(subject.new_name("missing"), "a b")
    ghosts = [MetadataRequestTopic(name=None, topic_id=GHOST)] if version >= FIRST_VERSION_BY_ID else []
    more = {"allow_auto_topic_creation": False, "include_topic_authorized_operations": True}
    topic_results = ask(subject, version, topics, **more).topics
    assert [(t.error_code, t.topic_authorized_operations) for t in topic_results] == [
        (3, ANY_TOPIC_OPERATION),
        (17, ANY_TOPIC_OPERATION),
    ]
    unknown = ask(subject, version, ghosts, **more).topics
    assert [(t.error_code, t.topic_authorized_operations) for t in unknown] == [(100, NOT_REQUESTED)] * len(ghosts)


@pytest.mark.rule("M-1")
def test_metadata_returns_all_topics_for_a_null_list_and_no_topic_for_an_empty_list(subject: Subject) -> None:
    topic = new_topic(subject)
    for version in (0, 1, 4, 12):
        response = ask(subject, version, [] if version == 0 else None)
        assert topic.name in [result.name for result in response.topics]
        assert len(response.brokers) == len(subject.bootstrap)
    for version in (1, 4, 12):
        assert ask(subject, version, []).topics == []


@pytest.mark.rule("M-2")
def test_metadata_before_version_12_rejects_topics_with_a_null_name_or_a_topic_id(subject: Subject) -> None:
    topic = new_topic(subject)
    topic_id = topic.topic_id
    topics = [MetadataRequestTopic(name=None, topic_id=bytes(16)), *by_name(topic.name)]
    for version in (10, 11, 12):
        result = ask(subject, version, topics).topics
        assert {t.error_code for t in result} == {42 if version < 12 else -1}, version
    with_id = [MetadataRequestTopic(name=topic.name, topic_id=topic_id), *by_name(topic.name)]
    for version in (10, 11):
        result = ask(subject, version, with_id).topics
        assert [(t.error_code, t.name) for t in result] == [(42, topic.name)] * 2
    expected = [MetadataRequestTopic(name=None, topic_id=i) for i in (topic_id, GHOST)] + by_name(topic.name)
    result = ask(subject, 12, expected).topics
    assert sorted((t.error_code, t.name, t.topic_id, len(t.partitions)) for t in result if t.error_code == 0) == [
        (0, topic.name, topic_id, 1)
    ]
    assert [(t.error_code, t.name, t.topic_id, len(t.partitions)) for t in result if t.error_code] == [
        (100, None, GHOST, 0)
    ]


@pytest.mark.rule("M-2")
def test_metadata_returns_each_topic_id_once_and_ignores_entries_without_topic_id(subject: Subject) -> None:
    topic = new_topic(subject)
    entries = [MetadataRequestTopic(name=None, topic_id=i) for i in (topic.topic_id, bytes(16), GHOST)]
    result = ask(subject, 12, [*entries, *entries])
    assert len(result.brokers) == len(subject.bootstrap)
    assert sorted((t.error_code, t.topic_id) for t in result.topics) == [(0, topic.topic_id), (100, GHOST)]


@pytest.mark.rule("M-2")
@pytest.mark.releases(first="4.0")
def test_metadata_v13_of_a_topic_without_name_and_id_has_a_top_level_error(subject: Subject) -> None:
    topic = new_topic(subject)
    response = ask(subject, 13, by_name(topic.name, subject.new_name("missing")))
    assert (response.error_code, sorted(t.error_code for t in response.topics)) == (0, [0, 3])
    failed_response = ask(subject, 13, [MetadataRequestTopic(name=None), *by_name(topic.name)])
    assert (failed_response.error_code, {t.error_code for t in failed_response.topics}) == (-1, {-1})


@pytest.mark.needs("auto.create.topics.enable")
@pytest.mark.rule("M-3")
def test_metadata_returns_an_error_for_missing_topics_and_for_illegal_names(subject: Subject) -> None:
    legal = "a" * 249, "a.b_c-D9"
    illegal = "", ".", "..", "a" * 250, "a b", "a/b", "é", "a\0"
    for version in (0, 1, 4, 9, 12):
        for allow in (True,) if version < 4 else (True, False):
            result = ask(subject, version, by_name(*legal, *illegal), allow_auto_topic_creation=allow).topics
            assert {t.name: t.error_code for t in result} == dict.fromkeys(legal, 3) | dict.fromkeys(illegal, 17)
            assert all(t.partitions == [] for t in result)


@pytest.mark.needs(racks=True)
@pytest.mark.rule("M-7")
def test_describe_cluster_returns_the_cluster_id_and_all_brokers_with_their_racks(subject: Subject) -> None:
    connection = subject.connect()
    metadata = ask(subject, 12, None)
    for version in (0, 1):
        result = subject.ask(connection, DescribeClusterRequest(), version)
        assert (result.error_code, result.error_message, result.cluster_id) == (0, None, metadata.cluster_id)
        assert (
            result.controller_id in range(len(subject.bootstrap))
            and result.cluster_authorized_operations == NOT_REQUESTED
        )
        assert sorted((b.broker_id, b.host, b.port, b.rack) for b in result.brokers) == [
            (i, *subject.bootstrap[i], f"r{i}") for i in range(len(subject.bootstrap))
        ]
        requested = DescribeClusterRequest(include_cluster_authorized_operations=True)
        assert subject.ask(connection, requested, version).cluster_authorized_operations == ANY_CLUSTER_OPERATION
    mismatch = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint of type CONTROLLER"
    for endpoint_type, error, message in (
        (2, 114, mismatch),
        (0, 115, "Unsupported endpoint type 0"),
        (-7, 115, "Unsupported endpoint type -7"),
    ):
        result = subject.ask(connection, DescribeClusterRequest(endpoint_type=endpoint_type), 1)
        assert (result.error_code, result.error_message, result.brokers) == (error, message, [])


NEGATIVE_HASH = "consumers", "orders-group", "my-group", "polygenelubricants"
"""Group ids whose hash in Java is negative. The hash of the last group id is the smallest int32."""


@pytest.mark.needs("offsets.topic.num.partitions", offsets_topic=True)
@pytest.mark.rule("M-8")
def test_find_coordinator_returns_the_leader_of_the_offsets_partition_of_a_group(subject: Subject) -> None:
    """In every version, the coordinator is the leader of the offsets partition that the hash of the group id selects."""
    connection = subject.connect()
    first = FindCoordinatorRequest(key="g", key_type=0)
    wait_until(
        subject,
        lambda: subject.ask(connection, first, 3).error_code == 0,
        "FindCoordinator returns the coordinator of group g",
    )
    offsets = Topic(subject, "__consumer_offsets")
    leaders = wait_until(subject, lambda: leaders_of(offsets), "the partitions of __consumer_offsets have leaders")
    groups = "g", "group-1", "größe", "\N{GRINNING FACE}", "", *NEGATIVE_HASH
    for group in groups:
        expected = leaders[java_hash(group) % len(leaders)]
        for version in range(4):
            requested = (
                FindCoordinatorRequest(key=group) if version == 0 else FindCoordinatorRequest(key=group, key_type=0)
            )
            result = subject.ask(connection, requested, version)
            assert (result.error_code, result.node_id) == (0, expected), group
            assert (result.host, result.port) == subject.bootstrap[expected]
    for version in (4, 5, 6):
        result = subject.ask(connection, FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups)), version)
        assert [(c.key, c.error_code) for c in result.coordinators] == [(group, 0) for group in groups]
        assert [c.node_id for c in result.coordinators] == [
            leaders[java_hash(group) % len(leaders)] for group in groups
        ]
    internal = [t for t in ask(subject, 12, None).topics if t.name == "__consumer_offsets"]
    assert [(t.is_internal, len(t.partitions)) for t in internal] == [(True, 4)]


def leaders_of(topic: Topic) -> list[int] | None:
    partitions = sorted(topic.metadata().partitions, key=lambda p: p.partition_index)
    leaders = [int(p.leader_id) for p in partitions]
    return leaders if leaders and min(leaders) >= 0 else None


@pytest.mark.rule("M-9", "M-10", "M-12")
def test_api_versions_response_lists_the_versions_that_a_broker_supports(subject: Subject) -> None:
    for version in subject.served(ApiKey.API_VERSIONS, range(5)):
        request = ApiVersionsRequest("a", "1") if version >= 3 else ApiVersionsRequest()
        response = subject.ask(subject.connect(), request, version)
        offered = {a.api_key: (a.min_version, a.max_version) for a in response.api_keys}
        assert response.error_code == 0 and len(offered) == len(response.api_keys)
        assert {key: offered[key] for key in OFFERED_BY_3_9 if key in offered} == subject.offered()
        assert offered.keys() <= OFFERED_BY_3_9.keys() | OFFERED_IF_ENABLED | NOT_IN_3_9


@pytest.mark.releases("3.9")
@pytest.mark.rule("M-9", "AD-10")
def test_api_versions_lists_consumer_group_apis_and_both_or_no_telemetry_apis(subject: Subject) -> None:
    """The APIs of KIP-848 groups are listed even if a setting disables these groups."""
    for version in subject.served(ApiKey.API_VERSIONS, range(5)):
        request = ApiVersionsRequest("a", "1") if version >= 3 else ApiVersionsRequest()
        response = subject.ask(subject.connect(), request, version)
        offered = {a.api_key for a in response.api_keys} - NOT_IN_3_9
        telemetry = offered & {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
        assert offered - telemetry == subject.offered().keys() | set(CONSUMER_GROUP_APIS)
        assert len(telemetry) in (0, 2)


@pytest.mark.needs("replica.selector.class", racks=True)
@pytest.mark.rule("M-4", "M-5", "N-3", "N-5")
def test_partition_with_a_running_replica_gets_a_new_leader_when_the_leader_stops(subject: Subject) -> None:
    """A stopped broker is no longer listed in Metadata, is not in the ISR, and is no preferred read replica.

    Its partitions get a new leader if they have another replica; otherwise they have no leader.

    Corresponds to Kafka's tests `MetadataRequestTest.testReplicaDownResponse`, `FetchFromFollowerIntegrationTest`.
    """
    led = new_topic(subject, assignment={0: [2]})
    followed = new_topic(subject, assignment={0: [0, 1, 2]})
    moves = new_topic(subject, assignment={0: [2, 1]})
    followed.fill(batch(b"v"))
    epoch = led.leader_epoch
    wait_until(
        subject,
        lambda: read(followed, 0, rack="r2").preferred_read_replica == 2,
        f"the leader of {followed.name}-0 knows that broker 2 has the record of the partition",
    )
    subject.stop_broker(2)
    wait_until(subject, lambda: len(ask(subject, 12, []).brokers) == 2, "Metadata responses no longer list broker 2")
    wait_until(subject, lambda: led.partition().leader_id == -1, f"{led.name}-0 has no leader")
    for version in (0, 1, 4, 5, 12):
        result = {t.name: t.partitions[0] for t in ask(subject, version, by_name(led.name, followed.name)).topics}
        alone, shared = result[led.name], result[followed.name]
        assert (alone.error_code, alone.leader_id) == (5, -1)
        assert (shared.error_code, shared.leader_id) == (9 if version == 0 else 0, 0)
        assert shared.replica_nodes == ([0, 1] if version == 0 else [0, 1, 2])
        assert sorted(shared.isr_nodes) == [0, 1]
        assert alone.replica_nodes == ([] if version == 0 else [2])
        assert (shared.offline_replicas, alone.offline_replicas) == (([2], [2]) if version >= 5 else ([], []))
        if version >= 7:
            assert alone.leader_epoch >= epoch
    assert sorted(b.broker_id for b in subject.ask(subject.connect(), DescribeClusterRequest(), 1).brokers) == [0, 1]
    assert moves.leader() == 1 and moves.partition().leader_epoch > 0
    result = read(followed, 0, rack="r2")
    assert (result.preferred_read_replica, len(result.records)) == (-1, len(batch(b"v")))
    subject.start_broker(2)
    wait_until(
        subject,
        lambda: set(followed.partition().isr_nodes) == {0, 1, 2},
        f"broker 2 is in the ISR of {followed.name}-0",
    )
    wait_until(
        subject,
        lambda: read(followed, 0, rack="r2").preferred_read_replica == 2,
        f"the leader of {followed.name}-0 names broker 2 as the preferred read replica for rack r2",
    )
    assert flat(subject.ask(led.connect(), fetch((led.name, 0, 0)), 11))[0][1].error_code == 0
