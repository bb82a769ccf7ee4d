"""confluent-kafka (librdkafka) against the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from kafkaproto.testing import TestCluster
from tests.support.clients.broker_side import (
    CODECS,
    START_MS,
    Running,
    batch_headers,
    codecs,
    eventually,
    fetched_bytes,
)

pytestmark = pytest.mark.clients

SECONDS = 20.0
Make = Callable[..., Any]


@pytest.fixture
def consumer(kafka: TestCluster) -> Iterator[Make]:
    """Return a function that creates consumers, `consumer(group="g", **{"client.rack": "b"})`; they are closed after the test."""
    consumers: list[Consumer] = []

    def new(group: str = "g", **settings: Any) -> Consumer:
        base = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": 50,
        }
        consumers.append(Consumer({**base, **settings}))
        return consumers[-1]

    yield new
    for client in consumers:
        client.close()


def producer(kafka: TestCluster, **settings: Any) -> Producer:
    return Producer({"bootstrap.servers": kafka.bootstrap, **settings})


@pytest.fixture
def admin(kafka: TestCluster) -> AdminClient:
    """Return an admin client that is kept until the end of the test: deleting the client would lose its pending responses."""
    return AdminClient({"bootstrap.servers": kafka.bootstrap})


def all_of(topic: str, offset: int = OFFSET_BEGINNING) -> list[TopicPartition]:
    return [TopicPartition(topic, i, offset) for i in range(3)]


def read(consumer: Consumer, count: int) -> list[Any]:
    """Poll until `count` records have arrived, and return them."""
    messages: list[Any] = []
    while len(messages) < count:
        message = consumer.poll(SECONDS)
        assert message is not None, f"{len(messages)} of {count} records arrived, then none"
        assert message.error() is None
        messages.append(message)
    return messages


def send(kafka_producer: Producer, count: int, **where: Any) -> None:
    for i in range(count):
        kafka_producer.produce("t", value=b"%d" % i, **where)
    assert kafka_producer.flush(SECONDS) == 0


@pytest.mark.parametrize("kind", CODECS)
def test_confluent_kafka_consumes_produced_records_unchanged_in_every_compression(
    kafka: TestCluster, consumer: Make, kind: str
) -> None:
    kafka_producer = producer(kafka, **{"compression.type": kind, "linger.ms": 50})
    expected_records = [
        (START_MS + i, b"key %d" % (i % 7), b"value %d " % i * 20, [("n", b"%d" % i), ("none", None)])
        for i in range(100)
    ]
    for timestamp_ms, key, value, headers in expected_records:
        kafka_producer.produce("t", key=key, value=value, headers=headers, timestamp=timestamp_ms)
    kafka_producer.produce("t", key=b"gone", value=None)
    assert kafka_producer.flush(SECONDS) == 0
    assert CODECS[kind] in codecs(kafka)
    reader = consumer()
    reader.assign(all_of("t"))
    messages = read(reader, 101)
    assert [m.value() for m in messages if m.key() == b"gone"] == [None]
    read_records = sorted((m.timestamp()[1], m.key(), m.value(), m.headers()) for m in messages if m.key() != b"gone")
    assert read_records == expected_records


def test_confluent_kafka_idempotent_producer_sends_consecutive_sequence_numbers(kafka: TestCluster) -> None:
    kafka_producer = producer(kafka, **{"enable.idempotence": True})
    for _ in range(4):
        send(kafka_producer, 1, partition=0)
    headers = batch_headers(kafka)
    assert len({h.producer_id for h in headers}) == 1
    assert headers[0].producer_id >= 0
    assert [h.base_sequence for h in headers] == [0, 1, 2, 3]


@pytest.mark.rule("P-1")
@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_confluent_kafka_producer_stores_its_records_with_every_acks_setting(kafka: TestCluster, acks: str) -> None:
    send(producer(kafka, acks=acks), 30)
    eventually(lambda: len(kafka.records("t")) == 30, "all are there")


@pytest.mark.rule("L-6")
def test_confluent_kafka_consumer_finds_watermarks_and_offsets_by_timestamp(
    kafka: TestCluster, admin: AdminClient, consumer: Make
) -> None:
    kafka_producer = producer(kafka)
    for i in range(10):
        kafka_producer.produce("t", value=b"v", partition=0, timestamp=START_MS + i * 100)
        kafka_producer.flush(SECONDS)
    reader = consumer()
    [offsets_for_time] = reader.offsets_for_times([TopicPartition("t", 0, START_MS + 350)], timeout=SECONDS)
    assert offsets_for_time.offset == 4
    assert reader.get_watermark_offsets(TopicPartition("t", 0), timeout=SECONDS) == (0, 10)
    by_spec = {
        TopicPartition("t", 0): OffsetSpec.latest(),
        TopicPartition("t", 1): OffsetSpec.earliest(),
    }
    offsets = {p.partition: f.result(SECONDS).offset for p, f in admin.list_offsets(by_spec).items()}
    assert offsets == {0: 10, 1: 0}
    [latest] = admin.list_offsets({TopicPartition("t", 0): OffsetSpec.max_timestamp()}).values()
    assert (latest.result(SECONDS).offset, latest.result(SECONDS).timestamp) == (9, START_MS + 900)


def test_confluent_kafka_admin_client_creates_describes_lists_and_deletes_topics(
    kafka: TestCluster, admin: AdminClient
) -> None:
    [created] = admin.create_topics([NewTopic("made", 4, 2, config={"max.message.bytes": "2000"})]).values()
    created.result(SECONDS)
    listed = admin.list_topics(timeout=SECONDS)
    assert set(listed.topics) == {"t", "made"}
    assert [len(p.replicas) for p in listed.topics["made"].partitions.values()] == [2] * 4
    [again] = admin.create_topics([NewTopic("made", 1, 1)]).values()
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        again.result(SECONDS)
    [deleted] = admin.delete_topics(["made"]).values()
    deleted.result(SECONDS)
    assert set(admin.list_topics(timeout=SECONDS).topics) == {"t"}


def test_confluent_kafka_admin_client_describes_and_alters_configs(kafka: TestCluster, admin: AdminClient) -> None:
    change = ConfigEntry("max.message.bytes", "3000", incremental_operation=AlterConfigOpType.SET)
    topic = ConfigResource(ResourceType.TOPIC, "t", incremental_configs=[change])
    [altered] = admin.incremental_alter_configs([topic]).values()
    altered.result(SECONDS)
    [described] = admin.describe_configs([ConfigResource(ResourceType.TOPIC, "t")]).values()
    configs = described.result(SECONDS)
    assert (configs["max.message.bytes"].value, configs["max.message.bytes"].is_default) == ("3000", False)
    assert configs["cleanup.policy"].value == "delete"
    [of_broker] = admin.describe_configs([ConfigResource(ResourceType.BROKER, "2")]).values()
    assert of_broker.result(SECONDS)["broker.rack"].value == "c"


def test_confluent_kafka_admin_client_describes_the_cluster(kafka: TestCluster, admin: AdminClient) -> None:
    described = admin.describe_cluster().result(SECONDS)
    assert {node.id: node.rack for node in described.nodes} == {0: "a", 1: "b", 2: "c"}


@pytest.mark.rule("M-3")
def test_confluent_kafka_producer_creates_a_missing_topic(kafka: TestCluster) -> None:
    kafka_producer = producer(kafka)
    kafka_producer.produce("new", value=b"first")
    assert kafka_producer.flush(SECONDS) == 0
    assert [record.value for record in kafka.records("new")] == [b"first"]


class Member:
    """A member of group g that polls in its own thread until `stop`."""

    def __init__(self, consumer: Make, **settings: Any) -> None:
        self.consumer = consumer(**settings)
        self.values: list[bytes] = []
        self.share: set[int] = set()
        self.times = 0
        self.consumer.subscribe(["t"], on_assign=self._assigned)
        self._running = Running(self._poll)

    def _assigned(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        self.times += 1

    def _poll(self) -> None:
        message = self.consumer.poll(0.05)
        if message is not None and message.error() is None:
            self.values.append(message.value())
            self.consumer.store_offsets(message)
        self.share = {p.partition for p in self.consumer.assignment()}

    def stop(self) -> None:
        self._running.stop()


@pytest.fixture
def member(consumer: Make) -> Iterator[Callable[..., Member]]:
    """Return a function that creates members, `member(**settings)`; they are stopped before their consumers are closed."""
    members: list[Member] = []

    def new(**settings: Any) -> Member:
        members.append(Member(consumer, **settings))
        return members[-1]

    yield new
    for client in members:
        client.stop()


def shared(*members: Member) -> bool:
    """Return whether each member has partitions, and each partition is assigned once."""
    assigned = [p for m in members for p in m.share]
    return len(assigned) == len(set(assigned)) == 3 and all(m.share for m in members)


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_confluent_kafka_consumer_group_shares_partitions_and_resumes_from_commits(
    kafka: TestCluster, admin: AdminClient, member: Callable[..., Member], strategy: str
) -> None:
    settings = {"partition.assignment.strategy": strategy, "enable.auto.offset.store": False}
    first, second = member(**settings), member(**settings)
    eventually(lambda: shared(first, second), "the two share the three partitions")
    kafka.produce("t", [(None, b"%d" % i) for i in range(300)])
    eventually(lambda: len(first.values + second.values) >= 300, "all is read")
    assert len(set(first.values + second.values)) == len(first.values + second.values) == 300
    [described] = admin.describe_consumer_groups(["g"]).values()
    assert len(described.result(SECONDS).members) == 2
    assert [g.group_id for g in admin.list_consumer_groups().result(SECONDS).valid] == ["g"]
    for member_consumer in (first, second):
        member_consumer.stop()
    for member_consumer in (first, second):
        member_consumer.consumer.commit(asynchronous=False)
    for member_consumer in (first, second):
        member_consumer.consumer.close()
    [committed] = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions("g")]).values()
    assert {p.offset for p in committed.result(SECONDS).topic_partitions} == {100}
    third = member(**settings)
    eventually(lambda: third.share == {0, 1, 2}, "the third member has all partitions")
    kafka.produce("t", [(None, b"more %d" % i) for i in range(3)])
    eventually(lambda: len(third.values) >= 3, "new records arrive")
    third.stop()
    assert sorted(third.values) == [b"more 0", b"more 1", b"more 2"]


def test_confluent_kafka_static_member_rejoins_without_a_rebalance(
    kafka: TestCluster, member: Callable[..., Member]
) -> None:
    static, other = member(**{"group.instance.id": "one"}), member()
    eventually(lambda: shared(static, other), "the two share")
    static.stop()
    share_before, times_before = static.share, other.times
    static.consumer.close()
    restarted = member(**{"group.instance.id": "one"})
    eventually(lambda: restarted.share, "it is back")
    assert restarted.share == share_before
    assert other.times == times_before
    restarted.stop()
    other.stop()


def test_confluent_kafka_member_that_disappears_is_removed_after_session_timeout(
    kafka: TestCluster, member: Callable[..., Member]
) -> None:
    stopped, remaining = member(**{"group.instance.id": "gone"}), member()
    eventually(lambda: shared(stopped, remaining), "the two share")
    stopped.stop()
    stopped.consumer.close()  # a static member does not report that it leaves
    assert len(remaining.share) < 3
    kafka.clock.advance(45_001)
    eventually(lambda: len(remaining.share) == 3, "the other member has all partitions", 10)
    remaining.stop()


@pytest.mark.rule("Q-7", "T-1")
def test_confluent_kafka_producer_over_quota_receives_its_throttle_times(kafka: TestCluster) -> None:
    kafka.set_quota(client_id="limited", producer_byte_rate=10_000)
    throttles: list[int] = []
    kafka_producer = producer(
        kafka,
        **{"client.id": "limited", "throttle_cb": lambda event: throttles.append(round(event.throttle_time * 1000))},
    )
    kafka_producer.produce("t", value=b"x" * 102_000, partition=0)
    assert kafka_producer.flush(SECONDS) == 0
    kafka_producer.poll(0)
    [throttled] = [r.throttle_time_ms for r in kafka.journal.requests(api="Produce")]
    assert 200 <= throttled <= 240  # 102 kB and its headers at 10 kB/s, with ten seconds' worth unthrottled
    assert throttles == [throttled]


@pytest.mark.rule("T-4", "Q-3")
def test_confluent_kafka_throttled_consumer_continues_when_virtual_time_advances(
    kafka: TestCluster, consumer: Make
) -> None:
    for _ in range(12):
        kafka.produce("t", [(None, b"x" * 10_000)] * 10, 0)
    kafka.set_quota(client_id="limited", consumer_byte_rate=100_000)
    throttles: list[float] = []
    reader = consumer(
        **{
            "client.id": "limited",
            "max.partition.fetch.bytes": 110_000,
            "throttle_cb": lambda event: throttles.append(event.throttle_time),
        }
    )
    reader.assign([TopicPartition("t", 0, OFFSET_BEGINNING)])
    read(reader, 90)  # ten seconds' worth is unthrottled; a fetch above it is taken back
    kafka.wait_for(lambda journal: journal.throttles("Fetch"))
    kafka.clock.advance(12_000)  # the mute has ended and the samples have expired
    read(reader, 30)
    assert max(throttles) > 0


@pytest.mark.rule("N-4")
def test_confluent_kafka_consumer_reads_from_the_follower_in_its_client_rack(
    kafka: TestCluster, consumer: Make
) -> None:
    for i in range(3):
        kafka.produce("t", [(None, b"x" * 500)] * 200, i)
    reader = consumer(**{"client.rack": "b"})
    reader.assign(all_of("t"))
    read(reader, 600)
    sent = fetched_bytes(kafka)
    assert sent[1] > 20 * (sent[0] + sent[2])


def test_confluent_kafka_producer_loses_no_records_while_a_broker_stops_and_starts(
    kafka: TestCluster, consumer: Make
) -> None:
    settings = {"enable.idempotence": True, "retry.backoff.ms": 20, "reconnect.backoff.max.ms": 200}
    kafka_producer, failed = producer(kafka, **settings), []

    def delivered(error: Any, _: Any) -> None:
        if error is not None:
            failed.append(error)

    for i in range(300):
        if i == 100:
            kafka.broker(1).stop()
        if i == 200:
            kafka.broker(1).start()
        kafka_producer.produce("t", value=b"%d" % i, partition=i % 3, on_delivery=delivered)
        if i % 20 == 0:
            assert kafka_producer.flush(SECONDS) == 0
    assert kafka_producer.flush(SECONDS) == 0
    assert failed == []
    assert sorted(int(r.value) for r in kafka.records("t")) == list(range(300))
    reader = consumer()
    reader.assign(all_of("t"))
    assert sorted(int(m.value()) for m in read(reader, 300)) == list(range(300))


def test_confluent_kafka_clients_produce_and_consume_while_virtual_time_advances(
    kafka: TestCluster, consumer: Make
) -> None:
    kafka_producer, reader = producer(kafka), consumer()
    reader.assign(all_of("t"))
    for i in range(3):
        send(kafka_producer, 1, partition=i)
        kafka.clock.advance(60_000)
    assert len(read(reader, 3)) == 3
