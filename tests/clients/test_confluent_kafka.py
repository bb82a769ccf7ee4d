"""confluent-kafka (librdkafka) against the broker: records, idempotence, groups, administration, quotas, racks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from broker.testing import TestCluster, cluster

pytestmark = [pytest.mark.clients, pytest.mark.timeout(60)]
PATIENCE_S = 20.0


@pytest.fixture
def kafka() -> Iterator[TestCluster]:
    with cluster(3, {"t": {"partitions": 3, "replication_factor": 3}}) as c:
        yield c


def quiet(kafka: TestCluster, **options: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap,
        "log_level": 0,
        **{k.replace("_", "."): v for k, v in options.items()},
    }


def until(done: Callable[[], Any], step: Callable[[], Any]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while not (result := done()):
        assert time.monotonic() < end, "it did not happen in time"
        step()
    return result


def read(kafka: TestCluster, count: int, partitions: int = 3, **options: Any) -> list[Message]:
    consumer = Consumer(quiet(kafka, group_id="unused", enable_auto_commit=False, **options))
    consumer.assign([TopicPartition("t", p, OFFSET_BEGINNING) for p in range(partitions)])
    got: list[Message] = []

    def step() -> None:
        for message in consumer.consume(500, 0.2):
            assert message.error() is None, message.error()
            got.append(message)

    until(lambda: len(got) >= count, step)
    consumer.close()
    return got


@pytest.mark.parametrize("compression", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
def test_records_come_back_as_they_went(kafka: TestCluster, compression: str, idempotent: bool) -> None:
    producer = Producer(quiet(kafka, compression_type=compression, enable_idempotence=idempotent, linger_ms=5))
    failures: list[Any] = []
    for i in range(500):
        producer.produce(
            "t",
            b"v%d" % i,
            b"k%d" % i,
            headers=[("h", b"%d" % i), ("null", None)],
            timestamp=1_700_000_000_000 + i,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(20) == 0
    assert failures == []
    got = {m.key(): m for m in read(kafka, 500)}
    assert len(got) == 500
    for i in range(500):
        message = got[b"k%d" % i]
        assert (message.value(), message.headers()) == (b"v%d" % i, [("h", b"%d" % i), ("null", None)])
        assert message.timestamp()[1] == 1_700_000_000_000 + i


def test_a_group_shares_commits_and_hands_over(kafka: TestCluster) -> None:
    options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False}
    members = [Consumer(quiet(kafka, **options)) for _ in range(2)]
    seen: list[tuple[int, int]] = []

    def step() -> None:
        for member in members:
            seen.extend((m.partition(), m.offset()) for m in member.consume(100, 0.1) if m.error() is None)

    for member in members:
        member.subscribe(["t"])
    until(lambda: sorted(len(m.assignment()) for m in members) == [1, 2], step)
    kafka.produce("t", [f"v{i}" for i in range(60)])
    until(lambda: len(set(seen)) == 60, step)
    for member in members:
        member.commit(asynchronous=False)
        member.close()
    kafka.produce("t", [f"w{i}" for i in range(9)])
    before = len(seen)
    members = [Consumer(quiet(kafka, **options))]
    members[0].subscribe(["t"])
    until(lambda: len(seen) >= before + 9, step)
    members[0].close()
    assert len(set(seen)) == len(seen) == 69


def test_a_cooperative_group_rebalances_without_stopping_everybody(kafka: TestCluster) -> None:
    options = {"group_id": "g", "partition_assignment_strategy": "cooperative-sticky", "auto_offset_reset": "earliest"}
    members = [Consumer(quiet(kafka, **options)) for _ in range(3)]
    for member in members:
        member.subscribe(["t"])
    until(lambda: [len(m.assignment()) for m in members] == [1, 1, 1], lambda: [m.poll(0.1) for m in members])
    for member in members:
        member.close()


def test_L6_offsets_for_times_and_watermarks(kafka: TestCluster) -> None:
    producer = Producer(quiet(kafka))
    for i in range(10):
        producer.produce("t", b"v", partition=0, timestamp=1000 + i * 10)
    producer.flush(10)
    consumer = Consumer(quiet(kafka, group_id="unused"))
    assert consumer.get_watermark_offsets(TopicPartition("t", 0), 10) == (0, 10)
    [found] = consumer.offsets_for_times([TopicPartition("t", 0, 1035)], 10)
    assert found.offset == 4
    consumer.close()


def test_administration(kafka: TestCluster) -> None:
    admin = AdminClient(quiet(kafka))
    [made] = admin.create_topics([NewTopic("made", 4, 2, config={"max.message.bytes": "2000"})]).values()
    made.result(10)
    with pytest.raises(KafkaException, match="TOPIC_ALREADY_EXISTS"):
        next(iter(admin.create_topics([NewTopic("made", 1, 1)]).values())).result(10)
    listed = admin.list_topics("made", 10).topics["made"]
    assert (len(listed.partitions), len(listed.partitions[0].replicas)) == (4, 2)
    resource = ConfigResource(ResourceType.TOPIC, "made")
    [described] = admin.describe_configs([resource]).values()
    assert described.result(10)["max.message.bytes"].value == "2000"
    change = ConfigResource(
        ResourceType.TOPIC,
        "made",
        incremental_configs=[ConfigEntry("retention.ms", "1000", incremental_operation=AlterConfigOpType.SET)],
    )
    [altered] = admin.incremental_alter_configs([change]).values()
    altered.result(10)
    [described] = admin.describe_configs([resource]).values()
    assert described.result(10)["retention.ms"].value == "1000"
    [offset] = admin.list_offsets({TopicPartition("made", 0): OffsetSpec.latest()}).values()
    assert offset.result(10).offset == 0
    [cluster_] = [admin.describe_cluster().result(10)]
    assert len(cluster_.nodes) == 3
    [deleted] = admin.delete_topics(["made"]).values()
    deleted.result(10)
    assert "made" not in admin.list_topics(timeout=10).topics


def test_T1_the_client_is_told_the_throttle_time_that_the_broker_decided(kafka: TestCluster) -> None:
    kafka.set_quota(client_id="limited", producer_byte_rate=50_000)
    told: list[int] = []

    def statistics(text: str) -> None:
        told.extend(b["throttle"]["max"] for b in json.loads(text)["brokers"].values() if b.get("throttle"))

    options = quiet(kafka, client_id="limited", statistics_interval_ms=50, message_max_bytes=2_000_000)
    producer = Producer({**options, "stats_cb": statistics})
    for _ in range(6):
        producer.produce("t", b"x" * 100_000, partition=0)
        producer.flush(15)
    until(lambda: max(told, default=0) > 0, lambda: producer.poll(0.1))
    waits = [seen.reason.throttle_ms for seen in kafka.journal.throttles("Produce")]
    assert max(told) in waits


def test_T4_a_consumer_over_its_quota_loses_nothing(kafka: TestCluster) -> None:
    for _ in range(30):
        kafka.produce("t", ["x" * 10_000], 0)
    kafka.set_quota(client_id="limited", consumer_byte_rate=25_000)
    got = read(
        kafka, 30, client_id="limited", fetch_max_bytes=60_000, message_max_bytes=60_000, fetch_message_max_bytes=60_000
    )
    assert [m.offset() for m in got] == list(range(30))
    assert any(r.throttle_time_ms for r in kafka.journal.requests(api="Fetch", client_id="limited"))


def test_N4_a_consumer_with_a_rack_reads_there() -> None:
    config = {f"{i}.broker.rack": rack for i, rack in enumerate("abc")}
    config["replica.selector.class"] = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    with cluster(3, {"t": {"partitions": 1, "replication_factor": 3}}, config) as kafka:
        for i in range(20):
            kafka.produce("t", [f"{i}" * 1000], 0)
        assert len(read(kafka, 20, partitions=1, client_rack="b")) == 20
        served = {b: sum(r.response_bytes for r in kafka.journal.requests(api="Fetch", broker=b)) for b in range(3)}
        assert served[1] > 10 * (served[0] + served[2])


def test_a_producer_goes_on_when_a_leader_stops(kafka: TestCluster) -> None:
    producer = Producer(quiet(kafka, enable_idempotence=True, topic_metadata_refresh_interval_ms=1000))
    offsets: list[int] = []
    leader = kafka.partition("t", 0).leader
    for i in range(30):
        if i == 10:
            kafka.broker(leader).stop()
        if i == 20:
            kafka.broker(leader).start()
        producer.produce("t", b"%d" % i, partition=0, on_delivery=lambda error, m: offsets.append(m.offset()))
        producer.flush(20)
    assert offsets == list(range(30))
    assert [r.value for r in kafka.records("t", 0)] == [b"%d" % i for i in range(30)]
