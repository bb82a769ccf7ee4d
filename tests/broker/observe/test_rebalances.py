"""The history of rebalances and the journal's group events: what each change of a group was, and what caused it."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.group.causes import Cause, CauseKind, GroupChange
from kafkaproto.broker.group.changes import GroupChanges
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.observe.rebalances import MOST_GROUPS, MOST_OF_GROUP, RebalanceHistory, RebalanceSeen
from kafkaproto.broker.runtime.events import Events, Observer
from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.trace.format import Entry, Event
from tests.support.broker.consumer_group import ALL, SESSION_MS, TIMEOUT_MS, Group
from tests.support.broker.group_bench import subscription
from tests.support.recording import recorder_into
from tests.support.scene import elect

REBALANCE_MS = 20_000
JOINED, LEFT = CauseKind.JOINED, CauseKind.LEFT


@pytest.fixture(params=["3.9", "4.2"])
def group(request: pytest.FixtureRequest) -> Group:
    return Group(request.param)


def history(cluster: VirtualCluster, group_id: str = "g") -> list[tuple[int, int | None, str, int | None, list[str]]]:
    """Return (epoch before, epoch after, last state, duration in ms, causes) of each rebalance of a group."""
    return [
        (
            rebalance.from_epoch,
            rebalance.to_epoch,
            rebalance.state,
            rebalance.duration_ms,
            [str(cause) for cause in rebalance.causes],
        )
        for rebalance in cluster.state.rebalances.of_group(group_id)
    ]


def changes(cluster: VirtualCluster) -> list[tuple[str, int, list[str]]]:
    """Return (state, epoch, causes) of each group event in the journal."""
    return [
        (event.facts["state"], event.facts["epoch"], event.facts["causes"])
        for event in cluster.state.journal.events("group")
    ]


def moved_events(cluster: VirtualCluster) -> dict[int, tuple[str, list[str]]]:
    """Return (state, causes) of the last two group events in the journal, by broker. Brokers apply a new leader in the order of their ids."""
    return {e.broker_id: (e.facts["state"], e.facts["causes"]) for e in cluster.state.journal.events("group")[-2:]}


# ---- classic groups ----------------------------------------------------------------------------------------------------------


class Classic:
    """Classic group `g` on one broker: each member has its own connection."""

    def __init__(self) -> None:
        self.cluster = VirtualCluster(config={"group.initial.rebalance.delay.ms": "0"})

    def connect(self) -> MemoryClient:
        return self.cluster.connect()

    def send_join(self, client: MemoryClient, member_id: str = "", *topics: str, instance: str | None = None) -> None:
        protocols = [JoinGroupRequestProtocol("range", subscription(*topics or ("orders",)))]
        request = JoinGroupRequest("g", 10_000, REBALANCE_MS, member_id, instance, "consumer", protocols)
        client.send(request, 5 if instance is not None else 3)

    def sync(self, client: MemoryClient, joined: Any) -> None:
        assignments = [SyncGroupRequestAssignment(joined.member_id, b"")] if joined.leader == joined.member_id else []
        client.send(SyncGroupRequest("g", joined.generation_id, joined.member_id, assignments=assignments), 3)

    def first(self, client: MemoryClient, **options: Any) -> Any:
        """Make a Stable group of one member, and return the response to its join."""
        self.send_join(client, "", **options)
        joined = client.answers[-1].message
        self.sync(client, joined)
        return joined


def test_rebalance_history_of_a_classic_group_shows_the_duration_of_each_rebalance() -> None:
    classic = Classic()
    client_1, client_2 = classic.connect(), classic.connect()
    first = classic.first(client_1)
    classic.cluster.advance(1000)
    classic.send_join(client_2)
    assert history(classic.cluster)[-1][:4] == (1, None, "PreparingRebalance", None)
    classic.cluster.advance(40)
    classic.send_join(client_1, first.member_id)
    second_id = client_2.answers[-1].message.member_id
    assert history(classic.cluster)[-1][:4] == (1, 2, "CompletingRebalance", None)
    classic.sync(client_2, client_2.answers[-1].message)
    classic.cluster.advance(2)
    classic.sync(client_1, client_1.answers[-1].message)
    assert history(classic.cluster) == [
        (0, 1, "Stable", 0, [f"member {first.member_id} joined"]),
        (1, 2, "Stable", 42, [f"member {second_id} joined"]),
    ]
    first_rebalance, latest_rebalance = classic.cluster.state.rebalances.of_group("g")
    assert (
        latest_rebalance.at_ms - first_rebalance.at_ms,
        latest_rebalance.elapsed_ms,
        latest_rebalance.broker_id,
        latest_rebalance.group_type,
    ) == (
        1000,
        1000,
        0,
        "classic",
    )
    assert latest_rebalance.members == (first.member_id, second_id)
    assert str(latest_rebalance) == (
        f"+1.000 s broker 0 group g: generation 1 to 2, Stable after 42 ms with {first.member_id}, {second_id}: "
        f"member {second_id} joined"
    )


def test_rebalance_cause_names_the_classic_member_that_left_or_timed_out() -> None:
    classic = Classic()
    client = classic.connect()
    first = classic.first(client)
    client.send(LeaveGroupRequest("g", members=[MemberIdentity(first.member_id)]), 3)
    second = classic.first(client)
    classic.cluster.advance(10_000)
    assert history(classic.cluster) == [
        (0, 1, "Stable", 0, [f"member {first.member_id} joined"]),
        (1, 2, "Empty", 0, [f"member {first.member_id} left"]),
        (2, 3, "Stable", 0, [f"member {second.member_id} joined"]),
        (3, 4, "Empty", 0, [f"member {second.member_id} sent no heartbeat within its session timeout"]),
    ]


def test_rebalance_cause_says_which_classic_member_sent_no_heartbeat_in_time() -> None:
    classic = Classic()
    client_1, client_2, client_3 = (classic.connect() for _ in range(3))
    first = classic.first(client_1)
    classic.send_join(client_2)
    for _ in range(
        5
    ):  # heartbeats of the first member are missing, but its session timeout is shorter than the rebalance
        classic.cluster.advance(2000)
    second_id = client_2.answers[-1].message.member_id
    assert history(classic.cluster)[-1][4] == [
        f"member {second_id} joined",
        f"member {first.member_id} sent no heartbeat within its session timeout",
    ]
    classic.cluster.advance(REBALANCE_MS)  # the second member is the leader and sends no SyncGroup, nor heartbeats
    assert history(classic.cluster)[-1][3:] == (
        0,
        [f"member {second_id} sent no heartbeat within its session timeout"],
    )
    third = classic.first(client_3)
    assert third.generation_id == 4


def test_rebalance_causes_say_which_classic_members_did_not_sync_or_join_in_time() -> None:
    classic = Classic()
    client = classic.connect()
    changes_of = classic.cluster.state.rebalances.of_group
    protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
    client.send(JoinGroupRequest("g", 60_000, 5_000, "", None, "consumer", protocols), 3)
    member_id = client.answers[-1].message.member_id
    classic.cluster.advance(5_000)
    assert [str(cause) for cause in changes_of("g")[-1].causes] == [
        f"member {member_id} sent no SyncGroup within the rebalance timeout"
    ]
    client.send(JoinGroupRequest("g", 60_000, 5_000, "", None, "consumer", protocols), 3)
    classic.sync(client, client.answers[-1].message)
    late_id, other = client.answers[-2].message.member_id, classic.connect()
    other.send(JoinGroupRequest("g", 60_000, 5_000, "", None, "consumer", protocols), 3)
    classic.cluster.advance(5_000)
    assert [str(cause) for cause in changes_of("g")[-1].causes] == [
        f"member {other.answers[-1].message.member_id} joined",
        f"member {late_id} did not join again within the rebalance timeout",
    ]


def test_rebalance_cause_says_whether_a_rejoining_member_changed_its_subscription() -> None:
    classic = Classic()
    client = classic.connect()
    first = classic.first(client)
    classic.send_join(client, first.member_id)
    classic.sync(client, client.answers[-1].message)
    classic.send_join(client, first.member_id, "orders", "payments")
    assert [causes for *_, causes in history(classic.cluster)[1:]] == [
        [f"member {first.member_id} joined again"],
        [f"member {first.member_id} changed its subscription"],
    ]


def test_restart_of_a_static_classic_member_adds_a_group_event_but_no_rebalance() -> None:
    classic = Classic()
    old, new = classic.connect(), classic.connect()
    first = classic.first(old, instance="one")
    classic.send_join(new, "", instance="one")
    new_id = new.answers[-1].message.member_id
    assert changes(classic.cluster)[-1] == ("Stable", 1, [f"member {new_id} replaced static member {first.member_id}"])
    assert len(history(classic.cluster)) == 1


def test_rebalance_interrupted_by_a_coordinator_move_is_recorded_as_unfinished() -> None:
    cluster = VirtualCluster(2, {"offsets.topic.replication.factor": "2", "group.initial.rebalance.delay.ms": "3000"})
    leader = cluster.state.coordinator_of("g")
    protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
    cluster.connect(leader).send(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols), 3)
    index = cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(cluster, 1 - leader, "__consumer_offsets", index)
    assert [entry[:4] for entry in history(cluster)] == [(0, None, "Dead", None)]


def test_deleting_a_classic_group_adds_a_dead_event_and_keeps_its_rebalance_history() -> None:
    classic = Classic()
    client = classic.connect()
    first = classic.first(client)
    client.send(LeaveGroupRequest("g", members=[MemberIdentity(first.member_id)]), 3)
    client.ask(DeleteGroupsRequest(["g"]), 2)
    assert changes(classic.cluster)[-1] == ("Dead", 2, [])
    assert [entry[:3] for entry in history(classic.cluster)] == [(0, 1, "Stable"), (1, 2, "Empty")]


def test_old_coordinator_reports_a_moved_group_as_dead_and_new_coordinator_as_stable() -> None:
    cluster = VirtualCluster(2, {"offsets.topic.replication.factor": "2", "group.initial.rebalance.delay.ms": "0"})
    leader = cluster.state.coordinator_of("g")
    client = cluster.connect(leader)
    protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
    joined = client.ask(JoinGroupRequest("g", 10_000, 10_000, "", None, "consumer", protocols), 3)
    assignments = [SyncGroupRequestAssignment(joined.member_id, b"")]
    client.send(SyncGroupRequest("g", 1, joined.member_id, assignments=assignments), 3)
    cluster.advance(100)
    index = cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(cluster, 1 - leader, "__consumer_offsets", index)
    assert moved_events(cluster) == {
        leader: ("Dead", ["the coordinator moved to another broker, or stopped"]),
        1 - leader: ("Stable", ["the coordinator loaded the group"]),
    }
    assert [entry[:3] for entry in history(cluster)] == [(0, 1, "Stable")]


# ---- groups of the new protocol ----------------------------------------------------------------------------------------------


def test_rebalance_history_lists_each_new_epoch_of_a_consumer_group_with_its_cause(group: Group) -> None:
    group.join("A")
    group.cluster.advance(1000)
    group.join("B")
    assert history(group.cluster)[-1] == (1, 2, "Reconciling", None, ["member B joined"])
    group.cluster.advance(500)
    target = group.targets()["A"]
    group.beat("A", 1, sorted(ALL))
    group.cluster.advance(200)
    group.beat("A", 1, target, ["T"], timeout_ms=TIMEOUT_MS)
    group.cluster.advance(50)
    group.beat("B", 2, [])
    assert history(group.cluster) == [
        (0, 1, "Stable", 0, ["member A joined"]),
        (1, 2, "Stable", 750, ["member B joined"]),
    ]
    latest = group.cluster.state.rebalances.of_group("g")[-1]
    assert (latest.group_type, latest.members, latest.elapsed_ms) == ("consumer", ("A", "B"), 1000)
    assert str(latest) == "+1.000 s broker 0 group g: epoch 1 to 2, Stable after 750 ms with A, B: member B joined"


def test_members_that_leave_a_consumer_group_are_reported_with_the_reason(group: Group) -> None:
    group.join("A")
    group.beat("A", -1)
    group.join("B", timeout_ms=SESSION_MS - 5000)
    group.join("C")
    group.beat("B", 2 if group.epochs[1] == 2 else group.epochs[1] - 1, sorted(ALL))  # B must revoke, and does not
    group.cluster.advance(SESSION_MS - 5000)
    group.cluster.advance(5000)
    assert [causes for *_, causes in history(group.cluster)] == [
        ["member A joined"],
        ["member A left"],
        ["member B joined"],
        ["member C joined"],
        ["member B did not revoke its partitions within its rebalance timeout"],
        ["member C sent no heartbeat within its session timeout"],
    ]
    assert group.epochs[0] == "Empty" and history(group.cluster)[-1][2:4] == ("Empty", 0)


def test_rebalance_causes_of_a_new_epoch_include_changed_subscriptions_and_topics(group: Group) -> None:
    group.join("A")
    group.beat("A", 1, None, ["T", "t1"])
    group.client.ask(CreatePartitionsRequest([CreatePartitionsTopic("t1", 8, None)], 10_000), 3)
    group.beat("A", 2, None)
    assert history(group.cluster)[1:] == [
        (1, 2, "Stable", 0, ["member A changed its subscription"]),
        (2, 3, "Stable", 0, ["the subscribed topics changed: t1"]),
    ]


def test_rebalance_cause_names_a_subscribed_topic_created_after_the_member_joined(group: Group) -> None:
    group.join("A", "later")
    group.cluster.topic("later", 2)
    group.beat("A", 1, None)
    assert history(group.cluster)[1][4] == ["the subscribed topics changed: later"]


def test_group_events_report_that_a_static_member_left_temporarily_and_returned(group: Group) -> None:
    group.join("A", instance_id="one")
    group.beat("A", -2, instance_id="one")
    group.join("A2", instance_id="one")
    assert changes(group.cluster) == [
        ("Stable", 1, ["member A joined"]),
        ("Reconciling", 1, ["static member A left for a while"]),
        ("Stable", 1, ["member A2 replaced static member A"]),
    ]
    assert len(history(group.cluster)) == 1


def test_rejected_heartbeats_of_a_consumer_group_cause_no_group_change_event(group: Group) -> None:
    group.join("A")
    before = changes(group.cluster)
    assert group.beat("A", 7).error_code == 110
    assert group.beat("X", 1).error_code == 25
    assert group.beat("A", 1, None, group="other").error_code == 69
    assert group.join("B", instance_id="").error_code == 42
    assert changes(group.cluster) == before


def test_member_rejected_by_a_full_consumer_group_causes_no_group_change_event() -> None:
    group = Group(group_consumer_max_size="1")
    assert group.join("A").error_code == 0
    before = len(changes(group.cluster))
    assert group.join("B").error_code == 81
    assert len(changes(group.cluster)) == before


def reject_records(cluster: VirtualCluster) -> None:
    """Make the offsets topic reject every record, because each is larger than `max.message.bytes`."""
    topic = cluster.state.controller.image.topics[OFFSETS_TOPIC]
    cluster.state.controller.set_topic_configs(OFFSETS_TOPIC, {**topic.configs, "max.message.bytes": "10"})
    cluster.run()


def test_member_whose_join_cannot_be_stored_has_a_joined_event_then_a_removed_event() -> None:
    group = Group("4.2")
    group.join("A")
    group.cluster.advance(100)
    reject_records(group.cluster)
    assert group.join("B").error_code == -1
    assert [causes for *_, causes in changes(group.cluster)[-2:]] == [["member B joined"], ["member B was removed"]]


def test_consumer_group_whose_first_join_is_not_stored_is_reported_stable_then_dead() -> None:
    group = Group("4.2")
    group.cluster.state.coordinator_of("g")  # creates the offsets topic
    reject_records(group.cluster)
    assert group.join("A").error_code == -1
    assert [entry[0] for entry in changes(group.cluster)] == ["Stable", "Dead"]
    assert history(group.cluster) == [(0, 1, "Stable", 0, ["member A joined"])]


def test_observers_see_state_dead_only_of_groups_that_they_had_seen_before() -> None:
    reported: list[GroupChange] = []
    events = Events()
    events.attach(
        type("Reported", (Observer,), {"group_changed": lambda self, b, change, ms: reported.append(change)})()
    )
    to_report = GroupChanges(events)
    refused = ConsumerGroup("g", epoch=1)
    to_report.ended(refused, 0)
    assert reported == []
    to_report.report(refused, 0)
    to_report.ended(refused, 0)
    assert [change.state for change in reported] == ["Empty", "Dead"]


def test_group_event_says_that_a_failed_replacement_of_a_static_member_was_undone() -> None:
    config = {
        "offsets.topic.replication.factor": "2",
        "min.insync.replicas": "2",
        "group.initial.rebalance.delay.ms": "0",
    }
    cluster = VirtualCluster(2, config)
    leader = cluster.state.coordinator_of("g")
    client = cluster.connect(leader)
    protocols = [JoinGroupRequestProtocol("range", subscription("orders"))]
    request = JoinGroupRequest("g", 10_000, 10_000, "", "one", "consumer", protocols)
    joined = client.ask(request, 5)
    client.send(
        SyncGroupRequest("g", 1, joined.member_id, "one", [SyncGroupRequestAssignment(joined.member_id, b"")]), 3
    )
    cluster.advance(100)
    cluster.state.stop_broker(1 - leader)
    cluster.run()
    response = client.ask(request, 5)
    assert response.error_code == 15
    causes = [entry[2] for entry in changes(cluster)[-2:]]
    [new_id] = {text.split()[1] for text in causes[0]}
    assert causes == [
        [f"member {new_id} replaced static member {joined.member_id}"],
        [f"member {joined.member_id} replaced static member {new_id}"],
    ]


def test_loading_a_consumer_group_adds_no_joined_events_for_its_stored_members(group: Group) -> None:
    moved = Group(group.release, 2, offsets_topic_replication_factor="2")
    moved.join("A")
    moved.cluster.advance(100)
    leader = moved.cluster.state.coordinator_of("g")
    index = moved.cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(moved.cluster, 1 - leader, "__consumer_offsets", index)
    moved.reconnect()
    assert moved_events(moved.cluster) == {
        leader: ("Dead", ["the coordinator moved to another broker, or stopped"]),
        1 - leader: ("Stable", ["the coordinator loaded the group"]),
    }
    moved.beat("A", 1, sorted(ALL))
    moved.join("B")
    assert changes(moved.cluster)[3:] == [("Reconciling", 2, ["member B joined"])]
    assert [entry[:2] for entry in history(moved.cluster)] == [(0, 1), (1, 2)]


def test_rebalance_cause_names_a_topic_that_gets_partitions_after_a_coordinator_move(group: Group) -> None:
    moved = Group(group.release, 2, offsets_topic_replication_factor="2")
    moved.join("A")
    moved.cluster.advance(100)
    leader = moved.cluster.state.coordinator_of("g")
    index = moved.cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(moved.cluster, 1 - leader, "__consumer_offsets", index)
    moved.reconnect()
    moved.beat("A", 1, sorted(ALL))
    moved.client.ask(CreatePartitionsRequest([CreatePartitionsTopic("T", 8, None)], 10_000), 3)
    moved.beat("A", 1, sorted(ALL))
    assert [causes for *_, causes in history(moved.cluster)] == [
        ["member A joined"],
        ["the subscribed topics changed: T"],
    ]


def test_rebalance_after_a_coordinator_move_names_only_the_leaving_member_as_cause(group: Group) -> None:
    moved = Group(group.release, 2, offsets_topic_replication_factor="2")
    moved.join("A")
    moved.cluster.advance(100)
    leader = moved.cluster.state.coordinator_of("g")
    index = moved.cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(moved.cluster, 1 - leader, "__consumer_offsets", index)
    moved.reconnect()
    moved.beat("A", -1)
    assert history(moved.cluster)[-1][4] == ["member A left"]


def test_rebalance_cause_identifies_a_topic_deleted_after_a_coordinator_move(group: Group) -> None:
    moved = Group(group.release, 2, offsets_topic_replication_factor="2")
    moved.join("A", "T", "t1")
    moved.cluster.advance(100)
    topic_id = moved.id_of("t1").hex()
    leader = moved.cluster.state.coordinator_of("g")
    index = moved.cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(moved.cluster, 1 - leader, "__consumer_offsets", index)
    moved.reconnect()
    moved.cluster.state.controller.delete_topic("t1")
    moved.cluster.run()
    moved.beat("A", 1, sorted(ALL))
    name = "t1" if group.release == "3.9" else topic_id  # 4.0 and later do not store the names of topics
    assert history(moved.cluster)[-1][4] == [f"the subscribed topics changed: {name}"]


def test_rebalance_history_contains_a_rebalance_that_ends_after_a_coordinator_move(group: Group) -> None:
    moved = Group(group.release, 2, offsets_topic_replication_factor="2")
    moved.join("A")
    moved.join("B")
    moved.cluster.advance(100)
    leader = moved.cluster.state.coordinator_of("g")
    index = moved.cluster.state.nodes[leader].groups.ownership.partition_of("g")
    elect(moved.cluster, 1 - leader, "__consumer_offsets", index)
    moved.reconnect()
    moved.beat("A", 1, moved.targets()["A"], ["T"], timeout_ms=TIMEOUT_MS)
    moved.beat("B", 2, [])
    assert history(moved.cluster)[1:] == [(1, 2, "Stable", 100, ["member B joined"])]


def test_deleting_a_consumer_group_adds_a_group_event_with_state_dead(group: Group) -> None:
    group.join("A")
    group.beat("A", -1)
    group.client.ask(DeleteGroupsRequest(["g"]), 2)
    assert changes(group.cluster)[-1] == ("Dead", 2, [])


def test_journal_event_of_a_group_contains_its_new_state_and_the_cause_of_the_change(group: Group) -> None:
    group.join("A")
    [event] = group.cluster.state.journal.events("group")
    assert (event.broker_id, event.facts) == (
        0,
        {
            "group": "g",
            "type": "consumer",
            "state": "Stable",
            "state_before": None,
            "epoch": 1,
            "epoch_before": 0,
            "assignment_epoch": 1,
            "members": ["A"],
            "causes": ["member A joined"],
        },
    )
    group.beat("A", 1)
    assert len(group.cluster.state.journal.events("group")) == 1


def test_trace_contains_the_same_group_events_as_the_journal(group: Group) -> None:
    entries: list[Entry] = []
    group.cluster.state.record(recorder_into(entries))
    group.join("A")
    [event] = [entry for entry in entries if isinstance(entry, Event) and entry.kind == "group"]
    [noted] = group.cluster.state.journal.events("group")
    assert {name: event.facts[name] for name in noted.facts} == noted.facts


# ---- the bounds of the history -----------------------------------------------------------------------------------------------


def bump(group_id: str, epoch: int, state: str = "Stable") -> GroupChange:
    causes = (Cause(JOINED, f"m{epoch}"),)
    return GroupChange(group_id, "consumer", "Stable", state, epoch - 1, epoch, epoch, ("m",), causes)


def test_rebalance_history_keeps_a_limited_number_of_rebalances_of_a_group() -> None:
    rebalances = RebalanceHistory(0)
    for epoch in range(1, MOST_OF_GROUP + 11):
        rebalances.group_changed(0, bump("g", epoch), epoch)
    assert [rebalance.to_epoch for rebalance in rebalances.of_group("g")] == list(range(11, MOST_OF_GROUP + 11))


def test_full_rebalance_history_drops_the_group_that_rebalanced_least_recently() -> None:
    rebalances = RebalanceHistory(0)
    for number in range(MOST_GROUPS):
        rebalances.group_changed(0, bump(f"g{number}", 1, "Reconciling"), number)
    rebalances.group_changed(0, bump("g0", 2), MOST_GROUPS)
    rebalances.group_changed(0, bump("new", 1), MOST_GROUPS + 1)
    assert "g1" not in rebalances and "g0" in rebalances and "new" in rebalances
    assert [rebalance.group_id for rebalance in rebalances.latest(2)] == ["g0", "new"] and rebalances.latest(0) == []


def test_cluster_reset_clears_the_rebalance_history() -> None:
    rebalances = RebalanceHistory(0)
    rebalances.group_changed(0, bump("g", 1), 10)
    rebalances.cleared(100)
    assert rebalances.of_group("g") == [] and rebalances.latest(5) == []
    rebalances.group_changed(0, bump("g", 2), 130)
    assert [(rebalance.at_ms, rebalance.elapsed_ms) for rebalance in rebalances.of_group("g")] == [(130, 30)]


def test_returned_rebalance_history_does_not_change_when_the_group_changes() -> None:
    rebalances = RebalanceHistory(0)
    rebalances.group_changed(0, bump("g", 1, "Reconciling"), 0)
    [before] = rebalances.of_group("g")
    rebalances.group_changed(0, bump("g", 1)._replace(epoch_before=1, causes=()), 7)
    assert (before.state, before.duration_ms) == ("Reconciling", None)
    [after] = rebalances.of_group("g")
    assert isinstance(after, RebalanceSeen) and (after.state, after.duration_ms) == ("Stable", 7)
