"""Tests of committed offsets: which requests may commit them, how they are fetched, and their records in the offsets topic."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.conformance.groups import OFFSETS_TOPIC, Group, commit, has_new_coordinator, make_stable
from kafkaproto.conformance.needs import settings_in_force
from kafkaproto.conformance.scene import new_topic, read
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, produce
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from kafkaproto.records.batch import batches, records

SILENCE_MS = 500
"""The time in ms without a response after which a test assumes that no response will come."""
pytestmark = pytest.mark.needs("group.initial.rebalance.delay.ms", offsets_topic=True)


def flat(group: Any) -> list[tuple[str, int, int, int, str, int]]:
    """Return [(topic, partition, offset, leader epoch, metadata, error)] of a group's OffsetFetch response, sorted."""
    return sorted(
        (t.name, p.partition_index, p.committed_offset, p.committed_leader_epoch, p.metadata, p.error_code)
        for t in group.topics
        for p in t.partitions
    )


@pytest.mark.rule("GO-26", "GO-27", "GO-29", "SN-21")
def test_offset_fetch_of_an_unknown_group_returns_no_offsets_and_no_error(subject: Subject) -> None:
    """A request that names partitions gets offset -1 for each of them; a request for all partitions gets an empty list (scenario SN-21)."""
    topic = new_topic(subject).name
    group = Group(subject)
    no_offset = [(topic, 0, -1, -1, "", 0)]
    all_offsets = group.fetch(None)
    assert (all_offsets.group_id, all_offsets.error_code, all_offsets.topics) == (group.id, 0, [])
    stable = group.fetch({topic: [0]}, require_stable=True)
    assert (stable.error_code, flat(stable)) == (0, no_offset)
    for version in (1, 2, 5, 7):
        response = group.ask(OffsetFetchRequest(group.id, [OffsetFetchRequestTopic(topic, [0])]), version)
        assert (response.error_code, flat(response)) == (0, no_offset), version
        if version >= 2:
            response = group.ask(OffsetFetchRequest(group.id, None), version)
            assert (response.error_code, response.topics) == (0, []), version
    group.id = ""
    empty = group.fetch(None)
    assert (empty.error_code, empty.topics) == (0, [])
    assert group.describe().group_state == "Dead"


@pytest.mark.rule("GO-14")
@pytest.mark.parametrize("retention_ms", [2**63 - 1, -(2**63), -2])
def test_offset_commit_accepts_every_retention_time(subject: Subject, retention_ms: int) -> None:
    """A sum of the current time and a retention time that exceeds the largest int64 wraps around, as Java's `long` does."""
    topic = new_topic(subject).name
    group = Group(subject)
    for version in (2, 4):
        assert commit(group, {topic: {0: (version, "")}}, version, retention_time_ms=retention_ms) == {(topic, 0): 0}
        stable = group.fetch({topic: [0]}, require_stable=True)
        assert flat(stable) == [(topic, 0, version, -1, "", 0)]


@pytest.mark.rule("GO-15", "GO-16", "GO-21", "GO-22", "SN-22")
def test_offset_commit_rejects_invalid_partitions_and_commits_all_other_offsets(subject: Subject) -> None:
    """Offsets of an unknown partition or with too long metadata are rejected; the other offsets of the request are committed (scenario SN-22)."""
    t1 = new_topic(subject, partitions=6).name
    client = Group(subject).client()
    make_stable(client)
    offsets = {t1: {0: (0, "x"), 1: (1, "x" * 4097), 99: (0, "x"), 2: (-1, "y" * 4096)}, "nope": {0: (0, "")}}
    assert client.commit(offsets) == {(t1, 99): 3, (t1, 0): 0, (t1, 1): 12, (t1, 2): 0, ("nope", 0): 3}
    assert client.group.committed() == {(t1, 0): 0, (t1, 2): -1}
    # The limit counts UTF-16 units.
    assert client.commit({t1: {3: (0, "ü" * 4096), 4: (0, "\N{GRINNING FACE}" * 2048)}}) == {(t1, 3): 0, (t1, 4): 0}
    assert client.commit({t1: {5: (0, "\N{GRINNING FACE}" * 2049)}}) == {(t1, 5): 12}
    # Without a known partition the group is not consulted.
    assert client.commit({t1: {99: (0, "")}}, generation_id_or_member_epoch=7) == {(t1, 99): 3}
    assert client.commit({t1: {99: (0, ""), 0: (9, "")}}, generation_id_or_member_epoch=7) == {
        (t1, 99): 3,
        (t1, 0): 22,
    }


