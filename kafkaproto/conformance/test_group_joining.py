"""Tests of joining a classic group: member ids, the sync phase, and requests that the coordinator rejects."""

from __future__ import annotations

import re
from typing import Any

import pytest

from kafkaproto.conformance.groups import Group, has_new_coordinator, make_stable
from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)
UUID = "[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"


@pytest.mark.rule("GC-12", "GC-16", "GC-18", "GC-19", "GC-26", "GC-28", "GC-52", "SN-1")
def test_first_join_group_returns_a_member_id_and_the_second_returns_a_generation(subject: Subject) -> None:
    """The group is Empty after the first join, and CompletingRebalance after the second (scenario SN-1)."""
    group = Group(subject)
    client = group.client()
    first = client.join()
    assert (first.error_code, first.generation_id, first.leader, first.members) == (79, -1, "", [])
    assert first.protocol_name == ""
    assert re.fullmatch(f"pc-{UUID}", first.member_id)
    description = group.describe()
    assert (description.error_code, description.group_state, description.protocol_type) == (0, "Empty", "")
    assert description.members == []
    assert client.heartbeat(generation_id=0) == 25
    assert client.sync(generation_id=0).error_code == 25

    response = client.join()
    assert (response.error_code, response.generation_id, response.protocol_name) == (0, 1, "range")
    assert response.leader == response.member_id == first.member_id
    assert [(m.member_id, m.group_instance_id, m.metadata) for m in response.members] == [(first.member_id, None, b"m")]
    description = group.describe()
    assert (description.group_state, description.protocol_type, description.protocol_data) == (
        "CompletingRebalance",
        "consumer",
        "",
    )
    [member] = description.members
    assert (member.member_id, member.client_id) == (first.member_id, "pc")
    assert (member.member_metadata, member.member_assignment) == (b"", b"")
    assert member.client_host.startswith("/")


@pytest.mark.rule("GC-16", "GC-18", "GC-31", "SN-2")
@pytest.mark.parametrize(("version", "instance", "prefix"), [(3, None, "pc"), (5, "i1", "i1")])
def test_join_group_before_v4_or_of_a_static_member_succeeds_without_a_member_id(
    subject: Subject, version: int, instance: str | None, prefix: str
) -> None:
    """Before version 4, and for static members in later versions, the first JoinGroup gets a generation instead of an error (scenario SN-2).

    instance: the group instance id. prefix: the text before the random part of the new member id.
    """
    response = Group(subject).client(version=version, instance=instance).join()
    assert (response.error_code, response.generation_id) == (0, 1)
    assert re.fullmatch(f"{prefix}-{UUID}", response.member_id)


@pytest.mark.rule("GC-18")
def test_member_id_of_a_client_without_a_client_id_begins_with_a_hyphen(subject: Subject) -> None:
    group = Group(subject)
    for client_id in ("", None):
        connection = subject.connect(group.coordinator(), client_id)
        protocols = [JoinGroupRequestProtocol("range", b"m")]
        response = subject.ask(connection, JoinGroupRequest(group.id, 10_000, 10_000, "", None, "c", protocols), 5)
        assert re.fullmatch(f"-{UUID}", response.member_id)


@pytest.mark.rule("GC-20", "GC-36", "GC-37", "GC-38", "GC-42", "GC-43", "GC-44", "GO-18", "SN-3")
def test_offset_commits_are_rejected_but_heartbeats_accepted_between_join_and_sync(subject: Subject) -> None:
    """Until the group leader sends SyncGroup, commits are rejected, heartbeats and joins succeed, and invalid syncs get errors (SN-3)."""
    topic = new_topic(subject)
    client = Group(subject).client()
    response = client.enter()
    assert client.commit({topic.name: {0: (5, "x")}}) == {(topic.name, 0): 27}
    assert client.heartbeat() == 0
    rejoin = client.join()
    assert (rejoin.error_code, rejoin.generation_id, rejoin.leader) == (0, 1, client.member_id)
    assert rejoin.members == response.members
    assignments = {client.member_id: b"AAA"}
    for changes, error in (
        ({"protocol_name": "xx"}, 23),
        ({"protocol_type": "connect"}, 23),
        ({"generation_id": 2}, 22),
        ({"protocol_type": None}, 23),
        ({"protocol_name": None}, 23),
        ({"member_id": "other"}, 25),
    ):
        sync_response = client.sync(assignments, 5, **changes)
        assert (sync_response.error_code, sync_response.assignment) == (error, b""), changes
        assert (sync_response.protocol_type, sync_response.protocol_name) == (None, None), changes
    synced = client.sync(assignments, 5)
    assert (synced.error_code, synced.assignment) == (0, b"AAA")
    assert (synced.protocol_type, synced.protocol_name) == ("consumer", "range")


