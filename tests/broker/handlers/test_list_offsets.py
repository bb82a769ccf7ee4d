"""ListOffsets (L-1 to L-10): times and ends of the log, from the leader, from followers, just after an election."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.records.batch import NewRecord, build_batch
from tests.support.scene import hold, release
from tests.support.wire import produce

LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5


def ask(
    client: MemoryClient,
    timestamp: int,
    version: int = 9,
    *,
    topic: str = "t",
    partition: int = 0,
    replica_id: int = -1,
    epoch: int = -1,
    isolation: int = 0,
) -> Any:
    wanted = ListOffsetsPartition(partition, epoch if version >= 4 else -1, timestamp)
    request = ListOffsetsRequest(replica_id, isolation, [ListOffsetsTopic(topic, [wanted])])
    return client.ask(request, version).topics[0].partitions[0]


def write(client: MemoryClient, *timestamps: int, batches: bool = False) -> None:
    groups = [[t] for t in timestamps] if batches else [list(timestamps)]
    for group in groups:
        data = build_batch([NewRecord(b"v", None, timestamp) for timestamp in group])
        client.ask(produce("t", data), 9)


@pytest.fixture
def cluster() -> VirtualCluster:
    made = VirtualCluster(3)
    made.topic("t", 1, 2)
    return made


@pytest.mark.rule("L-1")
def test_version_0_answers_an_array_and_later_ones_an_offset(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    write(client, 100, 200, 300)
    old = ask(client, LATEST, 0)
    assert old.old_style_offsets == [3]
    assert ask(client, EARLIEST, 0).old_style_offsets == [0]
    assert ask(client, LATEST, 1).offset == 3


@pytest.mark.rule("L-2")
@pytest.mark.parametrize(
    ("timestamp", "version", "error"),
    [
        (MAX_TIMESTAMP, 6, 35),
        (MAX_TIMESTAMP, 7, 0),
        (EARLIEST_LOCAL, 7, 35),
        (EARLIEST_LOCAL, 8, 0),
        (LATEST_TIERED, 8, 35),
        (LATEST_TIERED, 9, 0),
        (-6, 9, 35),
        (-3, 0, 35),
        (LATEST, 1, 0),
        (EARLIEST, 1, 0),
    ],
)
def test_special_times_that_are_too_new_for_the_version_are_35(
    cluster: VirtualCluster, timestamp: int, version: int, error: int
) -> None:
    client = cluster.connect()
    write(client, 100)
    answer = ask(client, timestamp, version)
    assert answer.error_code == error
    if error:
        assert (answer.offset, answer.timestamp) == (-1, -1)


@pytest.mark.rule("L-3")
def test_a_partition_asked_for_twice_is_42(cluster: VirtualCluster) -> None:
    wanted = ListOffsetsPartition(0, -1, LATEST)
    request = ListOffsetsRequest(-1, 0, [ListOffsetsTopic("t", [wanted, wanted])])
    answer = cluster.connect().ask(request, 9)
    assert [p.error_code for p in answer.topics[0].partitions] == [42, 42]


@pytest.mark.rule("L-3", "L-4")
def test_who_may_ask_which_replica(cluster: VirtualCluster) -> None:
    """Kafka's testListOffsetsErrorCodes: leader 0, follower 1, and 2 has no replica."""
    leader, follower, stranger = (cluster.connect(i) for i in range(3))
    assert ask(leader, LATEST, topic="missing").error_code == 3
    assert ask(leader, LATEST, partition=7).error_code == 3
    assert [ask(leader, LATEST, replica_id=r).error_code for r in (-1, 1, -2)] == [0, 0, 0]
    assert [ask(follower, LATEST, replica_id=r).error_code for r in (-1, 1, -2)] == [6, 6, 0]
    assert [ask(stranger, LATEST, replica_id=r).error_code for r in (-1, 1, -2)] == [6, 6, 6]


@pytest.mark.rule("L-4")
@pytest.mark.parametrize(("epoch", "error"), [(-1, 0), (0, 0), (1, 75)])
def test_the_epoch_is_checked(cluster: VirtualCluster, epoch: int, error: int) -> None:
    assert ask(cluster.connect(), LATEST, epoch=epoch).error_code == error


