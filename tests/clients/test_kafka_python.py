"""kafka-python 3 against the broker."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from kafka.consumer.subscription_state import ConsumerRebalanceListener
from kafka.errors import TopicAlreadyExistsError, UnknownTopicOrPartitionError

from kafkaproto.testing import TestCluster
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.clients.broker_side import (
    CODECS,
    START_MS,
    Running,
    batch_headers,
    codecs,
    eventually,
    fetched_bytes,
)

pytestmark = [
    pytest.mark.clients,
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS, "ignore:unclosed <socket:ResourceWarning"),
]

Make = Callable[..., Any]
POLL_MS = 1_000  # kafka-python 3.0.12 can miss the end of a rebalance that outlives a poll, and then waits for ever


@pytest.fixture
def make(kafka: TestCluster) -> Iterator[Make]:
    """Return a function that creates clients, `make(KafkaConsumer, …)`; they are closed after the test."""
    clients: list[Any] = []

    def new(kind: Any, *arguments: Any, **settings: Any) -> Any:
        clients.append(kind(*arguments, bootstrap_servers=kafka.bootstrap_servers, **settings))
        return clients[-1]

    yield new
    for client in clients:
        client.close()
    clients.clear()
    gc.collect()  # collect unclosed sockets of kafka-python (failed connects) here, not in another test


def read(consumer: Any, count: int) -> list[Any]:
    """Poll until `count` records have arrived, and return them. No further records may arrive."""
    polled_records: list[Any] = []
    while len(polled_records) < count:
        polled = consumer.poll(10_000)
        assert polled, f"{len(polled_records)} of {count} records arrived, then none for ten seconds"
        polled_records += [record for batch in polled.values() for record in batch]
    assert len(polled_records) == count
    return polled_records


def all_of(topic: str, partitions: int = 3) -> list[TopicPartition]:
    return [TopicPartition(topic, i) for i in range(partitions)]


@pytest.mark.parametrize("kind", CODECS)
def test_kafka_python_consumes_produced_records_unchanged_in_every_compression(
    kafka: TestCluster, make: Make, kind: str
) -> None:
    producer = make(KafkaProducer, compression_type=None if kind == "none" else kind, linger_ms=50)
    expected_records = [
        (b"key %d" % (i % 7), b"value %d " % i * 20, [("n", b"%d" % i), ("empty", b"")], START_MS + i)
        for i in range(100)
    ]
    for key, value, headers, timestamp_ms in expected_records:
        producer.send("t", key=key, value=value, headers=headers, timestamp_ms=timestamp_ms)
    producer.send("t", key=b"gone", value=None)
    producer.flush()
    assert codecs(kafka) == {CODECS[kind]}
    consumer = make(KafkaConsumer)
    consumer.assign(all_of("t"))
    consumer.seek_to_beginning()
    consumed = read(consumer, 101)
    assert [r.value for r in consumed if r.key == b"gone"] == [None]
    read_records = sorted((r.timestamp, r.key, r.value, list(r.headers)) for r in consumed if r.key != b"gone")
    assert read_records == [
        (timestamp_ms, key, value, headers) for key, value, headers, timestamp_ms in expected_records
    ]


def test_kafka_python_producer_is_idempotent_and_sends_consecutive_sequence_numbers(
    kafka: TestCluster, make: Make
) -> None:
    producer = make(KafkaProducer)
    for i in range(5):
        producer.send("t", value=b"%d" % i, partition=0).get(10)
    assert kafka.journal.requests(api="InitProducerId")
    headers = batch_headers(kafka)
    assert {header.producer_id >= 0 for header in headers} == {True}
    assert [header.base_sequence for header in headers] == list(range(len(headers)))


@pytest.mark.rule("L-6")
def test_kafka_python_consumer_finds_first_and_end_offsets_and_offsets_by_timestamp(
    kafka: TestCluster, make: Make
) -> None:
    producer = make(KafkaProducer)
    for i in range(10):
        producer.send("t", value=b"v", partition=0, timestamp_ms=START_MS + i * 100).get(10)
    consumer = make(KafkaConsumer)
    first = TopicPartition("t", 0)
    offsets = consumer.offsets_for_times({first: START_MS + 350})
    assert (offsets[first].offset, offsets[first].timestamp) == (4, START_MS + 400)
    assert consumer.offsets_for_times({first: START_MS + 901})[first] is None
    assert consumer.beginning_offsets(all_of("t")) == dict.fromkeys(all_of("t"), 0)
    assert consumer.end_offsets(all_of("t")) == {first: 10, TopicPartition("t", 1): 0, TopicPartition("t", 2): 0}


def test_kafka_python_admin_client_creates_describes_lists_and_deletes_topics(kafka: TestCluster, make: Make) -> None:
    admin = make(KafkaAdminClient)
    expected_topic = {"made": {"num_partitions": 4, "replication_factor": 2, "configs": {"max.message.bytes": "2000"}}}
    admin.create_topics(expected_topic, wait_for_metadata=True)
    assert set(admin.list_topics()) == {"t", "made"}
    [described_topic] = admin.describe_topics(["made"])
    assert [len(p["replica_nodes"]) for p in described_topic["partitions"]] == [2] * 4
    with pytest.raises(TopicAlreadyExistsError):
        admin.create_topics(expected_topic)
    admin.delete_topics(["made"])
    assert admin.list_topics() == ["t"]
    with pytest.raises(UnknownTopicOrPartitionError):
        admin.delete_topics(["made"])


def test_kafka_python_admin_client_describes_and_alters_configs(kafka: TestCluster, make: Make) -> None:
    admin = make(KafkaAdminClient)
    topic = ConfigResource("TOPIC", "t", {"max.message.bytes": "3000"})
    admin.alter_configs([topic])
    configs = admin.describe_configs([ConfigResource("TOPIC", "t")], config_filter="all")["topic"]["t"]
    assert configs["max.message.bytes"]["value"] == "3000"
    assert configs["cleanup.policy"]["value"] == "delete"
    changed = admin.describe_configs([ConfigResource("TOPIC", "t")])["topic"]["t"]
    assert list(changed) == ["max.message.bytes"]
    of_broker = admin.describe_configs([ConfigResource("BROKER", "1")], config_filter="all")["broker"]["1"]
    assert of_broker["broker.rack"]["value"] == "b"


def test_kafka_python_admin_client_describes_the_cluster(kafka: TestCluster, make: Make) -> None:
    described = make(KafkaAdminClient).describe_cluster()
    assert [b["rack"] for b in sorted(described["brokers"], key=lambda b: b["broker_id"])] == ["a", "b", "c"]


@pytest.mark.rule("M-3")
def test_kafka_python_producer_creates_a_missing_topic(kafka: TestCluster, make: Make) -> None:
    make(KafkaProducer).send("new", value=b"first").get(10)
    assert [record.value for record in kafka.records("new")] == [b"first"]


class Assigned(ConsumerRebalanceListener):
    """A rebalance listener that counts how often partitions were assigned."""

    def __init__(self) -> None:
        self.times = 0

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.times += 1


class Member:
    """A member of group g that polls in its own thread until `stop`."""

    def __init__(self, make: Make, **settings: Any) -> None:
        self.listener = Assigned()
        self.values: list[bytes] = []
        self.consumer = make(
            KafkaConsumer,
            group_id="g",
            **{"auto_offset_reset": "earliest", "enable_auto_commit": False, "heartbeat_interval_ms": 50, **settings},
        )
        self.consumer.subscribe(["t"], listener=self.listener)
        self.start()

    def start(self) -> None:
        self._running = Running(self._poll)

    def _poll(self) -> None:
        for batch in self.consumer.poll(POLL_MS).values():
            self.values += [record.value for record in batch]

    @property
    def share(self) -> set[TopicPartition]:
        return set(self.consumer.assignment() or ())

    def stop(self) -> None:
        self._running.stop()


def shared(*members: Member) -> bool:
    """Return whether each member has partitions, and each partition is assigned once."""
    assigned = [p for m in members for p in m.share]
    return len(assigned) == len(set(assigned)) == 3 and all(m.share for m in members)


def test_kafka_python_consumer_group_shares_partitions_and_resumes_from_commits(kafka: TestCluster, make: Make) -> None:
    kafka.produce("t", [(None, b"%d" % i) for i in range(300)])
    first, second = Member(make), Member(make)
    eventually(lambda: shared(first, second), "the two share the three partitions")
    eventually(lambda: len(set(first.values + second.values)) == 300, "all is read")
    admin = make(KafkaAdminClient)
    described = admin.describe_groups(["g"])["g"]
    assert (described["group_state"], len(described["members"])) == ("Stable", 2)
    assert [group["group_id"] for group in admin.list_groups()] == ["g"]
    for member in (first, second):
        member.stop()
        member.consumer.commit()
    assert {first.consumer.committed(p) for p in all_of("t")} == {100}
    second.consumer.close()
    first.start()
    third = Member(make)
    eventually(lambda: shared(first, third), "the third member has the second's partitions")
    kafka.produce("t", [(None, b"more %d" % i) for i in range(3)])
    eventually(lambda: len(first.values + second.values + third.values) >= 303, "new records arrive")
    first.stop()
    third.stop()
    assert len(first.values + second.values + third.values) == 303
    assert {b"more 0", b"more 1", b"more 2"} <= set(first.values + third.values)


def test_kafka_python_static_member_rejoins_without_a_rebalance(kafka: TestCluster, make: Make) -> None:
    static, other = Member(make, group_instance_id="one"), Member(make)
    eventually(lambda: shared(static, other), "the two share")
    static.stop()
    share_before, times_before = static.share, other.listener.times
    static.consumer.close()
    restarted = Member(make, group_instance_id="one")
    eventually(lambda: restarted.share, "it is back")
    restarted.stop()
    other.stop()
    assert restarted.share == share_before
    assert other.listener.times == times_before


def test_kafka_python_member_that_disappears_is_removed_after_its_session_timeout(
    kafka: TestCluster, make: Make
) -> None:
    stopped, remaining = Member(make, group_instance_id="gone"), Member(make)
    eventually(lambda: shared(stopped, remaining), "the two share")
    stopped.stop()
    stopped.consumer.close()  # a static member does not report that it leaves
    assert len(remaining.share) < 3
    kafka.clock.advance(45_001)
    eventually(lambda: len(remaining.share) == 3, "the other member has all partitions", 10)
    remaining.stop()


@pytest.mark.rule("Q-7", "T-1")
def test_kafka_python_metric_throttle_time_max_equals_the_longest_produce_throttle(
    kafka: TestCluster, make: Make
) -> None:
    kafka.set_quota(client_id="limited", producer_byte_rate=10_000)
    producer = make(KafkaProducer, client_id="limited", batch_size=1)
    producer.send("t", value=b"x" * 102_000, partition=0).get(10)
    producer.send("t", value=b"x", partition=0).get(10)
    [throttled, later] = [r.throttle_time_ms for r in kafka.journal.requests(api="Produce")][:2]
    assert 200 <= throttled <= 240  # 102 kB and its headers at 10 kB/s, with ten seconds' worth unthrottled
    throttle_time_max = producer.metrics()["producer-metrics"]["throttle-time-max"]
    assert throttle_time_max == max(throttled, later)


@pytest.mark.rule("T-4", "Q-3")
def test_kafka_python_throttled_consumer_continues_when_virtual_time_advances(kafka: TestCluster, make: Make) -> None:
    for _ in range(12):
        kafka.produce("t", [(None, b"x" * 10_000)] * 10, 0)
    kafka.set_quota(client_id="limited", consumer_byte_rate=100_000)
    consumer = make(KafkaConsumer, client_id="limited", max_partition_fetch_bytes=110_000)
    consumer.assign([TopicPartition("t", 0)])
    consumer.seek_to_beginning()
    read(consumer, 90)  # ten seconds' worth is unthrottled; a fetch above it is taken back
    reading = Running(lambda: consumer.poll(10))
    kafka.wait_for(lambda journal: journal.throttles("Fetch"))
    kafka.clock.advance(12_000)  # the samples have expired
    eventually(lambda: consumer.position(TopicPartition("t", 0)) == 120, "the rest arrives")
    reading.stop()
    assert consumer.metrics()["consumer-metrics"]["throttle-time-max"] > 0


@pytest.mark.rule("N-4")
def test_kafka_python_consumer_reads_from_the_follower_in_its_client_rack(kafka: TestCluster, make: Make) -> None:
    for i in range(3):
        kafka.produce("t", [(None, b"x" * 500)] * 200, i)
    consumer = make(KafkaConsumer, client_rack="b")
    consumer.assign(all_of("t"))
    consumer.seek_to_beginning()
    read(consumer, 600)
    sent = fetched_bytes(kafka)
    assert sent[1] > 20 * (sent[0] + sent[2])


def test_kafka_python_producer_loses_no_records_while_a_broker_stops_and_starts(kafka: TestCluster, make: Make) -> None:
    producer = make(KafkaProducer, retry_backoff_ms=20, metadata_max_age_ms=500)
    futures = []
    for i in range(300):
        if i == 100:
            kafka.broker(1).stop()
        if i == 200:
            kafka.broker(1).start()
        futures.append(producer.send("t", value=b"%d" % i, partition=i % 3))
        producer.flush()
    for future in futures:
        future.get(10)
    assert sorted(int(r.value) for r in kafka.records("t")) == list(range(300))
    consumer = make(KafkaConsumer)
    consumer.assign(all_of("t"))
    consumer.seek_to_beginning()
    assert sorted(int(r.value) for r in read(consumer, 300)) == list(range(300))


def test_kafka_python_clients_produce_and_consume_while_virtual_time_advances(kafka: TestCluster, make: Make) -> None:
    producer, consumer = make(KafkaProducer), make(KafkaConsumer)
    consumer.assign(all_of("t"))
    consumer.seek_to_beginning()
    for _ in range(3):
        producer.send("t", value=b"v").get(10)
        kafka.clock.advance(60_000)
    assert len(read(consumer, 3)) == 3
