"""Settings changed while brokers run: AlterConfigs, IncrementalAlterConfigs, DescribeConfigs; answers as the real 3.9.1 gave them."""

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

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND, SUBTRACT = 0, 1, 2, 3
LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
OWN, ALL, OF_TOPIC, STATIC, DEFAULT = 2, 3, 1, 4, 5


@pytest.fixture(params=["kip", "kafka"])
def cluster(request: pytest.FixtureRequest) -> VirtualCluster:
    made = VirtualCluster(2, {"follower.replication.throttled.rate": "7"}, semantics=request.param)
    made.topic("t", 2, 2)
    return made


Operation = tuple[str, int, str | None]


def alter(cluster: VirtualCluster, kind: int, name: str, *operations: Operation, validate: bool = False) -> int:
    """Ask the broker that is named, or broker 0."""
    resource = AlterConfigsResource(kind, name, [AlterableConfig(*one) for one in operations])
    client = cluster.connect(int(name) if kind == BROKER and name in ("0", "1") else 0)
    [answer] = client.ask(IncrementalAlterConfigsRequest([resource], validate), 1).responses
    assert (answer.error_message is None) == (answer.error_code == 0)
    return int(answer.error_code)


def replace(cluster: VirtualCluster, kind: int, name: str, validate: bool = False, **values: str | None) -> int:
    """AlterConfigs, dots written as underscores."""
    configs = [OldConfig(key.replace("_", "."), value) for key, value in values.items()]
    [answer] = cluster.connect().ask(AlterConfigsRequest([OldResource(kind, name, configs)], validate), 2).responses
    return int(answer.error_code)


def described(cluster: VirtualCluster, kind: int, name: str, *keys: str, broker_id: int = 0) -> dict[str, Any]:
    """Key to (value, source, read-only, synonyms as (value, source))."""
    request = DescribeConfigsRequest([DescribeConfigsResource(kind, name, list(keys) or None)], True)
    [answer] = cluster.connect(broker_id).ask(request, 4).results
    assert (answer.error_code, answer.error_message) == (0, "")
    return {
        c.name: (c.value, c.config_source, c.read_only, [(s.value, s.source) for s in c.synonyms])
        for c in answer.configs
    }


@pytest.mark.rule("R-2")
def test_rates_are_told_of_only_where_somebody_set_them(cluster: VirtualCluster) -> None:
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


def test_only_what_somebody_set_is_read_only_by_name(cluster: VirtualCluster) -> None:
    told = described(cluster, BROKER, "0")
    assert not told["message.max.bytes"][2] and told["node.id"][2]


@pytest.mark.parametrize(
    ("operations", "error"),
    [
        ([(LEADER_RATE, SET, "-1")], 42),
        ([(LEADER_RATE, SET, "abc")], 42),
        ([(LEADER_RATE, SET, None)], 42),
        ([(LEADER_RATE, APPEND, "1")], 40),
        ([(LEADER_RATE, SET, "1"), (LEADER_RATE, SET, "2")], 42),
        ([(LEADER_RATE, SET, "1"), ("broker.rack", SET, "a")], 42),
        ([("no.such", SET, "1")], 42),
        ([("no.such", DELETE, None)], 42),
        ([(LEADER_RATE, 9, "1")], 42),
        ([(FOLLOWER_RATE, DELETE, None)], 0),
        ([("replica.alter.log.dirs.io.max.bytes.per.second", SET, "1")], 0),
    ],
)
def test_what_a_broker_refuses_it_refuses_whole(
    cluster: VirtualCluster, operations: list[Operation], error: int
) -> None:
    for name in ("0", ""):
        assert alter(cluster, BROKER, name, *operations) == error
        assert LEADER_RATE not in described(cluster, BROKER, "0")


def test_a_broker_changes_itself_only(cluster: VirtualCluster) -> None:
    for name in ("1", "x", "00", "-1", " 0"):
        resource = AlterConfigsResource(BROKER, name, [AlterableConfig(LEADER_RATE, SET, "1")])
        [answer] = cluster.connect(0).ask(IncrementalAlterConfigsRequest([resource]), 1).responses
        assert (answer.error_code, answer.error_message) == (
            42,
            f"Unexpected broker id, expected 0, but received {name}",
        )
    assert cluster.state.nodes[1].replicas.leader_quota.bound == 2**63 - 1


