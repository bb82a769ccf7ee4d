"""Tests of in-sync replicas (min.insync.replicas, high watermark, preferred replica) and of automatic topic creation."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import Topic, follow, held, list_offsets, new_topic, read, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.wire import batch, produce, produced
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic

PROFILE = "lag"
LAG_MS = 1500


@pytest.mark.needs("replica.lag.time.max.ms", "replica.selector.class", racks=True)
@pytest.mark.rule("P-7", "P-13", "P-15", "N-3", "N-4", "N-11")
def test_lagging_follower_leaves_the_isr_and_rejoins_when_it_has_caught_up(subject: Subject) -> None:
    strict = new_topic(subject, replication=2, min_insync_replicas="2")
    easy = new_topic(subject, replication=2)
    clamped = new_topic(subject, min_insync_replicas="2")
    for topic in (strict, easy):
        topic.fill(batch(b"v"))
    wait_until(
        subject,
        lambda: read(easy, 1, rack="r1").preferred_read_replica == 1,
        f"the leader of {easy.name}-0 knows that broker 1 has the first record of the partition",
    )
    with held(subject, strict, 1), held(subject, easy, 1):
        for topic in (strict, easy):
            partition_response = produced(subject.ask(topic.connect(), produce(topic.name, batch(b"w")), 9))
            assert partition_response.error_code == 0
        assert read(easy, 0).high_watermark == 1
        waiting = strict.connect()
        subject.send(waiting, produce(strict.name, batch(b"x"), acks=-1, timeout_ms=3 * LAG_MS), 9)
        wait_until(
            subject,
            lambda: [t.partition().isr_nodes for t in (strict, easy)] == [[0], [0]],
            f"broker 0 is the only in-sync replica of {strict.name}-0 and of {easy.name}-0",
        )
        wait_until(subject, lambda: read(easy, 0).high_watermark == 2, f"the high watermark of {easy.name}-0 is 2")
        assert read(easy, 2, rack="r1").preferred_read_replica == -1
        # min.insync.replicas 2: produce is rejected, and a single replica does not commit existing records
        partition_response = produced(subject.ask(strict.connect(), produce(strict.name, batch(b"y"), acks=-1), 9))
        assert (
            partition_response.error_code,
            partition_response.base_offset,
            partition_response.log_append_time_ms,
        ) == (19, -1, -1)
        assert list_offsets(strict, -1, replica_id=-2).offset == 3 and read(strict, 0).high_watermark == 1
        late = produced(subject.answer(waiting).message)
        assert (late.error_code, late.base_offset) == (7, 2)
        for acks in (0, 1):
            connection = strict.connect()
            subject.send(connection, produce(strict.name, batch(b"z"), acks=acks), 9)
        assert produced(subject.answer(connection).message).error_code == 0
        assert clamped.fill(batch(b"v"))[0].base_offset == 0  # limited to the number of replicas
        # N-11: a follower is in sync again when it has reached the high watermark
        follow(easy, 1, 1)
        assert easy.partition().isr_nodes == [0]
        follow(easy, 1, 2)
        wait_until(
            subject, lambda: set(easy.partition().isr_nodes) == {0, 1}, f"broker 1 is in the ISR of {easy.name}-0"
        )
    wait_until(
        subject, lambda: set(strict.partition().isr_nodes) == {0, 1}, f"broker 1 is in the ISR of {strict.name}-0"
    )
    wait_until(subject, lambda: read(strict, 0).high_watermark == 5, f"the high watermark of {strict.name}-0 is 5")


@pytest.mark.needs("auto.create.topics.enable", "num.partitions", "default.replication.factor", brokers=2)
@pytest.mark.rule("M-3")
def test_metadata_request_creates_a_missing_topic_if_it_allows_auto_topic_creation(subject: Subject) -> None:
    """The first Metadata response has UNKNOWN_TOPIC_OR_PARTITION (3) for the new topic. A later response has its partitions.

    Illegal names get INVALID_TOPIC_EXCEPTION (17). Corresponds to Kafka's test `MetadataRequestTest.testAutoTopicCreation`.
    """
    connection = subject.connect()
    for version in (0, 3, 4, 12):
        topic = Topic(subject, subject.new_name("made"))
        requested = MetadataRequest([MetadataRequestTopic(name=topic.name)], allow_auto_topic_creation=False)
        if version >= 4:
            for _ in range(2):
                assert [t.error_code for t in subject.ask(connection, requested, version).topics] == [3]
            subject.pass_ms(100)
            assert topic.metadata().error_code == 3
        requested.allow_auto_topic_creation = True
        [first] = subject.ask(connection, requested, version).topics
        assert (first.error_code, first.partitions) == (3, [])
        result = wait_until(
            subject,
            lambda t=topic: (m := t.metadata()).error_code == 0 and m,  # type: ignore[misc]
            f"topic {topic.name} exists",
        )
        assert [len(p.replica_nodes) for p in result.partitions] == [2, 2, 2]
    illegal = MetadataRequest([MetadataRequestTopic(name="no/topic")], allow_auto_topic_creation=True)
    assert [t.error_code for t in subject.ask(connection, illegal, 12).topics] == [17]


@pytest.mark.needs("auto.create.topics.enable", "num.partitions", "default.replication.factor", brokers=2)
@pytest.mark.rule("M-3")
def test_metadata_auto_creates_two_colliding_topic_names_only_if_requested_together(subject: Subject) -> None:
    """Names collide if they differ only in dots and underscores. Two colliding names in one request are both created.

    A name that collides with an existing topic is not created. Its error is UNKNOWN_TOPIC_OR_PARTITION (3), the same as in the first response for a
    topic that the broker is creating.
    """
    connection, name = subject.connect(), subject.new_name("made")

    def ask(*names: str) -> list[int]:
        request = MetadataRequest([MetadataRequestTopic(name=n) for n in names], allow_auto_topic_creation=True)
        return [t.error_code for t in subject.ask(connection, request, 12).topics]

    assert ask(f"{name}.x_y", f"{name}_x.y") == [3, 3]
    wait_until(subject, lambda: ask(f"{name}.x_y", f"{name}_x.y") == [0, 0], "both topics exist")
    for _ in range(2):
        assert ask(f"{name}.x.y") == [3]
        subject.pass_ms(100)
