"""Mutation quotas of a broker (Q-18): creating and deleting partitions, with the numbers of Kafka's ControllerMutationQuotaTest."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.network.mute import MuteState
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.support.wire import limit, metadata

NEWEST_CREATE, NEWEST_DELETE, NEWEST_ADD = 7, 6, 3
EXCEEDED = 89


@pytest.fixture
def cluster() -> VirtualCluster:
    """Return a cluster with ten windows of a second and two mutations per second: a full bucket has 20 tokens."""
    virtual_cluster = VirtualCluster(config={"controller.quota.window.num": "10"})
    limit(virtual_cluster, controller_mutation_rate=2.0)
    return virtual_cluster


def create(client: MemoryClient, *topics: tuple[str, int], version: int = NEWEST_CREATE, **more: Any) -> Any:
    topic_requests = [CreatableTopic(name, partitions, 1) for name, partitions in topics]
    return client.ask(CreateTopicsRequest(topic_requests, **more), version)


def delete(client: MemoryClient, *names: str, version: int = NEWEST_DELETE) -> Any:
    if version >= 6:
        return client.ask(DeleteTopicsRequest([DeleteTopicState(name) for name in names], timeout_ms=1000), version)
    return client.ask(DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000), version)


def add(client: MemoryClient, *topics: tuple[str, int], version: int = NEWEST_ADD, **more: Any) -> Any:
    topic_requests = [CreatePartitionsTopic(name, count, None) for name, count in topics]
    return client.ask(CreatePartitionsRequest(topic_requests, 1000, **more), version)


def codes(answer: Any) -> list[int]:
    results = next(getattr(answer, name) for name in ("topics", "responses", "results") if hasattr(answer, name))
    return [result.error_code for result in results]


@pytest.mark.rule("Q-18")
def test_topic_that_exhausts_a_mutation_quota_is_created_and_the_next_topic_rejected(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    response = create(client, ("a", 30), ("b", 30))
    assert codes(response) == [0, EXCEEDED]
    assert response.throttle_time_ms == 5000
    assert "5000 ms" in response.topics[1].error_message
    assert set(cluster.state.controller.image.topics) == {"a"}


@pytest.mark.rule("Q-18", "T-1")
def test_mutation_quota_mutes_the_connection_and_a_retry_after_the_throttle_succeeds(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    create(client, ("a", 30), ("b", 30))
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED
    start_ms = cluster.now_ms
    client.send(CreateTopicsRequest([CreatableTopic("b", 30, 1)]), NEWEST_CREATE)
    cluster.advance(4999)
    assert len(client.answers) == 1
    cluster.advance(1)
    assert codes(client.latest) == [0]
    assert client.latest.throttle_time_ms == 0
    assert client.answers[-1].at_ms == start_ms + 5000


@pytest.mark.rule("Q-18")
def test_create_topics_v6_is_throttled_only_if_the_mutation_quota_rejects_a_topic(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    assert create(client, ("a", 20)).throttle_time_ms == 0
    assert create(client, ("b", 9)).throttle_time_ms == 0
    refused = create(client, ("c", 1))
    assert (codes(refused), refused.throttle_time_ms) == ([EXCEEDED], 4500)


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 5])
def test_create_topics_before_v6_above_the_mutation_quota_succeeds_and_is_throttled(
    cluster: VirtualCluster, version: int
) -> None:
    client = cluster.connect()
    response = create(client, ("a", 30), ("b", 30), version=version)
    assert codes(response) == [0, 0]
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED
    assert response.throttle_time_ms == (20_000 if version >= 2 else 0)
    client.send(metadata(), 1)
    cluster.advance(19_999)
    assert len(client.answers) == 1
    cluster.advance(1)
    assert len(client.answers) == 2


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize(("version", "expected", "wait_ms"), [(5, [0, EXCEEDED], 5000), (6, [0, EXCEEDED], 5000)])
def test_delete_topics_charges_each_deleted_partition_to_the_mutation_quota(
    cluster: VirtualCluster, version: int, expected: list[int], wait_ms: int
) -> None:
    cluster.topic("a", 30)
    cluster.topic("b", 1)
    response = delete(cluster.connect(), "a", "b", version=version)
    assert (codes(response), response.throttle_time_ms) == (expected, wait_ms)
    assert set(cluster.state.controller.image.topics) == {"b"}


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize("version", [0, 1, 2, 3, 4])
def test_delete_topics_before_v5_above_the_mutation_quota_succeeds_and_is_throttled(
    cluster: VirtualCluster, version: int
) -> None:
    cluster.topic("a", 30)
    cluster.topic("b", 10)
    client = cluster.connect()
    response = delete(client, "a", "b", version=version)
    assert codes(response) == [0, 0]
    assert response.throttle_time_ms == (10_000 if version >= 1 else 0)
    assert client.connection.state is MuteState.MUTED_AND_THROTTLED


@pytest.mark.rule("Q-18")
def test_create_partitions_charges_only_the_added_partitions(cluster: VirtualCluster) -> None:
    for name in "ab":
        cluster.topic(name, 10)
    response = add(cluster.connect(), ("a", 40), ("b", 11))
    assert (codes(response), response.throttle_time_ms) == ([0, EXCEEDED], 5000)
    assert len(cluster.state.controller.image.topics["a"].partitions) == 40


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize("version", [0, 1, 2])
def test_create_partitions_of_versions_0_to_2_above_quota_succeeds_and_is_throttled(
    cluster: VirtualCluster, version: int
) -> None:
    for name in "ab":
        cluster.topic(name, 10)
    response = add(cluster.connect(), ("a", 40), ("b", 11), version=version)
    assert (codes(response), response.throttle_time_ms) == ([0, 0], 5500)


@pytest.mark.rule("Q-18")
def test_validate_only_requests_are_charged_to_the_mutation_quota(cluster: VirtualCluster) -> None:
    cluster.topic("t", 1)
    client = cluster.connect()
    create(client, ("a", 20), validate_only=True)
    add(client, ("t", 11), validate_only=True)
    refused = create(client, ("a", 1), validate_only=True)
    assert (codes(refused), refused.throttle_time_ms) == ([EXCEEDED], 5000)
    assert set(cluster.state.controller.image.topics) == {"t"}


@pytest.mark.rule("Q-18")
def test_invalid_topics_are_not_charged_to_the_mutation_quota(cluster: VirtualCluster) -> None:
    cluster.topic("there", 3)
    client = cluster.connect()
    assert codes(create(client, ("there", 500), ("no good!", 500), ("few", 0))) == [36, 17, 37]
    assert codes(delete(client, "nobody")) == [3]
    assert codes(add(client, ("there", 2), ("nobody", 500))) == [37, 3]
    assert codes(create(client, ("a", 20))) == [0]
    assert codes(create(client, ("b", 1))) == [0]


@pytest.mark.rule("Q-18")
def test_create_partitions_on_unknown_brokers_is_charged_to_the_mutation_quota(cluster: VirtualCluster) -> None:
    cluster.topic("t", 1)
    client = cluster.connect()
    topic_requests = [CreatePartitionsTopic("t", 32, [CreatePartitionsAssignment([7])] * 31)]
    assert codes(client.ask(CreatePartitionsRequest(topic_requests, 1000), NEWEST_ADD)) == [39]
    assert codes(client.ask(CreatePartitionsRequest(topic_requests, 1000), NEWEST_ADD)) == [EXCEEDED]


@pytest.mark.rule("Q-18")
def test_only_connections_with_the_same_client_id_share_a_mutation_quota(cluster: VirtualCluster) -> None:
    limit(cluster, client_id="other", controller_mutation_rate=1.0)
    first, same, other, free = (cluster.connect(client_id=name) for name in ("test", "test", "other", "free"))
    create(first, ("a", 30))
    assert codes(create(same, ("b", 1))) == [EXCEEDED]
    assert codes(create(other, ("b", 11))) == [0]
    assert create(other, ("c", 1)).throttle_time_ms == 1000
    assert codes(create(free, ("d", 5000), ("e", 1))) == [0, 0]
    metrics = {m.client_id: (m.bound, m.tokens) for m in cluster.state.mutations.metrics(cluster.now_ms)}
    assert metrics["test"] == (2, -10) and metrics["other"] == (1, -1)
    assert metrics["free"][0] is None


@pytest.mark.rule("Q-18")
def test_mutation_quota_is_shared_by_all_brokers_of_the_cluster() -> None:
    cluster = VirtualCluster(2)
    limit(cluster, controller_mutation_rate=2.0)
    assert codes(create(cluster.connect(0), ("a", 30))) == [0]
    refused = create(cluster.connect(1), ("b", 1))
    assert (codes(refused), refused.throttle_time_ms) == ([EXCEEDED], 4000)


@pytest.mark.rule("Q-18", "Q-10")
def test_topic_creation_after_a_quota_change_is_throttled_by_the_new_mutation_quota(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    create(client, ("a", 30))
    limit(cluster, controller_mutation_rate=4.0)
    refused = create(client, ("b", 1))
    assert (codes(refused), refused.throttle_time_ms) == ([EXCEEDED], 2500)
    limit(cluster, controller_mutation_rate=None)
    cluster.advance(2500)
    assert codes(client.ask(CreateTopicsRequest([CreatableTopic("b", 100, 1)]), NEWEST_CREATE)) == [0]
    assert codes(create(client, ("c", 100))) == [0]


@pytest.mark.rule("Q-18")
def test_create_topics_gets_the_larger_throttle_of_mutation_quota_and_request_quota(cluster: VirtualCluster) -> None:
    limit(cluster, request_percentage=1.0)
    client = cluster.connect()
    cluster.state.request_cost_ms["CreateTopics"] = 104.0  # 10.4 percent in 10 seconds: 400 ms above 1 percent
    assert create(client, ("a", 30)).throttle_time_ms == 400
    cluster.advance(400)
    cluster.state.request_cost_ms["CreateTopics"] = 0.0
    assert create(client, ("b", 1)).throttle_time_ms == 4600
    reasons = [throttle.reason for throttle in cluster.state.journal.throttles("CreateTopics")]
    assert [(r.quota, r.throttle_ms) for r in reasons] == [("Request", 400), ("ControllerMutation", 4600)]
    mutation = reasons[1]
    assert (mutation.client_id, mutation.bound, mutation.value, mutation.rate) == ("test", 2, 1, -9.2)
    assert mutation.window_ms == 10_000


@pytest.mark.rule("Q-18")
def test_topic_auto_creation_above_the_mutation_quota_fails_without_a_throttle_time(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    create(client, ("a", 30))
    response = client.ask(metadata(["wanted"]), 12)
    assert response.topics[0].error_code == 3
    assert (response.throttle_time_ms, "wanted" in cluster.state.controller.image.topics) == (0, False)
    cluster.advance(5000)
    assert client.ask(metadata(["wanted"]), 12).topics[0].error_code == 3
    assert "wanted" in cluster.state.controller.image.topics


@pytest.mark.rule("Q-18")
def test_mutation_quota_token_bucket_idle_for_an_hour_is_full_again(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    create(client, ("a", 9000), version=5)
    create_again = CreateTopicsRequest([CreatableTopic("b", 1, 1)])
    cluster.advance(3_600_001)
    assert not list(cluster.state.mutations.metrics(cluster.now_ms))
    again = cluster.connect()
    assert codes(again.ask(create_again, NEWEST_CREATE)) == [0]


@pytest.mark.rule("Q-18")
def test_cluster_reset_refills_mutation_quota_token_buckets(cluster: VirtualCluster) -> None:
    create(cluster.connect(), ("a", 30))
    cluster.state.reset()
    limit(cluster, controller_mutation_rate=2.0)
    assert codes(create(cluster.connect(), ("a", 1))) == [0]


@pytest.mark.rule("Q-18")
@pytest.mark.parametrize("rate", [1e-9, 5e-324])
def test_throttle_time_above_the_int32_maximum_is_returned_as_int32_max(cluster: VirtualCluster, rate: float) -> None:
    limit(cluster, controller_mutation_rate=rate)
    older = cluster.connect()
    assert create(older, ("a", 30), version=5).throttle_time_ms == 2**31 - 1
    response = create(cluster.connect(), ("b", 30))
    assert (codes(response), response.throttle_time_ms) == ([EXCEEDED], 2**31 - 1)