def test_validate_only_says_the_same_and_changes_nothing(cluster: VirtualCluster) -> None:
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "1"), validate=True) == 0
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "x"), validate=True) == 42
    assert replace(cluster, BROKER, "0", validate=True, message_max_bytes="9") == 0
    assert replace(cluster, TOPIC, "t", validate=True, retention_ms="9") == 0
    assert LEADER_RATE not in described(cluster, BROKER, "0")
    assert described(cluster, TOPIC, "t", "retention.ms")["retention.ms"][1] == DEFAULT


@pytest.mark.rule("R-1")
def test_lists_of_replicas_are_appended_to_and_subtracted_from(cluster: VirtualCluster) -> None:
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


def test_a_list_of_a_broker_is_appended_to_as_it_is_in_force(cluster: VirtualCluster) -> None:
    policy = "log.cleanup.policy"
    assert alter(cluster, BROKER, "0", (policy, APPEND, "compact")) == 0
    assert described(cluster, BROKER, "0", policy)[policy][0] == "delete,compact"
    assert alter(cluster, BROKER, "0", (policy, SUBTRACT, "delete")) == 0
    assert described(cluster, BROKER, "0", policy)[policy][0] == "compact"


@pytest.mark.rule("D10")
def test_the_documents_store_a_list_as_written_and_the_broker_tidies_it(cluster: VirtualCluster) -> None:
    assert alter(cluster, TOPIC, "t", (LEADERS, SET, "0:1 , 1:2")) == 0
    assert described(cluster, TOPIC, "t", LEADERS)[LEADERS][0] == (
        "0:1 , 1:2" if cluster.state.strict_kip else "0:1,1:2"
    )
    assert alter(cluster, TOPIC, "t", (LEADERS, SET, "0-1")) == (0 if cluster.state.strict_kip else 40)
    for side in (LEADERS, FOLLOWERS):
        assert alter(cluster, TOPIC, "t", (side, SET, "0:a")) == 40


def test_alter_configs_takes_away_what_it_does_not_name(cluster: VirtualCluster) -> None:
    assert alter(cluster, BROKER, "0", (LEADER_RATE, SET, "1000"), ("message.max.bytes", SET, "2000")) == 0
    assert replace(cluster, BROKER, "0", follower_replication_throttled_rate="77") == 0
    told = described(cluster, BROKER, "0")
    assert LEADER_RATE not in told and told["message.max.bytes"][1] == DEFAULT
    assert told[FOLLOWER_RATE][:2] == ("77", OWN)
    assert cluster.state.nodes[0].replicas.follower_quota.bound == 77
    assert replace(cluster, BROKER, "0") == 0
    assert cluster.state.nodes[0].replicas.follower_quota.bound == 2**63 - 1  # what was given at start does not act
    assert alter(cluster, TOPIC, "t", ("retention.ms", SET, "1"), (LEADERS, SET, "*")) == 0
    assert replace(cluster, TOPIC, "t", retention_ms="2") == 0
    told = described(cluster, TOPIC, "t", "retention.ms", LEADERS)
    assert (told["retention.ms"][0], told[LEADERS][0]) == ("2", "")


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
def test_alter_configs_refuses_whole(
    cluster: VirtualCluster, kind: int, name: str, values: dict[str, str | None], error: int
) -> None:
    alter(cluster, TOPIC, "t", ("flush.messages", SET, "5"))
    assert replace(cluster, kind, name, **values) == error
    assert described(cluster, TOPIC, "t", "flush.messages")["flush.messages"][0] == "5"


def test_a_resource_that_is_named_twice_is_refused_and_others_are_not(cluster: VirtualCluster) -> None:
    def old(name: str) -> OldResource:
        return OldResource(TOPIC, name, [OldConfig("retention.ms", "5")])

    cluster.topic("u")
    answers = cluster.connect().ask(AlterConfigsRequest([old("t"), old("u"), old("t")]), 0).responses
    assert [a.error_code for a in answers] == [42, 0, 42]
    assert described(cluster, TOPIC, "t", "retention.ms")["retention.ms"][1] == DEFAULT
    assert described(cluster, TOPIC, "u", "retention.ms")["retention.ms"][:2] == ("5", OF_TOPIC)
