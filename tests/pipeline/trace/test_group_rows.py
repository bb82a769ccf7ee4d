"""Rows of the tables `groups` and `group_offsets`: one for each member in a request, and one for each committed offset."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.messages.delete_groups import DeleteGroupsRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaproto.pipeline.trace.columns import Row
from kafkaproto.pipeline.trace.group_columns import GROUP_ROWS
from kafkaproto.pipeline.trace.rows import Rows
from kafkaproto.pipeline.trace.schema import TABLES
from kafkaproto.trace.format import Entry, Event
from tests.support.broker.consumer_group import Group
from tests.support.pipeline.group_traffic import ClassicGroup, subscription
from tests.support.recording import Bench, recorder_into

UNKNOWN_MEMBER, REBALANCE, NOT_FOUND = 25, 27, 69


def rows_of(entries: list[Entry], table: str) -> list[Row]:
    row_builder = Rows("r", 1_700_000_000_000, 0)
    all_rows = [row for entry in entries for name, row in row_builder.of(entry) if name == table]
    assert all(set(row) == {column.name for column in TABLES[table]} for row in all_rows)
    return all_rows


def of(rows: list[Row], *names: str) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in names) for row in rows]


@pytest.fixture
def classic() -> ClassicGroup:
    return ClassicGroup(Bench())


def test_classic_group_rows_contain_the_generation_and_the_assigned_partitions(classic: ClassicGroup) -> None:
    first = classic.add("first", reason="started")
    classic.sync({first: {"t": [0, 1, 2]}})
    rows = rows_of(classic.bench.entries, "groups")
    names = ("api", "group_id", "member_id", "requested_epoch", "returned_epoch", "error")
    assert of(rows, *names) == [
        ("JoinGroup", "g", first, None, None, 79),
        ("JoinGroup", "g", first, None, 1, 0),
        ("SyncGroup", "g", first, 1, 1, 0),
    ]
    assert of(rows[1:2], "protocol_type", "assignors", "assignor", "leader", "members", "reason") == [
        ("consumer", '["range"]', "range", first, 1, "started")
    ]
    assert of(rows[1:2], "session_timeout_ms", "rebalance_timeout_ms", "subscribed", "owned") == [
        (10_000, 60_000, '["t"]', "{}")
    ]
    assert [row["assigned"] for row in rows] == [None, None, '{"t":[0,1,2]}']
    classic.client.ask(HeartbeatRequest("g", 1, first), 4)
    classic.client.ask(HeartbeatRequest("g", 1, "stranger"), 4)
    classic.client.ask(LeaveGroupRequest("g", members=[MemberIdentity(first, None, "done"), MemberIdentity("x")]), 5)
    names = ("api", "position", "member_id", "requested_epoch", "error", "reason")
    assert of(rows_of(classic.bench.entries, "groups")[3:], *names) == [
        ("Heartbeat", 0, first, 1, 0, None),
        ("Heartbeat", 0, "stranger", 1, UNKNOWN_MEMBER, None),
        ("LeaveGroup", 0, first, None, 0, "done"),
        ("LeaveGroup", 1, "x", None, UNKNOWN_MEMBER, None),
    ]
    classic.client.ask(LeaveGroupRequest("g", "x"), 1)
    classic.client.ask(DeleteGroupsRequest(["g", "h"]), 2)
    assert of(rows_of(classic.bench.entries, "groups")[7:], "api", "group_id", "error") == [
        ("LeaveGroup", "g", UNKNOWN_MEMBER),
        ("DeleteGroups", "g", 0),
        ("DeleteGroups", "h", NOT_FOUND),
    ]


def test_join_group_row_contains_the_partitions_owned_before_the_join(classic: ClassicGroup) -> None:
    classic.add("first", owned={"t": [2, 0]})
    assert {row["owned"] for row in rows_of(classic.bench.entries, "groups")} == {'{"t":[0,2]}'}


@pytest.mark.parametrize(
    ("protocol_type", "data"),
    [("connect", subscription("t")), ("consumer", b""), ("consumer", b"\xff\xff"), ("consumer", b"\0\0\0\0\0\5t")],
)
def test_join_group_row_has_null_topics_if_the_metadata_is_no_consumer_subscription(
    protocol_type: str, data: bytes
) -> None:
    bench = Bench()
    request = JoinGroupRequest("g", 10_000, 60_000, "", None, protocol_type, [JoinGroupRequestProtocol("p", data)])
    bench.cluster.connect().ask(request, 5)
    [row] = rows_of(bench.entries, "groups")
    assert (row["protocol_type"], row["error"], row["subscribed"], row["owned"]) == (protocol_type, 79, None, None)


def test_group_assignments_are_not_decoded_if_the_protocol_type_is_not_consumer() -> None:
    classic = ClassicGroup(Bench(), "connect")
    worker = classic.add("worker")
    classic.sync({worker: {"t": [0]}})
    assert [row["assigned"] for row in rows_of(classic.bench.entries, "groups")] == [None] * 3


def test_row_of_a_sync_group_response_with_an_empty_assignment_has_no_partitions(classic: ClassicGroup) -> None:
    classic.add("first")
    classic.sync({})
    assert rows_of(classic.bench.entries, "groups")[-1]["assigned"] == "{}"


def test_consumer_group_heartbeat_rows_list_assigned_partitions_by_topic_id() -> None:
    group = Group()
    entries: list[Entry] = []
    group.cluster.state.record(recorder_into(entries))
    group.join("a", instance_id="i", server_assignor="uniform")
    group.beat("a", 1, range(6))
    group.beat("a", 7)
    group.beat("b", 0, [], None, timeout_ms=1000, subscribed_topic_regex="T|x")
    group.beat("a", -1)
    rows = rows_of(entries, "groups")
    names = ("api", "member_id", "requested_epoch", "returned_epoch", "error", "assignor", "rebalance_timeout_ms")
    assert of(rows, *names) == [
        ("ConsumerGroupHeartbeat", "a", 0, 1, 0, "uniform", 60_000),
        ("ConsumerGroupHeartbeat", "a", 1, 1, 0, None, None),
        ("ConsumerGroupHeartbeat", "a", 7, None, 110, None, None),
        ("ConsumerGroupHeartbeat", "b", 0, rows[3]["returned_epoch"], 0, None, 1000),
        ("ConsumerGroupHeartbeat", "a", -1, -1, 0, None, None),
    ]
    all_partitions = json.dumps({group.id_of("T").hex(): list(range(6))}, separators=(",", ":"))
    assert of(rows[:4], "instance_id", "subscribed", "subscribed_pattern", "owned", "assigned") == [
        ("i", '["T"]', None, "{}", all_partitions),
        (None, None, None, all_partitions, None),
        (None, None, None, None, None),
        (None, None, "T|x", "{}", "{}"),
    ]


def test_row_of_a_committed_offset_contains_the_offset_and_the_member_id(classic: ClassicGroup) -> None:
    first = classic.add("first")
    classic.sync({first: {"t": [0]}})
    places = [OffsetCommitRequestPartition(0, 7, 3), OffsetCommitRequestPartition(99, 8)]
    classic.client.ask(OffsetCommitRequest("g", 1, first, topics=[OffsetCommitRequestTopic("t", partitions=places)]), 8)
    group_request = OffsetFetchRequestGroup("g", topics=[OffsetFetchRequestTopics("t", partition_indexes=[0, 1])])
    classic.client.ask(OffsetFetchRequest(groups=[group_request]), 8)
    classic.client.ask(OffsetFetchRequest("g", topics=[OffsetFetchRequestTopic("t", [0])]), 7)
    classic.client.ask(OffsetDeleteRequest("g", [OffsetDeleteRequestTopic("t", [OffsetDeleteRequestPartition(0)])]), 0)
    rows = rows_of(classic.bench.entries, "group_offsets")
    names = ("api", "position", "group_id", "member_id", "requested_epoch", "topic", "partition", "offset", "error")
    assert of(rows, *names) == [
        ("OffsetCommit", 0, "g", first, 1, "t", 0, 7, 0),
        ("OffsetCommit", 1, "g", first, 1, "t", 99, 8, 3),
        ("OffsetFetch", 0, "g", None, -1, "t", 0, 7, 0),
        ("OffsetFetch", 1, "g", None, -1, "t", 1, None, 0),
        ("OffsetFetch", 0, "g", None, None, "t", 0, 7, 0),
        ("OffsetDelete", 0, "g", None, None, "t", 0, None, 86),
    ]
    assert [row["leader_epoch"] for row in rows[:3]] == [3, -1, 3]


def test_row_of_a_group_request_without_a_response_has_null_in_the_error_column(classic: ClassicGroup) -> None:
    first = classic.add("first")
    classic.sync({first: {"t": [0]}})
    classic.client.ask(HeartbeatRequest("g", 1, first), 4)
    commit = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 7)])
    classic.client.ask(OffsetCommitRequest("g", 1, first, topics=[commit]), 8)
    unanswered = [exchange._replace(answered=False, response=b"") for exchange in classic.bench.exchanges]
    groups, offsets = rows_of([*unanswered], "groups"), rows_of([*unanswered], "group_offsets")
    assert of(groups, "api", "error", "returned_epoch", "assigned") == [
        ("JoinGroup", None, None, None),
        ("JoinGroup", None, None, None),
        ("SyncGroup", None, None, None),
        ("Heartbeat", None, None, None),
    ]
    assert of(offsets, "offset", "error") == [(7, None)]


def test_row_of_an_offset_committed_by_topic_id_contains_the_topic_id() -> None:
    topic = OffsetCommitRequestTopic(topic_id=bytes(range(16)), partitions=[OffsetCommitRequestPartition(1, 5)])
    [(table, row)] = GROUP_ROWS[ApiKey.OFFSET_COMMIT]({}, OffsetCommitRequest("g", topics=[topic]), None)
    assert (table, row["topic"], row["topic_id"], row["offset"]) == ("group_offsets", None, bytes(range(16)).hex(), 5)


def test_documentation_of_the_group_tables_lists_every_api_recorded_in_them() -> None:
    described = {api for table in ("groups", "group_offsets") for column in TABLES[table] if column.name == "api"
                 for api in column.about.replace(" or ", ", ").split(", ")}  # fmt: skip
    assert len(described) == len(GROUP_ROWS)


def test_events_table_has_a_row_with_the_causes_of_each_group_state_change(classic: ClassicGroup) -> None:
    first = classic.add("first")
    classic.sync({first: {"t": [0]}})
    events = [json.loads(row["facts"]) for row in rows_of(classic.bench.entries, "events") if row["kind"] == "group"]
    assert [(event["group"], event["state_before"], event["state"], event["epoch"]) for event in events][-3:] == [
        ("g", None, "PreparingRebalance", 0),
        ("g", "PreparingRebalance", "CompletingRebalance", 1),
        ("g", "CompletingRebalance", "Stable", 1),
    ]
    assert [event["causes"] for event in events][-3:] == [[f"member {first} joined"], [], []]
    assert events[-1]["type"] == "classic" and events[-1]["members"] == [first]


def test_trace_event_of_a_group_change_contains_old_and_new_epoch_and_coordinator_id() -> None:
    group = Group()
    entries: list[Entry] = []
    group.cluster.state.record(recorder_into(entries))
    group.join("a")
    [change, *_] = [entry.facts for entry in entries if isinstance(entry, Event) and entry.kind == "group"]
    assert (change["broker"], change["type"], change["epoch_before"], change["epoch"]) == (0, "consumer", 0, 1)