@pytest.mark.rule("GC-32", "GC-37", "GC-38", "GC-43", "SN-4")
def test_sync_group_in_a_stable_group_returns_the_current_assignment(subject: Subject) -> None:
    """A second SyncGroup with another assignment gets the first assignment and changes nothing (scenario SN-4)."""
    client = Group(subject).client()
    make_stable(client)
    synced = client.sync({client.member_id: b"BBB"})
    assert (synced.error_code, synced.assignment) == (0, b"a0")
    assert client.heartbeat() == 0
    assert client.heartbeat(generation_id=2) == 22
    assert client.heartbeat(group_instance_id="i") == 25
    assert client.heartbeat(member_id="other") == 25


@pytest.mark.rule("GC-8", "GC-15", "GC-17", "GC-26", "SN-11")
def test_join_group_rejects_invalid_session_timeouts_and_empty_protocol_lists(subject: Subject) -> None:
    """Joins with an invalid session timeout, group id, list of protocols or member id get errors (scenario SN-11)."""
    group = Group(subject)
    invalid: list[tuple[dict[str, Any], int]] = [
        ({"session_ms": 5_999}, 26),
        ({"session_ms": 1_800_001}, 26),
        ({"protocols": []}, 23),
        ({"kind": ""}, 23),
        ({"member_id": "pc-unknown"}, 25),
    ]
    for options, error in invalid:
        response = group.client(**options).join()
        assert (response.error_code, response.generation_id, response.leader) == (error, -1, ""), options
        assert (response.member_id, response.members) == (options.get("member_id", ""), []), options
    client = group.client()
    client.group = Group(subject)
    client.group.id = ""
    assert client.join().error_code == 24
    assert client.heartbeat(generation_id=1) == 24

    member = group.client(session_ms=6_000)
    make_stable(member)
    others: list[dict[str, Any]] = [{"protocols": [("roundrobin", b"m")]}, {"kind": "connect"}, {"protocols": []}]
    for options in others:
        response = group.client(**options).join()
        assert (response.error_code, response.member_id) == (23, ""), options
    assert (group.client("pc-unknown").join().error_code, member.heartbeat()) == (25, 0)


@pytest.mark.rule("GC-26")
def test_rejected_join_group_response_has_a_null_protocol_name_from_v7_on(subject: Subject) -> None:
    group = Group(subject)
    for version, name in ((5, ""), (6, ""), (7, None), (9, None)):
        response = group.client("unknown", version=version).join()
        assert (response.error_code, response.protocol_name, response.protocol_type) == (25, name, None)


@pytest.mark.rule("GC-27")
@pytest.mark.parametrize(
    ("names", "old", "new"),
    [
        (("range", "roundrobin"), "roundrobin", "range"),
        (("range", "cooperative-sticky"), "cooperative-sticky", "range"),
        (("range", "sticky"), "range", "sticky"),
        (("a", "b"), "a", "a"),
    ],
    ids=lambda names: "-or-".join(names) if isinstance(names, tuple) else "",
)
def test_tie_between_two_assignment_protocols_is_broken_by_hashes_of_their_names(
    subject: Subject, names: tuple[str, str], old: str, new: str
) -> None:
    expected = new if has_new_coordinator(subject) else old
    for first in (names, names[::-1]):
        group = Group(subject)
        clients = [group.client(version=3, protocols=[(n, b"m") for n in order]) for order in (first, first[::-1])]
        assert clients[0].join().protocol_name == first[0]
        clients[1].send_join()
        group.wait_for("PreparingRebalance", 2)
        clients[0].send_join()
        assert [client.joined().protocol_name for client in clients] == [expected] * 2


@pytest.mark.rule("GC-27")
def test_group_uses_the_assignment_protocol_with_the_most_votes_of_its_members(subject: Subject) -> None:
    group = Group(subject)
    offers = (("p1", "p2", "p3"), ("p2", "p1"), ("p3", "p2", "p1"), ("p2", "p1"))
    clients = [group.client(version=3, protocols=[(name, name.encode()) for name in names]) for names in offers]
    assert clients[0].join().protocol_name == "p1"
    for client in clients[1:]:
        client.send_join()
    group.wait_for("PreparingRebalance", len(clients))
    clients[0].send_join()
    responses = [client.joined() for client in clients]
    assert [response.protocol_name for response in responses] == ["p2"] * len(clients)
    assert sorted(m.metadata for m in responses[0].members) == [b"p2"] * len(clients)
