"""Reading a range of offsets with kafka_py: leader changes, gaps, aborted transactions, followers and lost data."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.messages.fetch import AbortedTransaction, FetchableTopicResponse, FetchResponse, PartitionData
from kafkaproto.pipeline.kafka_py.client import Client
from kafkaproto.pipeline.kafka_py.errors import DataLoss, KafkaError
from kafkaproto.pipeline.kafka_py.fetching import fetch
from kafkaproto.pipeline.kafka_py.offsets import Range
from kafkaproto.pipeline.kafka_py.options import SourceSettings, source_settings
from kafkaproto.records.batch import TRANSACTIONAL, NewRecord, build_batch
from kafkaproto.records.control import build_end_txn_marker
from kafkaproto.records.entries import records
from kafkaproto.testing import TestCluster, cluster

SELECTOR = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
QUICK = {"kafka.fetch.max.wait.ms": "20", "fetchOffset.retryIntervalMs": "20", "kafka.retry.backoff.ms": "10"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[TestCluster]:
    config = {f"{i}.broker.rack": rack for i, rack in enumerate("abc")}
    with cluster(3, None, {**config, "replica.selector.class": SELECTOR}) as c:
        yield c


@pytest.fixture
def topic(kafka: TestCluster, request: pytest.FixtureRequest) -> str:
    name = f"t{abs(hash(request.node.name))}"
    kafka.create_topic(name, 1, 3)
    return name


def settings(kafka: TestCluster, **options: str) -> SourceSettings:
    dotted = {name.replace("__", "."): value for name, value in options.items()}
    base = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "t"}
    return source_settings({**base, **QUICK, **dotted}, streaming=False)


def offsets(source: SourceSettings, topic: str, start: int, end: int) -> list[int]:
    with Client(source.client) as client:
        pieces = fetch(client, source, Range(topic, 0, start, end))
        offsets_read = [
            r.offset for entry, start_offset in pieces for r in records(entry.view) if r.offset >= start_offset
        ]
    return [offset for offset in offsets_read if offset < end]


def fill(kafka: TestCluster, topic: str, count: int, each: int = 10) -> None:
    for i in range(count):
        kafka.produce(topic, [NewRecord(b"v%d" % i, None, 1000)] * each, 0)


def test_spark_kafka_py_reads_offsets_15_to_166_in_16_fetches_with_a_300_byte_limit(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 20)
    source = settings(kafka, kafka__max__partition__fetch__bytes="300", kafka__client__id=topic)
    assert offsets(source, topic, 15, 167) == list(range(15, 167))
    assert len(kafka.journal.requests(api="Fetch", client_id=topic)) == 16


@pytest.mark.rule("N-4")
def test_spark_kafka_py_with_a_client_rack_reads_from_the_replica_in_that_rack(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 20)
    leader = kafka.partition(topic, 0).leader
    rack = "abc"[(leader + 1) % 3]
    source = settings(kafka, kafka__client__rack=rack, kafka__client__id=topic)
    assert offsets(source, topic, 0, 200) == list(range(200))
    fetches = kafka.journal.requests(api="Fetch", client_id=topic)
    assert fetches[0].broker_id == leader and {r.broker_id for r in fetches[1:]} == {(leader + 1) % 3}


def test_spark_kafka_py_switches_to_the_leader_when_the_follower_in_its_rack_stops(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 40)
    follower = (kafka.partition(topic, 0).leader + 1) % 3
    source = settings(kafka, kafka__client__rack="abc"[follower], kafka__max__partition__fetch__bytes="300")
    offsets_read = []
    with Client(source.client) as client:
        for entry, _ in fetch(client, source, Range(topic, 0, 0, 400)):
            offsets_read += [r.offset for r in records(entry.view)]
            if len(offsets_read) == 50:
                kafka.broker(follower).stop()
    kafka.broker(follower).start()
    assert offsets_read == list(range(400))


def test_spark_kafka_py_reads_all_records_if_a_leader_changes_and_a_broker_stops(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 40)
    leader = kafka.partition(topic, 0).leader
    source = settings(kafka, kafka__max__partition__fetch__bytes="300")
    offsets_read = []
    with Client(source.client) as client:
        for entry, _ in fetch(client, source, Range(topic, 0, 0, 400)):
            offsets_read += [r.offset for r in records(entry.view)]
            if len(offsets_read) == 50:
                kafka.elect(topic, 0, (leader + 1) % 3)
            if len(offsets_read) == 200:
                kafka.broker((leader + 1) % 3).stop()
    kafka.broker((leader + 1) % 3).start()
    assert offsets_read == list(range(400))


def begins_at(kafka: TestCluster, topic: str, offset: int) -> None:
    leader = kafka.partition(topic, 0).leader
    kafka.run_in_loop(lambda: kafka.state.nodes[leader].replicas.partitions[topic, 0].log.raise_log_start(offset))


def test_spark_kafka_py_read_of_deleted_records_fails_unless_data_loss_is_allowed(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 3)
    begins_at(kafka, topic, 12)
    source = settings(kafka)
    with pytest.raises(DataLoss, match="begins at offset 12, but the query reads from offset 5"):
        offsets(source, topic, 5, 30)
    assert offsets(replace(source, fail_on_data_loss=False), topic, 5, 30) == list(range(12, 30))
    assert offsets(replace(source, fail_on_data_loss=False), topic, 5, 9) == []


def test_spark_kafka_py_read_beyond_the_log_end_fails_unless_data_loss_is_allowed(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 3)
    source = settings(kafka)
    tolerant = replace(source, fail_on_data_loss=False)
    with pytest.raises(DataLoss, match="ends at offset 30, but the query reads up to offset 50"):
        offsets(source, topic, 5, 50)
    assert offsets(tolerant, topic, 5, 50) == list(range(5, 30))
    with pytest.raises(DataLoss, match="ends at offset 30, but the query reads from offset 40"):
        offsets(source, topic, 40, 50)
    assert offsets(tolerant, topic, 40, 50) == []


def test_spark_kafka_py_read_of_a_deleted_topic_fails_unless_data_loss_is_allowed(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 40)
    source = settings(kafka, kafka__max__partition__fetch__bytes="300", kafka__default__api__timeout__ms="2000")
    with Client(source.client) as client:
        read = fetch(client, source, Range(topic, 0, 0, 400))
        next(read)
        kafka.delete_topic(topic)
        with pytest.raises(DataLoss, match="no longer exists"):
            list(read)
    kafka.create_topic(topic, 1, 3)
    kafka.delete_topic(topic)
    assert offsets(replace(source, fail_on_data_loss=False), topic, 0, 400) == []


@pytest.mark.rule("T-1")
def test_spark_kafka_py_reads_all_records_if_two_fetches_are_throttled_for_300_ms(
    kafka: TestCluster, topic: str
) -> None:
    fill(kafka, topic, 20)
    kafka.force_throttle(300, api="Fetch", client_id=topic, times=2)
    source = settings(
        kafka,
        kafka__client__id=topic,
        kafka__request__timeout__ms="200",
        kafka__max__partition__fetch__bytes="300",
    )
    assert offsets(source, topic, 0, 200) == list(range(200))
    assert len(kafka.journal.throttles("Fetch", topic)) == 2


# ---- with scripted responses -------------------------------------------------------------------------------------------------


class Scripted:
    """A client and its only connection, which answers fetches with the given responses in turn."""

    def __init__(self, source: SourceSettings, *answers: PartitionData) -> None:
        self.settings = source.client
        self.answers = list(answers)
        self.offsets: list[Any] = []
        self.forgotten = False

    def leader(self, partition: Any) -> int:
        return 0

    def connection(self, broker_id: int) -> Scripted:
        return self

    def send(self, key: ApiKey, request: Any) -> None:
        self.offsets.append(request.topics[0].partitions[0].fetch_offset)

    def receive(self) -> FetchResponse:
        return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[self.answers.pop(0)])])

    def forget(self, connection: Any) -> None:
        self.forgotten = True

    def close(self) -> None: ...

    def back_off(self) -> None: ...


def read(client: Scripted, source: SourceSettings, end: int) -> list[int]:
    return [r.offset for entry, _ in fetch(client, source, Range("t", 0, 0, end)) for r in records(entry.view)]  # type: ignore[arg-type]


def offline_source(**options: str) -> SourceSettings:
    base = {"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t", "fetchOffset.retryIntervalMs": "0"}
    return source_settings({**base, **{k.replace("__", "."): v for k, v in options.items()}}, streaming=False)


def data(*parts: bytes, aborted: list[AbortedTransaction] | None = None, end: int = 100) -> PartitionData:
    return PartitionData(
        high_watermark=end, last_stable_offset=end, aborted_transactions=aborted, records=b"".join(parts)
    )


def sent(base: int, count: int, producer: int = -1) -> bytes:
    """Return a batch, part of a transaction if a producer is given."""
    ids = {"producer_id": producer, "producer_epoch": 0, "base_sequence": base, "attributes": TRANSACTIONAL}
    return build_batch([NewRecord(b"v")] * count, base_offset=base, **(ids if producer >= 0 else {}))


def marker(offset: int, producer: int, committed: bool) -> bytes:
    return build_end_txn_marker(
        committed, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp=1, base_offset=offset
    )


MIXED = (
    sent(0, 2, 7),
    sent(2, 2, 8),
    sent(4, 2),
    marker(6, 7, False),
    sent(7, 2, 7),
    marker(9, 8, True),
    sent(10, 1, 8),
    marker(11, 7, True),
    sent(12, 1, 8),
    marker(13, 8, False),
    sent(14, 1, 8),
)
ABORTED = [AbortedTransaction(8, 10), AbortedTransaction(7, 0)]


def test_spark_kafka_py_with_read_committed_returns_only_committed_records() -> None:
    committed = offline_source(kafka__isolation__level="read_committed")
    assert read(Scripted(committed, data(*MIXED, aborted=ABORTED)), committed, 15) == [2, 3, 4, 5, 7, 8, 14]


def test_spark_kafka_py_with_read_uncommitted_returns_aborted_records_but_no_markers() -> None:
    uncommitted = offline_source()
    assert read(Scripted(uncommitted, data(*MIXED, aborted=None)), uncommitted, 15) == [
        *range(6), 7, 8, 10, 12, 14,
    ]  # fmt: skip


def test_spark_kafka_py_skips_aborted_records_whose_marker_is_in_a_later_response() -> None:
    committed = offline_source(kafka__isolation__level="read_committed")
    responses = (
        data(sent(0, 3, 7), aborted=[AbortedTransaction(7, 0)]),
        data(sent(3, 3, 7), marker(6, 7, False), sent(7, 1), aborted=[AbortedTransaction(7, 0)]),
    )
    assert read(Scripted(committed, *responses), committed, 8) == [7]


def test_spark_kafka_py_read_ends_if_the_last_offsets_of_its_range_have_no_records() -> None:
    committed = offline_source(kafka__isolation__level="read_committed")
    gap = build_batch([NewRecord(b"v")], base_offset=3, last_offset_delta=6)
    client = Scripted(
        committed,
        data(sent(0, 2, 7), marker(2, 7, False), aborted=[AbortedTransaction(7, 0)]),
        data(gap),
        data(marker(10, 9, True)),
    )
    assert read(client, committed, 11) == [3]
    assert client.offsets == [0, 3, 10] and not client.forgotten


def test_spark_kafka_py_sends_the_next_fetch_before_it_processes_fetched_records() -> None:
    uncommitted = offline_source()
    client = Scripted(uncommitted, data(sent(0, 5)), data(sent(5, 5)))
    reading = fetch(client, uncommitted, Range("t", 0, 0, 10))  # type: ignore[arg-type]
    next(reading)
    assert client.offsets == [0, 5]
    reading.close()  # type: ignore[attr-defined]
    assert client.forgotten, "a response is in flight that the client will not read"


def test_spark_kafka_py_rejects_a_batch_with_a_wrong_crc_unless_check_crcs_is_false() -> None:
    broken = bytearray(sent(0, 1))
    broken[-2] ^= 1
    with pytest.raises(DecodeError, match="crc"):
        read(Scripted(offline_source(), data(bytes(broken))), offline_source(), 1)
    lenient = offline_source(kafka__check__crcs="false")
    assert read(Scripted(lenient, data(bytes(broken))), lenient, 1) == [0]


def test_spark_kafka_py_read_fails_if_a_fetch_returns_an_error_that_is_not_retriable() -> None:
    refused = PartitionData(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match=r"rejected the fetch from t-0 at offset 0 .*: TOPIC_AUTHORIZATION_FAILED"):
        read(Scripted(offline_source(), refused), offline_source(), 1)


def test_spark_kafka_py_read_times_out_after_poll_timeout_ms_without_a_record() -> None:
    impatient = offline_source(kafkaConsumer__pollTimeoutMs="1")
    with pytest.raises(TimeoutError, match=r"at offset 0 .*option kafkaConsumer\.pollTimeoutMs"):
        read(Scripted(impatient, *[data()] * 1_000_000), impatient, 1)


def test_time_that_spark_spends_on_records_does_not_count_towards_the_poll_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patient = offline_source(kafkaConsumer__pollTimeoutMs="1000")
    reading = fetch(Scripted(patient, data(sent(0, 1)), data(), data(sent(1, 1))), patient, Range("t", 0, 0, 2))  # type: ignore[arg-type]
    next(reading)
    now[0] += 3600
    assert [entry.header.last_offset for entry, _ in reading] == [1]
