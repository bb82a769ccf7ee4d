"""Metadata, ApiVersions, DescribeCluster and topic creation: cases that the conformance suite cannot test (M-3 to M-6, M-9)."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.broker.testing.memory import LISTENER, VirtualCluster
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.releases import versions


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster(3, {f"{i}.broker.rack": rack for i, rack in enumerate("abc")})
    virtual_cluster.topic("t", 2, 3)
    return virtual_cluster


def named(*names: str | None, auto: bool = False) -> MetadataRequest:
    return MetadataRequest([MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=auto)


@pytest.mark.rule("M-3")
def test_metadata_request_for_a_missing_topic_gets_an_error_but_creates_the_topic(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert [t.error_code for t in client.ask(named("new", auto=True), 9).topics] == [3]
    [created] = client.ask(named("new", auto=True), 9).topics
    assert (created.error_code, len(created.partitions), len(created.partitions[0].replica_nodes)) == (0, 1, 1)


@pytest.mark.rule("M-3")
@pytest.mark.parametrize(("config", "auto"), [({}, False), ({"auto.create.topics.enable": "false"}, True)])
def test_topic_is_auto_created_only_if_client_and_broker_allow_auto_creation(
    config: dict[str, str], auto: bool
) -> None:
    cluster = VirtualCluster(1, config)
    for _ in range(2):
        assert [t.error_code for t in cluster.connect().ask(named("new", auto=auto), 9).topics] == [3]
    assert not cluster.state.controller.image.topics


@pytest.mark.rule("M-3")
def test_topic_auto_creation_fails_if_replication_factor_exceeds_the_broker_count() -> None:
    cluster = VirtualCluster(1, {"default.replication.factor": "3"})
    assert [t.error_code for t in cluster.connect().ask(named("new", auto=True), 9).topics] == [3]


@pytest.mark.rule("M-3")
def test_topics_with_colliding_names_are_both_auto_created_only_by_the_same_request(cluster: VirtualCluster) -> None:
    client, image = cluster.connect(), lambda: cluster.state.controller.image
    assert [t.error_code for t in client.ask(named("a.b", "a_b", auto=True), 9).topics] == [3, 3]
    assert {"a.b", "a_b"} <= image().topics.keys()
    cluster.topic("q.b")
    for _ in range(2):
        assert [t.error_code for t in client.ask(named("q_b", auto=True), 9).topics] == [3]
    assert "q_b" not in image().topics


@pytest.mark.rule("M-3")
@pytest.mark.parametrize(("release", "is_created"), [("3.9", True), ("4.2", False)])
def test_internal_topic_share_group_state_is_auto_created_in_kafka_3_9_not_in_4_2(
    release: str, is_created: bool
) -> None:
    cluster = VirtualCluster(1, release_name=release)
    name = "__share_group_state"
    for _ in range(2):
        [topic] = cluster.connect().ask(named(name, auto=True), 9).topics
        assert topic.is_internal
    assert (topic.error_code == 0) == is_created
    assert (name in cluster.state.controller.image.topics) == is_created


@pytest.mark.rule("M-4")
def test_metadata_returns_error_leader_not_available_for_a_partition_without_leader() -> None:
    cluster = VirtualCluster(2)
    cluster.topic("t", 1, 1)
    cluster.state.stop_broker(0)
    cluster.run()
    [topic] = cluster.connect(1).ask(named("t"), 9).topics
    [partition] = topic.partitions
    assert (topic.error_code, partition.error_code, partition.leader_id, partition.leader_epoch) == (0, 5, -1, 1)


@pytest.mark.rule("M-4")
@pytest.mark.parametrize(("version", "error"), [(5, 5), (6, 72)])
def test_metadata_returns_an_error_for_a_leader_without_the_listener_of_the_request(
    cluster: VirtualCluster, version: int, error: int
) -> None:
    cluster.state.set_listeners(1, {"OTHER": ("elsewhere", 1)})
    response = cluster.connect(0).ask(named("t"), version)
    assert [b.node_id for b in response.brokers] == [0, 2]
    assert [(p.error_code, p.leader_id) for p in response.topics[0].partitions] == [(0, 0), (error, -1)]


@pytest.mark.rule("M-5")
def test_metadata_returns_broker_addresses_of_the_listener_of_the_request(cluster: VirtualCluster) -> None:
    cluster.state.set_listeners(0, {LISTENER: ("inside", 1), "OUTSIDE": ("outside", 2)})
    client = cluster.connect(0)
    client.connection.listener_name = "OUTSIDE"
    assert [(b.host, b.port) for b in client.ask(named(), 9).brokers] == [("outside", 2)]


@pytest.mark.rule("M-6")
def test_leader_epoch_starts_at_zero_and_increases_with_each_new_leader(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    epochs = []
    for leader in (1, 2, 0):
        epochs.append(client.ask(named("t"), 9).topics[0].partitions[0].leader_epoch)
        cluster.state.controller.elect("t", 0, leader)
        cluster.run()
    assert epochs == [0, 1, 2]


TELEMETRY = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
"""APIs that are served but not listed, as by a Kafka without a receiver of client metrics (AD-10)."""


@pytest.mark.rule("M-9")
@pytest.mark.parametrize("version", range(5))
def test_api_versions_response_contains_all_implemented_apis_except_telemetry(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect()
    response = client.ask(ApiVersionsRequest("a-client", "1.0") if version >= 3 else ApiVersionsRequest(), version)
    offered = {a.api_key: (a.min_version, a.max_version) for a in response.api_keys}
    assert offered == {
        key: version_range
        for key, version_range in versions("3.9").items()
        if key in cluster.state.apis and key not in TELEMETRY
    }


def create(name: str = "new", **more: Any) -> CreateTopicsRequest:
    topic = CreatableTopic(name, more.pop("partitions", 1), more.pop("factor", 1), **more)
    return CreateTopicsRequest([topic], 1000, False)


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (create("a b"), 17),
        (create("t"), 36),
        (create(partitions=0), 37),
        (create(factor=4), 38),
        (create(factor=0), 38),
        (create(configs=[CreatableTopicConfig("no.such", "1")]), 40),
        (create(configs=[CreatableTopicConfig("retention.ms", "soon")]), 40),
        (create(configs=[CreatableTopicConfig("retention.ms", None)]), 40),
        (create(partitions=-1, factor=-1, assignments=[CreatableReplicaAssignment(0, [0, 0])]), 39),
        (create(partitions=-1, factor=-1, assignments=[CreatableReplicaAssignment(1, [0])]), 39),
        (create(partitions=-1, factor=-1, assignments=[CreatableReplicaAssignment(0, [9])]), 39),
        (create(partitions=1, factor=-1, assignments=[CreatableReplicaAssignment(0, [0])]), 42),
        (create(partitions=-1, factor=-1), 0),
        (create(partitions=-1, factor=-1, assignments=[CreatableReplicaAssignment(0, [2, 1])]), 0),
    ],
)
def test_create_topics_returns_an_error_message_for_each_invalid_topic(
    cluster: VirtualCluster, request_: CreateTopicsRequest, error: int
) -> None:
    [result] = cluster.connect().ask(request_, 7).topics
    assert result.error_code == error
    assert bool(result.error_message) == bool(error)
    assert ("new" in cluster.state.controller.image.topics) == (error == 0)


def test_topic_repeated_in_create_topics_is_rejected_and_other_topics_are_created(cluster: VirtualCluster) -> None:
    request = CreateTopicsRequest([CreatableTopic(name, 1, 1) for name in ("x", "y", "x")], 1000, False)
    response = cluster.connect().ask(request, 7)
    assert {t.name: t.error_code for t in response.topics} == {"y": 0, "x": 42}


def test_create_topics_with_validate_only_creates_no_topic(cluster: VirtualCluster) -> None:
    request = create()
    request.validate_only = True
    assert cluster.connect().ask(request, 7).topics[0].error_code == 0
    assert "new" not in cluster.state.controller.image.topics


def test_topic_deleted_by_name_or_id_is_removed_from_all_brokers(cluster: VirtualCluster) -> None:
    cluster.topic("u")
    client = cluster.connect()
    topic_id = cluster.state.controller.image.topics["u"].topic_id
    assert [
        r.error_code for r in client.ask(DeleteTopicsRequest(topic_names=["t", "none"], timeout_ms=1000), 5).responses
    ] == [0, 3]
    by_id = [
        DeleteTopicState(None, topic_id),
        DeleteTopicState(None, bytes(15) + b"\1"),
        DeleteTopicState("x", topic_id),
    ]
    assert [r.error_code for r in client.ask(DeleteTopicsRequest(by_id, timeout_ms=1000), 6).responses] == [0, 100, 42]
    assert not cluster.state.controller.image.topics
    assert all(not node.replicas.partitions for node in cluster.state.nodes)


def config(client: Any, kind: int, name: str, key: str) -> tuple[str | None, int]:
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, [key])], include_synonyms=True)
    [result] = client.ask(request, 4).results
    assert result.error_code == 0, result.error_message
    [entry] = result.configs
    return entry.value, entry.config_source


def alter(client: Any, kind: int, name: str, key: str, value: str | None, operation: int = 0) -> int:
    resource = AlterConfigsResource(kind, name, [AlterableConfig(key, operation, value)])
    [result] = client.ask(IncrementalAlterConfigsRequest([resource]), 1).responses
    return int(result.error_code)


TOPIC, BROKER = 2, 4


def test_topic_setting_can_be_altered_described_and_deleted(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert config(client, TOPIC, "t", "max.message.bytes") == ("1048588", 5)
    assert alter(client, TOPIC, "t", "max.message.bytes", "2000") == 0
    assert config(client, TOPIC, "t", "max.message.bytes") == ("2000", 1)
    assert all(n.replicas.partitions[("t", 0)].limits.max_message_bytes == 2000 for n in cluster.state.nodes)
    assert alter(client, TOPIC, "t", "max.message.bytes", None, operation=1) == 0
    assert config(client, TOPIC, "t", "max.message.bytes") == ("1048588", 5)


def test_per_broker_message_max_bytes_overrides_cluster_wide_limit_on_that_broker(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert alter(client, BROKER, "", "message.max.bytes", "3000") == 0
    assert alter(client, BROKER, "1", "message.max.bytes", "4000") == 42  # a broker changes only its own settings
    assert alter(cluster.connect(1), BROKER, "1", "message.max.bytes", "4000") == 0
    limits = [n.replicas.partitions[("t", 0)].limits.max_message_bytes for n in cluster.state.nodes]
    assert limits == [3000, 4000, 3000]
    assert config(client, BROKER, "0", "message.max.bytes") == ("3000", 3)


@pytest.mark.parametrize(
    ("kind", "name", "key", "value", "operation", "error"),
    [
        (TOPIC, "none", "retention.ms", "1", 0, 3),
        (TOPIC, "t", "no.such", "1", 0, 40),
        (TOPIC, "t", "retention.ms", "soon", 0, 40),
        (TOPIC, "t", "retention.ms", "1", 2, 40),
        (TOPIC, "t", "retention.ms", None, 0, 42),
        (TOPIC, "t", "retention.ms", "1", 9, -1),  # measured on 3.9.1 and 4.2.0
        (BROKER, "0", "log.cleaner.threads", "1", 9, 42),
        (BROKER, "0", "socket.request.max.bytes", "100", 0, 42),
        (BROKER, "9", "message.max.bytes", "100", 0, 42),
        (BROKER, "0", "message.max.bytes", "-1", 0, 42),
        (BROKER, "", "no.such", "1", 2, -1),
        (99, "t", "retention.ms", "1", 0, 42),
    ],
)
def test_invalid_change_of_a_topic_or_broker_setting_returns_an_error_code(
    cluster: VirtualCluster, kind: int, name: str, key: str, value: str | None, operation: int, error: int
) -> None:
    assert alter(cluster.connect(), kind, name, key, value, operation) == error


def test_items_can_be_appended_to_and_subtracted_from_a_list_setting_of_a_topic(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert alter(client, TOPIC, "t", "cleanup.policy", "compact", operation=2) == 0
    assert config(client, TOPIC, "t", "cleanup.policy") == ("delete,compact", 1)
    assert alter(client, TOPIC, "t", "cleanup.policy", "delete", operation=3) == 0
    assert config(client, TOPIC, "t", "cleanup.policy") == ("compact", 1)


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        ([CreatableTopic("big", 10_001, 1)], 44),
        ([CreatableTopic("big", 2**31 - 1, 1), CreatableTopic("small", 1, 1)], 44),
        ([CreatableTopic("a", 1, 1), CreatableTopic("b", 10_000, 1)], 44),
        ([CreatableTopic("a", 9, 1), CreatableTopic("b", -5, 1)], None),
    ],
)
def test_create_topics_with_more_than_10000_partitions_is_rejected_completely(
    cluster: VirtualCluster, topics: list[CreatableTopic], error: int | None
) -> None:
    """Kafka limits a request to 10000 partitions; without a limit a single request could use up all memory."""
    response = cluster.connect().ask(CreateTopicsRequest(topics), 7)
    assert [t.error_code for t in response.topics] == ([0, 37] if error is None else [error] * len(topics))
    assert ("a" in cluster.state.controller.image.topics) is (error is None)
