"""The topics that a group of the new protocol stores, in virtual time: what a coordinator does with them after it has loaded the group."""

from __future__ import annotations

import pytest

from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.subscribed_topics import SubscribedTopic
from kafkaproto.coordinator_records import read_record
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.partitioner import java_hash
from tests.support.broker.consumer_group import ALL, Group
from tests.support.scene import elect

OFFSETS = "__consumer_offsets"
GROUP, TOPICS = 3, 4


def index(group: Group) -> int:
    return java_hash("g") % len(group.cluster.state.controller.image.topics[OFFSETS].partitions)


def move(group: Group) -> None:
    """Move the coordinator to the next broker, which loads the group."""
    elect(group.cluster, (group.cluster.state.coordinator_of("g") + 1) % 3, OFFSETS, index(group))
    group.reconnect()


def records(group: Group) -> list[tuple[int, object]]:
    """Return (type, value) of the records of the epoch and the topics."""
    log = group.cluster.state.nodes[group.cluster.state.coordinator_of("g")].groups.groups._storage._log
    assert log is not None
    pairs = [(r.key, r.value) for r in log.read(index(group)) if r.key is not None]
    kinds = [(int.from_bytes(key[:2], "big"), read_record(OFFSETS, key, value)[1]) for key, value in pairs]
    return [(kind, value) for kind, value in kinds if kind in (GROUP, TOPICS)]


def start(release: str, *, racks: bool = True) -> Group:
    return Group(release, 3, **{f"{i}_broker_rack": f"r{i}" for i in range(3) if racks})


@pytest.mark.rule("GO-8", "GN-17")
@pytest.mark.parametrize("racks", [False, True])
@pytest.mark.parametrize("release", ["3.9", "4.0", "4.1", "4.2"])
def test_new_coordinator_starts_a_new_group_epoch_only_if_subscribed_topics_changed(release: str, racks: bool) -> None:
    group = start(release, racks=racks)
    group.join("A")
    move(group)
    assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (1, None)
    assert group.epochs == ("Stable", 1, 1)
    grown = CreatePartitionsRequest([CreatePartitionsTopic("T", 7, None)], 10_000, False)
    assert group.cluster.connect(0).ask(grown, 3).results[0].error_code == 0
    move(group)
    assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (2, {*ALL, 6})


@pytest.mark.rule("GO-8")
def test_partition_metadata_records_contain_racks_in_kafka_3_9_but_not_in_kafka_4_0() -> None:
    for release, racks in (("3.9", ["r0", "r1", "r2"]), ("4.0", None)):
        group = start(release)
        group.join("A")
        [(_, topics), (_, epoch)] = sorted(records(group), key=lambda record: -record[0])
        [topic] = topics.topics  # type: ignore[attr-defined]
        assert (topic.topic_name, topic.num_partitions) == ("T", 6)
        assert [sorted(p.racks) for p in topic.partition_metadata] == ([racks] * 6 if racks else [])
        assert epoch.metadata_hash == 0  # type: ignore[attr-defined]


@pytest.mark.rule("GO-8")
def test_kafka_4_2_coordinator_deletes_stored_partition_metadata_of_a_consumer_group() -> None:
    group = start("4.2")
    group.join("A")
    log = group.cluster.state.nodes[group.cluster.state.coordinator_of("g")].groups.groups._storage._log
    old = consumer_records.topics_entry("g", {"T": SubscribedTopic(group.id_of("T"), 6)})
    assert log is not None and log.append_only(index(group), [old], 0) == 0
    group.cluster.run()
    move(group)
    before = len(records(group))
    assert group.epoch_and_partitions(group.beat("A", 1, sorted(ALL))) == (1, None)
    assert records(group)[before:] == [(TOPICS, None)]
    group.join("B")
    assert [kind for kind, _ in records(group)[before:]] == [TOPICS, GROUP]


def test_kafka_4_0_stores_subscribed_topics_that_only_a_regular_expression_matches() -> None:
    """Therefore a coordinator that loads the group starts no new epoch."""
    group = start("4.0")
    epoch = group.beat("A", 0, [], [], timeout_ms=60_000, subscribed_topic_regex="T.*").member_epoch
    group.cluster.advance(1_000)
    epoch = group.beat("A", epoch, []).member_epoch
    [stored] = [value for kind, value in records(group) if kind == TOPICS]
    assert [topic.topic_name for topic in stored.topics] == ["T"]
    move(group)
    assert group.beat("A", epoch, sorted(ALL)).member_epoch == epoch