@pytest.mark.rule("L-4")
def test_an_older_epoch_is_fenced_and_checked_before_leadership(cluster: VirtualCluster) -> None:
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    old_leader, new_leader = cluster.connect(0), cluster.connect(1)
    assert ask(new_leader, LATEST, epoch=0).error_code == 74
    assert ask(old_leader, LATEST, epoch=0).error_code == 74
    assert ask(old_leader, LATEST, epoch=1).error_code == 6


@pytest.mark.rule("L-4", "L-5")
def test_a_consumer_hears_the_high_watermark_and_a_replica_the_log_end(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    write(client, 100)
    hold(cluster, 1)
    write(client, 200, 300)
    assert ask(client, LATEST).offset == 1
    assert ask(client, LATEST, isolation=1).offset == 1
    assert ask(client, LATEST, replica_id=-2).offset == 3
    assert ask(client, LATEST, replica_id=1).offset == 3
    release(cluster, 1)
    assert ask(client, LATEST).offset == 3


@pytest.mark.rule("L-5")
def test_the_ends_carry_their_epochs(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    write(client, 100)
    earliest, latest = ask(client, EARLIEST), ask(client, LATEST)
    assert (earliest.offset, earliest.timestamp, earliest.leader_epoch) == (0, -1, 0)
    assert (latest.offset, latest.timestamp, latest.leader_epoch) == (1, -1, 0)
    assert ask(client, EARLIEST_LOCAL).offset == 0
    tiered = ask(client, LATEST_TIERED)
    assert (tiered.error_code, tiered.offset, tiered.leader_epoch) == (0, -1, -1)


@pytest.mark.rule("L-6")
@pytest.mark.parametrize("batches", [False, True], ids=["one batch", "three batches"])
def test_the_first_record_at_or_after_a_time(cluster: VirtualCluster, batches: bool) -> None:
    client = cluster.connect()
    write(client, 100, 999, 200, batches=batches)
    for timestamp, offset, own in ((0, 0, 100), (100, 0, 100), (101, 1, 999), (999, 1, 999)):
        answer = ask(client, timestamp)
        assert (answer.offset, answer.timestamp, answer.leader_epoch) == (offset, own, 0)
    none = ask(client, 1000)
    assert (none.error_code, none.offset, none.timestamp, none.leader_epoch) == (0, -1, -1, -1)


@pytest.mark.rule("L-6")
def test_a_record_that_is_not_committed_yet_is_not_found(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    hold(cluster, 1)
    write(client, 100)
    assert ask(client, 50).offset == -1
    assert ask(client, 50, replica_id=-2).offset == 0


@pytest.mark.rule("L-7")
@pytest.mark.parametrize("batches", [False, True], ids=["one batch", "three batches"])
def test_the_largest_timestamp(cluster: VirtualCluster, batches: bool) -> None:
    client = cluster.connect()
    assert ask(client, MAX_TIMESTAMP).offset == -1
    write(client, 100, 999, 200, batches=batches)
    answer = ask(client, MAX_TIMESTAMP)
    assert (answer.offset, answer.timestamp, answer.leader_epoch) == (1, 999, 0)


@pytest.mark.rule("L-7")
def test_of_equal_largest_timestamps_the_first(cluster: VirtualCluster) -> None:
    """Kafka's LogOffsetTest: 0, 1, 2, 3, 4, 6, 5."""
    client = cluster.connect()
    write(client, 0, 1, 2, 3, 4, 6, 5, batches=True)
    answer = ask(client, MAX_TIMESTAMP)
    assert (answer.offset, answer.timestamp) == (5, 6)
    write(client, 6)
    assert ask(client, MAX_TIMESTAMP).offset == 5


@pytest.mark.rule("L-7")
@pytest.mark.parametrize(("batches", "offset"), [(False, 0), (True, 2)])
def test_with_log_append_time_the_first_record_of_the_last_batch(batches: bool, offset: int) -> None:
    cluster = VirtualCluster()
    cluster.topic("t", message_timestamp_type="LogAppendTime")
    client = cluster.connect()
    for timestamp in (100, 999, 200) if batches else ():
        write(client, timestamp)
        cluster.advance(10)
    if not batches:
        write(client, 100, 999, 200)
    assert ask(client, MAX_TIMESTAMP).offset == offset


def elected() -> VirtualCluster:
    """Kafka's testMonotonicOffsetsAfterLeaderChange: five records, two of them committed, and a new leader that does not know."""
    cluster = VirtualCluster(3)
    cluster.topic("t", 1, 3)
    client = cluster.connect()
    hold(cluster, 2, at=2)
    for timestamp in (10, 11, 12, 13, 14):
        write(client, timestamp)
    assert cluster.state.nodes[1].replicas.partitions[("t", 0)].log.high_watermark == 2
    hold(cluster, 1)
    for broker_id in (0, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(True, cluster.now_ms)
    cluster.state.controller.elect("t", 0, 1)
    # Nobody has fetched from the new leader yet: its high watermark stays below the start of its epoch.
    for broker_id in (0, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(True, cluster.now_ms)
    cluster.run()
    return cluster


@pytest.mark.rule("L-8")
def test_a_new_leader_does_not_tell_what_it_cannot_know_yet() -> None:
    cluster = elected()
    client = cluster.connect(1)
    assert ask(client, LATEST).error_code == 78
    assert ask(client, LATEST, 4).error_code == 5
    assert ask(client, 100).error_code == 78
    assert ask(client, LATEST, replica_id=-2).offset == 5
    assert (ask(client, EARLIEST).error_code, ask(client, EARLIEST).offset) == (0, 0)
    found = ask(client, 11)
    assert (found.error_code, found.offset, found.timestamp) == (0, 1, 11)
    for broker_id in (0, 2):
        for fetcher in cluster.state.nodes[broker_id].replicas.fetchers.values():
            fetcher.cut_link(False, cluster.now_ms)
    release(cluster, 2)
    assert ask(client, LATEST).offset == 5
    assert (ask(client, 100).error_code, ask(client, 100).offset) == (0, -1)


@pytest.mark.rule("L-9")
def test_epochs_are_told_from_version_4_on_and_are_those_of_the_records(cluster: VirtualCluster) -> None:
    client = cluster.connect()
    write(client, *range(100, 110))
    for version in range(1, 10):
        epoch = 0 if version >= 4 else -1
        assert ask(client, LATEST, version).leader_epoch == epoch
        assert ask(client, 0, version).leader_epoch == epoch
    cluster.state.controller.elect("t", 0, 1)
    cluster.run()
    moved = cluster.connect(1)
    assert ask(moved, LATEST).leader_epoch == 1
    assert [ask(moved, t).leader_epoch for t in (0, EARLIEST, MAX_TIMESTAMP)] == [0, 0, 0]


@pytest.mark.rule("L-10")
def test_each_topic_entry_of_the_request_has_one_in_the_answer(cluster: VirtualCluster) -> None:
    cluster.topic("u", 2)
    asked = [
        ListOffsetsTopic(name, [ListOffsetsPartition(p, -1, LATEST)]) for name, p in (("u", 0), ("t", 0), ("u", 1))
    ]
    answer = cluster.connect().ask(ListOffsetsRequest(-1, 0, asked), 9)
    told = [(t.name, [p.partition_index for p in t.partitions]) for t in answer.topics]
    assert told == [("u", [0]), ("t", [0]), ("u", [1])]


@pytest.mark.rule("N-15")
def test_a_follower_tells_its_own_log_start_to_a_debugging_consumer(cluster: VirtualCluster) -> None:
    write(cluster.connect(), 1, 2, 3, batches=True)
    cluster.state.nodes[1].replicas.partitions[("t", 0)].log.raise_log_start(2)
    assert ask(cluster.connect(1), EARLIEST, replica_id=-2).offset == 2
    assert ask(cluster.connect(0), EARLIEST).offset == 0
