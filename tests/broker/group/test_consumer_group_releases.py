"""Consumer groups of the new protocol (KIP-848) where 3.9, 4.0 and 4.2 differ, in virtual time."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.group.assignors import assignors
from kafkaproto.broker.group.settings import ASSIGNOR_NAMES
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from kafkaproto.partitioner import java_hash
from tests.support.broker.consumer_group import ALL, FENCED_INSTANCE, UNKNOWN_MEMBER, UNSUPPORTED_VERSION, Group
from tests.support.scene import elect, hold, release

NOT_COORDINATOR = 16


@pytest.fixture(params=["3.9", "4.2"])
def group(request: pytest.FixtureRequest) -> Group:
    return Group(request.param)


def test_kip_848_protocol_is_disabled_by_default_in_kafka_3_9() -> None:
    cluster = VirtualCluster()
    request = ConsumerGroupHeartbeatRequest(
        "g", "A", 0, rebalance_timeout_ms=1, subscribed_topic_names=["T"], topic_partitions=[]
    )
    assert cluster.connect().ask(request, 0).error_code == UNSUPPORTED_VERSION
    [described] = cluster.connect().ask(ConsumerGroupDescribeRequest(["g"]), 0).groups
    assert described.error_code == UNSUPPORTED_VERSION


@pytest.mark.rule("GN-66")
@pytest.mark.parametrize(("count", "most"), [(25_000, 100_000), (25_001, 25_001)])
def test_consumer_group_describe_in_3_9_repeats_groups_unless_over_100000_results(count: int, most: int) -> None:
    """Each of the 4 partitions of `__consumer_offsets` has a group of the request."""
    group = Group("3.9")
    names = [f"group-{number}" for number in range(count)]
    response = group.client.ask(ConsumerGroupDescribeRequest(names), 0)
    assert len(response.groups) == most and {described.group_id for described in response.groups} == set(names)


def test_leave_group_removes_several_classic_members_in_one_epoch_since_kafka_4_0(group: Group) -> None:
    group.join("A", instance_id="i1")
    for member_id in "BC":
        group.join(member_id)
    leaving = [MemberIdentity(*ids) for ids in (("", "i1"), ("B", None), ("q", None), ("C", "i1"), ("", "i2"))]
    response = group.client.ask(LeaveGroupRequest("g", members=leaving), 4)
    errors = [member.error_code for member in response.members]
    if group.release == "3.9":
        assert errors == [UNKNOWN_MEMBER] * 3 + [FENCED_INSTANCE, UNKNOWN_MEMBER] and group.epochs[1] == 3
    else:
        assert errors == [0, 0, UNKNOWN_MEMBER, FENCED_INSTANCE, UNKNOWN_MEMBER]
        assert group.epochs == ("Assigning", 4, 3)
        assert [member.member_id for member in group.described().members] == ["C"]


def test_member_that_drops_a_topic_while_revoking_gets_an_assignment_since_kafka_4_2(group: Group) -> None:
    group.cluster.topic("t2", 6)
    both = ["T", "t1", "t2"]
    group.join("A", *both)
    group.join("B", *both)
    assigned = {t.topic_id: t.partitions for t in group.beat("A", 1).assignment.topic_partitions}
    dropped = next(name for name in both if group.id_of(name) in assigned)
    owned = [ConsumerGroupHeartbeatRequestTopicPartitions(group.id_of(name), sorted(ALL)) for name in both]
    names = [name for name in both if name != dropped]
    response = group.beat("A", 1, names=names, topic_partitions=owned)
    if group.release == "3.9":
        assert response.assignment is None
    else:
        rest = {t.topic_id: t.partitions for t in response.assignment.topic_partitions}
        assert (response.member_epoch, rest) == (1, {i: p for i, p in assigned.items() if i != group.id_of(dropped)})


def test_heartbeat_that_confirms_a_revocation_gets_a_new_assignment_since_kafka_4_2(group: Group) -> None:
    group.join("A")
    group.join("B")
    group.beat("A", 1)
    group.beat("B", -1)
    later = group.release == "3.9"
    assert group.epoch_and_partitions(group.beat("A", 1, [0, 1, 2])) == (3, None if later else set(ALL))
    assert group.epoch_and_partitions(group.beat("A", 3, [0, 1, 2])) == (3, set(ALL) if later else None)


def test_offset_fetch_with_require_stable_awaits_commit_replication_since_kafka_4_0() -> None:
    cluster = VirtualCluster(3, release_name="4.2")
    cluster.topic("T", 1, 3)
    leader = cluster.state.coordinator_of("g")
    index = java_hash("g") % len(cluster.state.controller.image.topics["__consumer_offsets"].partitions)
    followers = [n for n in range(3) if n != leader]
    partition = OffsetCommitRequestPartition(0, committed_offset=7)
    commit = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("T", partitions=[partition])])
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", None, -1, None)], require_stable=True)
    for outcome in ("replicated", "moved", "timed out"):
        hold(cluster, *followers, topic="__consumer_offsets", index=index)
        writer, reader = cluster.connect(leader), cluster.connect(leader)
        writer.send(commit, 8)
        reader.send(fetch, 8)
        cluster.run()
        assert reader.answers == [], outcome
        if outcome == "moved":
            elect(cluster, followers[0], "__consumer_offsets", index)
            elect(cluster, leader, "__consumer_offsets", index)
        elif outcome == "timed out":
            cluster.advance(5_000)
        release(cluster, *followers, topic="__consumer_offsets", index=index)
        [group] = reader.latest.groups
        offsets = [p.committed_offset for topic in group.topics for p in topic.partitions]
        assert (group.error_code, offsets) == ((0, [7]) if outcome == "replicated" else (NOT_COORDINATOR, []))


def test_offset_fetch_with_require_stable_for_an_empty_group_list_returns_no_groups() -> None:
    client = VirtualCluster(release_name="4.2").connect()
    assert client.ask(OffsetFetchRequest(groups=[], require_stable=True), 8).groups == []


@pytest.mark.rule("GN-67")
@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("session.timeout.ms", "1000", "must be from group.consumer.min.session.timeout.ms (45000) to .* (got 1000)"),
        (
            "heartbeat.interval.ms",
            "20000",
            "must be from .* to group.consumer.max.heartbeat.interval.ms (15000) (got 20000)",
        ),
        (
            "min.heartbeat.interval.ms",
            "6000",
            "must be from group.consumer.min.heartbeat.interval.ms (6000) to .* (got 5000)",
        ),
    ],
)
@pytest.mark.parametrize("release_name", ["3.9", "4.2"])
def test_broker_start_fails_if_a_group_timeout_is_outside_its_configured_bounds(
    release_name: str, name: str, value: str, message: str
) -> None:
    pattern = re.escape(message).replace(r"\.\*", ".*")
    with pytest.raises(ConfigError, match=f"^group.consumer.*{pattern}"):
        VirtualCluster(1, {f"group.consumer.{name}": value}, release_name=release_name)


@pytest.mark.rule("GN-67")
def test_group_heartbeat_interval_must_be_below_the_session_timeout() -> None:
    settings = {"min.session.timeout.ms": "5000", "session.timeout.ms": "5000"}
    message = "group.consumer.heartbeat.interval.ms must be below group.consumer.session.timeout.ms (5000) (got 5000)"
    with pytest.raises(ConfigError, match=re.escape(message)):
        VirtualCluster(1, {f"group.consumer.{name}": value for name, value in settings.items()}, release_name="4.2")


@pytest.mark.rule("GN-67")
@pytest.mark.parametrize("release_name", ["3.7", "3.9", "4.2"])
@pytest.mark.parametrize("value", ["consumer", "share,consumer", ""])
def test_broker_start_fails_if_the_setting_rebalance_protocols_lacks_classic(release_name: str, value: str) -> None:
    name = "group.coordinator.rebalance.protocols"
    reason = (
        "contain classic"
        if value or release_name < "4"
        else "be a list of at least one of consumer, classic, share, streams"
    )
    with pytest.raises(ConfigError, match=re.escape(f'{name} must {reason} (got "{value}")')):
        VirtualCluster(1, {name: value}, release_name=release_name)


RANGE = "org.apache.kafka.coordinator.group.assignor.RangeAssignor"


@pytest.mark.rule("GN-36")
@pytest.mark.parametrize(
    ("release_name", "value", "message"),
    [
        ("3.9", RANGE, None),
        ("3.9", "", None),
        ("3.9", "range", '(got "range"): before Kafka 4.0, only names of classes are valid'),
        ("3.9", f"{RANGE},", f'(got "{RANGE},")'),
        ("4.2", RANGE, None),
        ("4.2", "range", None),
        ("4.2", "RANGE", 'must be a list of uniform, range (got "RANGE")'),
        ("4.2", "", 'must be a list of at least one item, without empty items (got "")'),
    ],
)
def test_assignors_are_set_by_class_name_and_from_4_0_on_also_by_short_name(
    release_name: str, value: str, message: str | None
) -> None:
    settings = {"group.consumer.assignors": value}
    if message is None:
        VirtualCluster(1, settings, release_name=release_name)
    else:
        with pytest.raises(ConfigError, match=re.escape(message)):
            VirtualCluster(1, settings, release_name=release_name)


@pytest.mark.rule("GN-36")
def test_new_group_protocol_cannot_be_enabled_without_an_assignor_before_4_0() -> None:
    settings = {"group.consumer.assignors": "", "group.coordinator.rebalance.protocols": "classic,consumer"}
    with pytest.raises(ConfigError, match=r"^group\.consumer\.assignors must be a list of org"):
        VirtualCluster(1, settings, release_name="3.9")


@pytest.mark.rule("GN-67")
@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"group.share.min.session.timeout.ms": "70000"}, "group.share.session.timeout.ms must be from "),
        (
            {"group.share.max.share.sessions": "100"},
            "group.share.max.size must be at most group.share.max.share.sessions",
        ),
        ({"group.share.assignors": "range"}, 'group.share.assignors must be simple (got "range")'),
        ({"group.streams.num.standby.replicas": "3"}, "group.streams.num.standby.replicas must be at most "),
        (
            {"group.streams.heartbeat.interval.ms": "45000", "group.streams.max.heartbeat.interval.ms": "50000"},
            "group.streams.heartbeat.interval.ms must be below group.streams.session.timeout.ms (45000) (got 45000)",
        ),
    ],
)
def test_broker_start_fails_if_share_or_streams_group_settings_are_contradictory(
    settings: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(message)):
        VirtualCluster(1, settings, release_name="4.2")


def test_group_consumer_assignors_setting_accepts_exactly_the_implemented_assignors() -> None:
    assert tuple(assignors(is_release_4=True, is_release_4_1=True)) == ASSIGNOR_NAMES


def test_cluster_without_groups_does_not_import_the_group_coordinator_module() -> None:
    program = "\n".join(
        (
            "import sys",
            "from kafkaproto.broker.cluster import Cluster",
            "cluster = Cluster(1)",
            "cluster.apis, list(cluster.groups.list_groups())",
            "assert 'kafkaproto.broker.group.coordinator' not in sys.modules",
            "cluster.nodes[0].groups",
            "assert 'kafkaproto.broker.group.coordinator' in sys.modules",
        )
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parents[3])