@pytest.mark.rule("GO-15", "GC-60")
def test_offset_commit_and_delete_responses_list_unknown_partitions_first(subject: Subject) -> None:
    first_topic, other = new_topic(subject, partitions=2).name, new_topic(subject).name
    group = Group(subject)
    offset = (5, "")
    errors = commit(group, {other: {0: offset}, first_topic: {0: offset, 99: offset, 1: offset}, "nope": {0: offset}})
    assert errors == {(first_topic, 99): 3, (first_topic, 0): 0, (first_topic, 1): 0, ("nope", 0): 3, (other, 0): 0}
    assert [topic for topic, _ in errors] == [first_topic, first_topic, first_topic, "nope", other]
    assert next(iter(errors)) == (first_topic, 99)  # Kafka orders the others by their hashes
    error, deleted = group.delete_offsets({first_topic: [1, 99], "nope": [0]})
    assert (error, list(deleted.items())) == (0, [((first_topic, 99), 3), ((first_topic, 1), 0), (("nope", 0), 3)])


@pytest.mark.rule("GO-15")
def test_last_offset_wins_if_an_offset_commit_contains_a_partition_twice(subject: Subject) -> None:
    topic = new_topic(subject).name
    group = Group(subject)
    partitions = [OffsetCommitRequestPartition(0, offset) for offset in (5, 6)]
    request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=partitions)])
    [topic_result] = group.ask(request, 8).topics
    count = 2 if has_new_coordinator(subject) else 1
    assert [(p.partition_index, p.error_code) for p in topic_result.partitions] == [(0, 0)] * count
    assert group.committed() == {(topic, 0): 6}


@pytest.mark.rule("GO-15", "GO-21")
def test_too_long_metadata_of_an_offset_rejects_only_that_offset_since_kafka_4_0(subject: Subject) -> None:
    """An OffsetCommit request has two entries for one partition. The first, the second or both have metadata that is too long.

    From 4.0 on, an entry with too long metadata gets error OFFSET_METADATA_TOO_LARGE (12), and the offset of the other entry is committed. The
    coordinator in Scala (before 4.0) ignores the first entry: it responds only to the second entry, and commits only its offset.
    """
    long, short = "x" * 4097, "x"
    topic = new_topic(subject).name
    for metadata, errors, committed in (
        ((short, long), [0, 12], 5),
        ((long, short), [12, 0], 6),
        ((long, long), [12, 12], None),
    ):
        group = Group(subject)
        partitions = [
            OffsetCommitRequestPartition(0, offset, committed_metadata=text)
            for offset, text in zip((5, 6), metadata, strict=True)
        ]
        request = OffsetCommitRequest(group.id, topics=[OffsetCommitRequestTopic(topic, partitions=partitions)])
        [topic_result] = group.ask(request, 8).topics
        if not has_new_coordinator(subject):
            errors, committed = errors[1:], committed if errors[1] == 0 else None
        assert [p.error_code for p in topic_result.partitions] == errors
        assert group.committed() == ({} if committed is None else {(topic, 0): committed})


@pytest.mark.rule("GO-16", "GO-17", "GO-18", "SN-23")
def test_offset_commit_of_a_member_needs_the_current_generation(subject: Subject) -> None:
    """A commit with a wrong generation, an unknown member or no member gets an error if the group has members (scenario SN-23)."""
    t1 = new_topic(subject).name
    offsets, place = {t1: {0: (5, "x")}}, (t1, 0)
    group = Group(subject)
    client = group.client()
    make_stable(client)
    assert client.commit(offsets, generation_id_or_member_epoch=2) == {place: 22}
    assert client.commit(offsets, member_id="other") == {place: 25}
    assert client.commit(offsets, group_instance_id="i1") == {place: 25}
    assert commit(group, offsets) == {place: 25}
    assert client.commit(offsets) == {place: 0}

    unknown = Group(subject)
    member: dict[str, Any] = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    assert commit(unknown, offsets, 8, **member) == {place: 22}
    assert unknown.describe().group_state == "Dead"
    assert commit(unknown, offsets) == {place: 0}
    description = unknown.describe()
    assert (description.group_state, description.protocol_type, description.members) == ("Empty", "", [])
    assert unknown.committed() == {place: 5}


