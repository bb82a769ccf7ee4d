"""AlterConfigs, IncrementalAlterConfigs and DescribeConfigs on running brokers; the expected responses are those of Kafka 3.9.1."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.alter_configs import AlterableConfig as OldConfig
from kafkaproto.messages.alter_configs import AlterConfigsRequest
from kafkaproto.messages.alter_configs import AlterConfigsResource as OldResource
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.list_config_resources import ListConfigResourcesRequest

TOPIC, BROKER, GROUP = 2, 4, 32
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
OWN, ALL, OF_TOPIC, STATIC, DEFAULT = 2, 3, 1, 4, 5


@pytest.fixture(params=["kip", "kafka"])
def cluster(request: pytest.FixtureRequest) -> VirtualCluster:
    virtual_cluster = VirtualCluster(2, {"follower.replication.throttled.rate": "7"}, semantics=request.param)
    virtual_cluster.topic("t", 2, 2)
    return virtual_cluster


Operation = tuple[str, int, str | None]


def alter(cluster: VirtualCluster, kind: int, name: str, *operations: Operation, validate: bool = False) -> int:
    """Send IncrementalAlterConfigs to the named broker, or to broker 0, and return the error code."""
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*operation) for operation in operations])
    client = cluster.connect(int(name) if kind == BROKER and name in ("0", "1") else 0)
    [resource_response] = client.ask(IncrementalAlterConfigsRequest([resource], validate), 1).responses
    assert (resource_response.error_message is None) == (resource_response.error_code == 0)
    return int(resource_response.error_code)


def replace(cluster: VirtualCluster, kind: int, name: str, validate: bool = False, **values: str | None) -> int:
    """Send AlterConfigs and return the error code; dots in setting names are written as underscores."""
    configs = [OldConfig(key.replace("_", "."), value) for key, value in values.items()]
    [resource_response] = (
        cluster.connect().ask(AlterConfigsRequest([OldResource(kind, name, configs)], validate), 2).responses
    )
    return int(resource_response.error_code)


def described(cluster: VirtualCluster, kind: int, name: str, *keys: str, broker_id: int = 0) -> dict[str, Any]:
    """Return setting name to (value, source, read-only, synonyms as (value, source))."""
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, list(keys) or None)], True)
    [result] = cluster.connect(broker_id).ask(request, 4).results
    assert (result.error_code, result.error_message) == (0, "")
    return {
        c.name: (c.value, c.config_source, c.read_only, [(s.value, s.source) for s in c.synonyms])
        for c in result.configs
    }


@pytest.mark.rule("R-2")
def test_describe_configs_lists_replication_throttle_rates_only_if_they_are_set(cluster: VirtualCluster) -> None:
    assert described(cluster, BROKER, "0", LEADER_RATE) == described(cluster, BROKER, "") == {}
    assert described(cluster, BROKER, "0", FOLLOWER_RATE)[FOLLOWER_RATE][:2] == ("7", STATIC)
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "1000")) == 0
    assert alter(cluster, BROKER, "", (LEADER_RATE, SET, "2000")) == 0
    own = ("1000", OWN, True, [("1000", OWN), ("2000", ALL)])
    of_all = ("2000", ALL, True, [("2000", ALL)])
    assert described(cluster, BROKER, "0", LEADER_RATE) == {LEADER_RATE: own}
    assert described(cluster, BROKER, "1", LEADER_RATE, broker_id=1) == {LEADER_RATE: of_all}
    assert described(cluster, BROKER, "") == {LEADER_RATE: of_all}
    assert alter(cluster, BROKER, "0", (LEADER_RATE, DELETE, None)) == 0
    assert described(cluster, BROKER, "0", LEADER_RATE) == {LEADER_RATE: of_all}


def test_describe_configs_marks_node_id_but_not_message_max_bytes_as_read_only(cluster: VirtualCluster) -> None:
    descriptions = described(cluster, BROKER, "0")
    assert not descriptions["message.max.bytes"][2] and descriptions["node.id"][2]


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        ([(LEADER_RATE, SET, "-1")], 42),
        ([(LEADER_RATE, SET, "abc")], 42),
        ([(LEADER_RATE, SET, None)], 42),
        ([(LEADER_RATE, APPEND, "1")], 40),
        ([(LEADER_RATE, SET, "1"), (LEADER_RATE, SET, "2")], 42),
        ([(LEADER_RATE, SET, "1"), ("broker.rack", SET, "a")], 42),
        ([("no.such", SET, "1"), (LEADER_RATE, SET, "x")], 42),
        ([("no.such", SET, None)], 42),
        ([("no.such", DELETE, None)], 0),
        ([("no.such", APPEND, "1")], -1),
        ([("no.such", SUBTRACT, "1")], -1),
        ([(LEADER_RATE, 9, "1")], 42),
        ([(FOLLOWER_RATE, DELETE, None)], 0),
        ([("replica.alter.log.dirs.io.max.bytes.per.second", SET, "1")], 0),
    ],
)
def test_broker_rejects_all_changes_of_a_request_when_any_is_invalid(
    cluster: VirtualCluster, operations: list[Operation], error: int
) -> None:
    for name in ("0", ""):
        assert alter(cluster, BROKER, name, *operations) == error
        assert LEADER_RATE not in described(cluster, BROKER, "0")


def test_broker_rejects_changes_to_the_settings_of_another_broker_id(cluster: VirtualCluster) -> None:
    unexpected = "Unexpected broker id, expected 0, but received {}"
    no_number = "Node id must be an integer, but it is: {}"
    names = {"1": unexpected, "x": no_number, "01": unexpected, "-1": unexpected, " 0": no_number}
    for name, message in names.items():
        resource = AlterConfigsResource(BROKER, name, [AlterableConfig(LEADER_RATE, SET, "1")])
        [resource_response] = cluster.connect(0).ask(IncrementalAlterConfigsRequest([resource]), 1).responses
        assert (resource_response.error_code, resource_response.error_message) == (42, message.format(name))
    assert cluster.state.nodes[1].replicas.leader_quota.bound == 2**63 - 1


def test_validate_only_alter_configs_changes_no_setting_and_rejects_invalid_values(cluster: VirtualCluster) -> None:
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "1"), validate=True) == 0
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "x"), validate=True) == 42
    assert replace(cluster, BROKER, "0", validate=True, message_max_bytes="9") == 0
    assert replace(cluster, TOPIC, "t", validate=True, retention_ms="9") == 0
    assert LEADER_RATE not in described(cluster, BROKER, "0")
    assert described(cluster, TOPIC, "t", "retention.ms")["retention.ms"][1] == DEFAULT


@pytest.mark.rule("R-1")
def test_entries_can_be_appended_to_and_subtracted_from_throttled_replica_lists(cluster: VirtualCluster) -> None:
    def own() -> Any:
        return described(cluster, TOPIC, "t", LEADERS)[LEADERS]

    assert own() == ("", DEFAULT, False, [])
    assert alter(cluster, TOPIC, "t", (LEADERS, SET, "0:1")) == 0
    assert alter(cluster, TOPIC, "t", (LEADERS, APPEND, "0:2,0:1")) == 0
    assert own() == ("0:1,0:2", OF_TOPIC, False, [("0:1,0:2", OF_TOPIC)])
    assert alter(cluster, TOPIC, "t", (LEADERS, APPEND, "x")) == 40
    assert alter(cluster, TOPIC, "t", (LEADERS, SUBTRACT, "0:1,9:9")) == 0
    assert own()[0] == "0:2"
    assert alter(cluster, TOPIC, "t", (LEADERS, SUBTRACT, "0:2")) == 0
    assert own() == ("", OF_TOPIC, False, [("", OF_TOPIC)])
    assert alter(cluster, TOPIC, "t", (LEADERS, APPEND, "0:2,0:2")) == 0
    assert own()[0] == "0:2"


@pytest.mark.rule("CF-23")
@pytest.mark.parametrize(("resource_type", "name"), [(BROKER, "0"), (BROKER, ""), (TOPIC, "t")])
def test_append_to_a_list_setting_adds_to_the_kafka_default_not_to_the_static_value(
    resource_type: int, name: str
) -> None:
    cluster = VirtualCluster(config={"log.cleanup.policy": "compact"})
    cluster.topic("t")
    policy = "cleanup.policy" if resource_type == TOPIC else "log.cleanup.policy"

    def value() -> Any:
        return described(cluster, resource_type, name, policy)[policy][0]

    assert alter(cluster, resource_type, name, (policy, SUBTRACT, "compact")) == 0
    assert value() == "delete"
    assert alter(cluster, resource_type, name, (policy, APPEND, "compact")) == 0
    assert value() == "delete,compact"


def test_appending_compact_to_log_cleanup_policy_delete_gives_delete_and_compact(cluster: VirtualCluster) -> None:
    policy = "log.cleanup.policy"
    assert alter(cluster, BROKER, "0", (policy, APPEND, "compact")) == 0
    assert described(cluster, BROKER, "0", policy)[policy][0] == "delete,compact"
    assert alter(cluster, BROKER, "0", (policy, SUBTRACT, "delete")) == 0
    assert described(cluster, BROKER, "0", policy)[policy][0] == "compact"


@pytest.mark.rule("D10")
def test_spaces_in_throttled_replica_lists_are_removed_if_broker_follows_kafka_code(cluster: VirtualCluster) -> None:
    assert alter(cluster, TOPIC, "t", (LEADERS, SET, "0:1 , 1:2")) == 0
    assert described(cluster, TOPIC, "t", LEADERS)[LEADERS][0] == (
        "0:1 , 1:2" if cluster.state.strict_kip else "0:1,1:2"
    )
    assert alter(cluster, TOPIC, "t", (LEADERS, SET, "0-1")) == (0 if cluster.state.strict_kip else 40)
    for side in (LEADERS, FOLLOWERS):
        assert alter(cluster, TOPIC, "t", (side, SET, "0:a")) == 40


def test_alter_configs_resets_settings_that_the_request_does_not_list(cluster: VirtualCluster) -> None:
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "1000"), ("message.max.bytes", SET, "2000")) == 0
    assert replace(cluster, BROKER, "0", follower_replication_throttled_rate="77") == 0
    descriptions = described(cluster, BROKER, "0")
    assert LEADER_RATE not in descriptions and descriptions["message.max.bytes"][1] == DEFAULT
    assert descriptions[FOLLOWER_RATE][:2] == ("77", OWN)
    assert cluster.state.nodes[0].replicas.follower_quota.bound == 77
    assert replace(cluster, BROKER, "0") == 0
    assert cluster.state.nodes[0].replicas.follower_quota.bound == 2**63 - 1  # the value given at start has no effect
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "1"), (LEADERS, SET, "*")) == 0
    assert replace(cluster, TOPIC, "t", retention_ms="2") == 0
    descriptions = described(cluster, TOPIC, "t", "retention.ms", LEADERS)
    assert (descriptions["retention.ms"][0], descriptions[LEADERS][0]) == ("2", "")


@pytest.mark.parametrize(
    ("kind", "name", "values", "error"),
    [
        (TOPIC, "none", {"retention_ms": "1"}, 3),
        (TOPIC, "t", {"retention_ms": "soon"}, 40),
        (TOPIC, "t", {"no_such": "1"}, 40),
        (TOPIC, "t", {"retention_ms": None}, 42),
        (BROKER, "1", {"message_max_bytes": "1"}, 42),
        (BROKER, "0", {"message_max_bytes": "-1"}, 42),
        (BROKER, "0", {"node_id": "1"}, 42),
        (8, "0", {}, 42),
        (99, "0", {}, 42),
    ],
)
def test_alter_configs_with_an_invalid_setting_returns_an_error_and_changes_nothing(
    cluster: VirtualCluster, kind: int, name: str, values: dict[str, str | None], error: int
) -> None:
    alter(cluster, TOPIC, "t", ("flush.messages", SET, "5"))
    assert replace(cluster, kind, name, **values) == error
    assert described(cluster, TOPIC, "t", "flush.messages")["flush.messages"][0] == "5"


def test_topic_listed_twice_in_alter_configs_is_rejected_and_other_topics_change(cluster: VirtualCluster) -> None:
    def old(name: str) -> OldResource:
        return OldResource(TOPIC, name, [OldConfig("retention.ms", "5")])

    cluster.topic("u")
    resource_responses = cluster.connect().ask(AlterConfigsRequest([old("t"), old("u"), old("t")]), 0).responses
    assert [a.error_code for a in resource_responses] == [42, 0, 42]
    assert described(cluster, TOPIC, "t", "retention.ms")["retention.ms"][1] == DEFAULT
    assert described(cluster, TOPIC, "u", "retention.ms")["retention.ms"][:2] == ("5", OF_TOPIC)


@pytest.mark.rule("CF-4", "CF-13")
@pytest.mark.parametrize("release", ["3.9", "4.2"])
@pytest.mark.parametrize(("resource", "source"), [("0", OWN), ("", ALL)])
def test_unknown_broker_setting_is_stored_and_described_as_a_secret(release: str, resource: str, source: int) -> None:
    """Kafka 3.9.1 and 4.2.0 store the value and describe it as a secret, because its meaning is unknown."""
    cluster = VirtualCluster(2, release_name=release)

    def shown() -> list[Any]:
        request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, resource, ["no.such"])], True)
        [result] = cluster.connect().ask(request, 4).results
        return [
            (
                c.value,
                c.config_source,
                c.read_only,
                c.is_sensitive,
                c.config_type,
                [(s.value, s.source) for s in c.synonyms],
            )
            for c in result.configs
        ]

    assert alter(cluster, BROKER, resource, ("no.such", SET, "1"), validate=True) == 0
    assert shown() == []
    assert alter(cluster, BROKER, resource, ("no.such", SET, "1")) == 0
    assert shown() == [(None, source, True, True, 0, [(None, source)])]
    assert alter(cluster, BROKER, resource, ("no.such", APPEND, "2")) == -1
    assert alter(cluster, BROKER, resource, ("no.such", SET, "2"), ("message.max.bytes", SET, "2000000")) == 0
    assert alter(cluster, BROKER, resource, ("no.such", DELETE, None)) == 0
    assert shown() == []
    of_listener = alter(cluster, BROKER, resource, ("listener.name.plaintext.no.such", SET, "1"))
    assert of_listener == (0 if resource else 42)


def test_zookeeper_connect_can_be_altered_in_release_4_2_but_is_read_only_in_3_9() -> None:
    cluster = VirtualCluster(1, release_name="4.2")
    assert alter(cluster, BROKER, "0", ("zookeeper.connect", SET, "localhost:2181")) == 0
    assert alter(cluster, BROKER, "0", ("zookeeper.connect", DELETE, None)) == 0
    cluster = VirtualCluster(1, release_name="3.9")
    assert alter(cluster, BROKER, "0", ("zookeeper.connect", SET, "localhost:2181")) == 42  # known, and fixed at start


def test_alter_configs_can_delete_but_not_set_an_unknown_topic_setting(cluster: VirtualCluster) -> None:
    for operation, code in ((SET, 40), (APPEND, 40), (DELETE, 0)):
        assert alter(cluster, TOPIC, "t", ("no.such", operation, None if operation == DELETE else "1")) == code
    assert replace(cluster, TOPIC, "t", no_such="1") == 40


@pytest.mark.parametrize("name", ["broker.rack", "node.id", "ssl.keystore.location", "no.such"])
def test_deleting_a_dynamic_broker_setting_that_is_not_set_succeeds(cluster: VirtualCluster, name: str) -> None:
    for resource in ("0", ""):
        assert alter(cluster, BROKER, resource, (name, DELETE, None)) == 0


@pytest.mark.rule("CF-24")
@pytest.mark.parametrize("version", [3, 4])
def test_describe_configs_returns_null_documentation_even_if_requested(version: int) -> None:
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "0", None)], include_documentation=True)
    [result] = VirtualCluster(1).connect().ask(request, version).results
    assert len(result.configs) > 300 and {config.documentation for config in result.configs} == {None}


@pytest.mark.rule("AD-18")
def test_broker_forgets_names_of_groups_without_settings_when_it_restarts() -> None:
    cluster = VirtualCluster(2, release_name="4.2")
    client = cluster.connect()

    def listed() -> list[list[str]]:
        request = ListConfigResourcesRequest([GROUP])
        responses = [cluster.connect(broker_id).ask(request, 1) for broker_id in (0, 1)]
        return [[resource.resource_name for resource in response.config_resources] for response in responses]

    for group in ("kept", "emptied"):
        configs = [OldConfig("consumer.heartbeat.interval.ms", "5000")]
        client.ask(AlterConfigsRequest([OldResource(GROUP, group, configs)]), 2)
    client.ask(AlterConfigsRequest([OldResource(GROUP, "emptied", [])]), 2)
    assert listed() == [["emptied", "kept"]] * 2  # the order of a Java hash table
    cluster.state.stop_broker(1)
    cluster.state.start_broker(1)
    cluster.run()
    assert listed() == [["emptied", "kept"], ["kept"]]
    client.ask(AlterConfigsRequest([OldResource(GROUP, "kept", [])]), 2)
    assert listed() == [["emptied", "kept"], ["kept"]]