@pytest.mark.rule("GO-17", "SN-23")
def test_offset_commit_v9_with_a_generation_is_rejected_for_an_unknown_group(subject: Subject) -> None:
    """OffsetCommit version 9 gets GROUP_ID_NOT_FOUND (69) from Kafka 4's coordinator, ILLEGAL_GENERATION (22) from earlier coordinators (SN-23)."""
    t1 = new_topic(subject).name
    member: dict[str, Any] = {"generation_id_or_member_epoch": 5, "member_id": "m"}
    assert commit(Group(subject), {t1: {0: (5, "x")}}, 9, **member) == {
        (t1, 0): 69 if has_new_coordinator(subject) else 22
    }


@pytest.mark.rule("GO-18")
def test_offset_commit_is_accepted_in_the_join_phase_and_rejected_in_the_sync_phase(subject: Subject) -> None:
    t1 = new_topic(subject).name
    group = Group(subject)
    a, b = group.client(), group.client()
    make_stable(a)
    b.send_enter()
    group.wait_for("PreparingRebalance", 2)
    assert a.commit({t1: {0: (5, "")}}) == {(t1, 0): 0}
    assert a.join().error_code == b.joined().error_code == 0
    assert a.commit({t1: {0: (6, "")}}) == {(t1, 0): 27}
    assert group.committed() == {(t1, 0): 5}


@pytest.mark.rule("GO-26", "GO-27", "SN-24")
def test_offset_fetch_returns_the_offsets_of_several_groups_in_one_response(subject: Subject) -> None:
    """OffsetFetch version 8 for two groups returns the offsets of the known group, and an empty list for the unknown group (scenario SN-24).

    The groups have the order of the request.
    """
    t1 = new_topic(subject, partitions=2).name
    group, unknown_group = Group(subject, 0), Group(subject, 0)
    client = group.client()
    make_stable(client)
    assert client.commit({t1: {0: (5, "x")}}) == {(t1, 0): 0}
    both = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(g.id, topics=None) for g in (group, unknown_group)])
    existing, unknown = group.ask(both, 8).groups
    assert (existing.group_id, existing.error_code, flat(existing)) == (group.id, 0, [(t1, 0, 5, -1, "x", 0)])
    assert (unknown.group_id, unknown.error_code, unknown.topics) == (unknown_group.id, 0, [])
    both.groups.reverse()
    assert [g.group_id for g in group.ask(both, 8).groups] == [unknown_group.id, group.id]
    offsets = group.fetch({t1: [0, 1], "zzz": [0]})
    assert offsets.error_code == 0
    assert flat(offsets) == [(t1, 0, 5, -1, "x", 0), (t1, 1, -1, -1, "", 0), ("zzz", 0, -1, -1, "", 0)]


@pytest.mark.rule("GO-31", "GO-32")
def test_offset_fetch_is_rejected_by_brokers_other_than_the_coordinator(subject: Subject) -> None:
    group = Group(subject)
    t1 = new_topic(subject).name
    commit(group, {t1: {0: (5, "x")}})
    topics = [OffsetFetchRequestTopics(t1, partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group.id, "unknown", 9, topics)])
    for broker_id in range(len(subject.bootstrap)):
        [group_result] = subject.ask_once(request, 9, broker_id).groups
        if broker_id == group.coordinator():
            assert (group_result.error_code, flat(group_result)) == (
                0,
                [(t1, 0, 5, -1, "x", 0)],
            )  # classic groups have no epochs
        else:
            assert (group_result.error_code, group_result.topics) == (16, [])


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("GO-14")
def test_version_0_of_offset_commit_is_unsupported(subject: Subject) -> None:
    t1 = new_topic(subject).name
    assert commit(Group(subject), {t1: {0: (5, "x")}}, 0) == {(t1, 0): 35}
    mixed = commit(Group(subject), {t1: {0: (5, "x"), 9: (5, "x")}, "missing": {0: (5, "x")}}, 0)
    assert mixed == dict.fromkeys(mixed, 35)
    assert commit(Group(subject), {"missing": {0: (5, "x")}}, 0) == {("missing", 0): 3}


@pytest.mark.rule("GO-35")
@pytest.mark.parametrize("version", [8, 9])
@pytest.mark.parametrize("require_stable", [False, True])
@pytest.mark.parametrize(
    "responds",
    [
        pytest.param(False, marks=pytest.mark.releases(before="4.0"), id="before-4.0"),
        pytest.param(True, marks=pytest.mark.releases(first="4.0"), id="from-4.0"),
    ],
)
def test_offset_fetch_without_groups_gets_no_response_before_4_0(
    subject: Subject, version: int, require_stable: bool, responds: bool
) -> None:
    """Before 4.0, an OffsetFetch without groups gets no response. The broker keeps the connection open, but reads no further requests from it.

    version, require_stable: the version and the field `require_stable` of the OffsetFetch request. responds: whether a response is expected: False
    before 4.0, True from 4.0 on.
    """
    connection = Group(subject).connect()
    subject.send(connection, OffsetFetchRequest(groups=[], require_stable=require_stable), version)
    subject.send(connection, ListGroupsRequest(), 4)
    if responds:
        assert subject.answer(connection).message.groups == []
        assert subject.answer(connection).message.error_code == 0
    else:
        assert subject.answer_or_none(connection, SILENCE_MS) is None


@pytest.mark.rule("GO-1")
def test_offsets_topic_is_compacted_and_rejects_produce_requests_of_clients(subject: Subject) -> None:
    group = Group(subject)
    entry = group.offsets.metadata()
    assert entry.is_internal
    names = ["cleanup.policy", "compression.type", "segment.bytes"]
    request = DescribeConfigsRequest([DescribeConfigsResource(2, OFFSETS_TOPIC, names)])
    [resource] = subject.ask_once(request, 2).results
    assert {c.name: c.value for c in resource.configs} == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": settings_in_force(subject, ["offsets.topic.segment.bytes"])["offsets.topic.segment.bytes"],
    }
    response = subject.ask_once(produce(OFFSETS_TOPIC, batch(b"v"), group.index), 7, group.coordinator())
    assert response.responses[0].partition_responses[0].error_code == 17


@pytest.mark.rule("GO-3", "GO-4", "GO-5", "GO-6", "GO-9", "SN-25")
def test_offset_commit_and_deletion_write_records_to_the_offsets_topic(subject: Subject) -> None:
    """The offsets topic has the key and value that Kafka writes for a commit, and a tombstone for its deletion (scenario SN-25)."""
    topic = new_topic(subject)
    group = Group(subject, 0)
    before_ms = subject.epoch_ms()
    end = _end(group)
    assert commit(group, {topic.name: {0: (5, "m")}}) == {(topic.name, 0): 0}
    assert group.delete_offsets({topic.name: [0]}) == (0, {(topic.name, 0): 0})
    response = read(group.offsets, end)
    assert response.error_code == 0
    committed, deleted = (next(iter(records(each.view))) for each in batches(bytes(response.records)))
    group_id, name = group.id.encode(), topic.name.encode()
    key = b"\0\1" + len(group_id).to_bytes(2, "big") + group_id + len(name).to_bytes(2, "big") + name + bytes(4)
    assert (committed.key, deleted.key, deleted.value) == (key, key, None)
    assert committed.value is not None
    is_flexible = committed.value[:2] == b"\0\4"  # as releases from 4.1 on write it
    assert is_flexible or not has_new_coordinator(subject)
    if is_flexible:
        version, metadata, tags, time = b"\0\4", b"\2m", b"\0", committed.value[-9:-1]
    else:
        version, metadata, tags, time = b"\0\3", b"\0\1m", b"", committed.value[-8:]
    assert committed.value == version + (5).to_bytes(8, "big") + b"\xff" * 4 + metadata + time + tags
    assert abs(int.from_bytes(time, "big") - before_ms) <= 10_000


def _end(group: Group) -> int:
    return int(read(group.offsets, 0, max_bytes=0, partition_max=0).high_watermark)
