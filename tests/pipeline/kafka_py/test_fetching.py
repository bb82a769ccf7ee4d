"""A range of offsets is read whole: past moving leaders, gaps, aborted transactions and followers; what is lost is lost loudly."""

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
    given = {name.replace("__", "."): value for name, value in options.items()}
    base = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": "t"}
    return source_settings({**base, **QUICK, **given}, streaming=False)


def offsets(made: SourceSettings, topic: str, start: int, end: int) -> list[int]:
    with Client(made.client) as client:
        pieces = fetch(client, made, Range(topic, 0, start, end))
        found = [r.offset for entry, wanted in pieces for r in records(entry.view) if r.offset >= wanted]
    return [offset for offset in found if offset < end]


def fill(kafka: TestCluster, topic: str, count: int, each: int = 10) -> None:
    for i in range(count):
        kafka.produce(topic, [NewRecord(b"v%d" % i, None, 1000)] * each, 0)


def test_a_range_is_read_whole_and_nothing_else_is_asked_for(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 20)
    made = settings(kafka, kafka__max__partition__fetch__bytes="300", kafka__client__id=topic)
    assert offsets(made, topic, 15, 167) == list(range(15, 167))
    assert len(kafka.journal.requests(api="Fetch", client_id=topic)) == 16


@pytest.mark.rule("N-4")
def test_who_says_its_rack_reads_from_the_replica_in_it(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 20)
    leader = kafka.partition(topic, 0).leader
    rack = "abc"[(leader + 1) % 3]
    made = settings(kafka, kafka__client__rack=rack, kafka__client__id=topic)
    assert offsets(made, topic, 0, 200) == list(range(200))
    asked = kafka.journal.requests(api="Fetch", client_id=topic)
    assert asked[0].broker_id == leader and {r.broker_id for r in asked[1:]} == {(leader + 1) % 3}


def test_a_follower_that_goes_away_is_left_for_the_leader(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 40)
    follower = (kafka.partition(topic, 0).leader + 1) % 3
    made = settings(kafka, kafka__client__rack="abc"[follower], kafka__max__partition__fetch__bytes="300")
    found = []
    with Client(made.client) as client:
        for entry, _ in fetch(client, made, Range(topic, 0, 0, 400)):
            found += [r.offset for r in records(entry.view)]
            if len(found) == 50:
                kafka.broker(follower).stop()
    kafka.broker(follower).start()
    assert found == list(range(400))


def test_a_leader_that_moves_is_followed(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 40)
    leader = kafka.partition(topic, 0).leader
    made = settings(kafka, kafka__max__partition__fetch__bytes="300")
    found = []
    with Client(made.client) as client:
        for entry, _ in fetch(client, made, Range(topic, 0, 0, 400)):
            found += [r.offset for r in records(entry.view)]
            if len(found) == 50:
                kafka.elect(topic, 0, (leader + 1) % 3)
            if len(found) == 200:
                kafka.broker((leader + 1) % 3).stop()
    kafka.broker((leader + 1) % 3).start()
    assert found == list(range(400))


def begins_at(kafka: TestCluster, topic: str, offset: int) -> None:
    leader = kafka.partition(topic, 0).leader
    kafka.run_in_loop(lambda: kafka.state.nodes[leader].replicas.partitions[topic, 0].log.raise_log_start(offset))


def test_records_that_are_gone_fail_the_read_or_are_passed_over(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 3)
    begins_at(kafka, topic, 12)
    made = settings(kafka)
    with pytest.raises(DataLoss, match="begins at 12, it was to be read from 5"):
        offsets(made, topic, 5, 30)
    assert offsets(replace(made, fail_on_data_loss=False), topic, 5, 30) == list(range(12, 30))
    assert offsets(replace(made, fail_on_data_loss=False), topic, 5, 9) == []


def test_records_that_were_never_there_fail_the_read_or_are_passed_over(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 3)
    made = settings(kafka)
    tolerant = replace(made, fail_on_data_loss=False)
    with pytest.raises(DataLoss, match="ends at 30, it was to be read up to 50"):
        offsets(made, topic, 5, 50)
    assert offsets(tolerant, topic, 5, 50) == list(range(5, 30))
    with pytest.raises(DataLoss, match="ends at 30, it was to be read from 40"):
        offsets(made, topic, 40, 50)
    assert offsets(tolerant, topic, 40, 50) == []


def test_a_topic_that_is_gone_fails_the_read_or_is_passed_over(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 40)
    made = settings(kafka, kafka__max__partition__fetch__bytes="300", kafka__default__api__timeout__ms="2000")
    with Client(made.client) as client:
        read = fetch(client, made, Range(topic, 0, 0, 400))
        next(read)
        kafka.delete_topic(topic)
        with pytest.raises(DataLoss, match="is gone"):
            list(read)
    kafka.create_topic(topic, 1, 3)
    kafka.delete_topic(topic)
    assert offsets(replace(made, fail_on_data_loss=False), topic, 0, 400) == []


@pytest.mark.rule("T-1")
def test_a_throttle_is_waited_for(kafka: TestCluster, topic: str) -> None:
    fill(kafka, topic, 20)
    kafka.force_throttle(300, api="Fetch", client_id=topic, times=2)
    made = settings(
        kafka,
        kafka__client__id=topic,
        kafka__request__timeout__ms="200",
        kafka__max__partition__fetch__bytes="300",
    )
    assert offsets(made, topic, 0, 200) == list(range(200))
    assert len(kafka.journal.throttles("Fetch", topic)) == 2


# ---- with answers made by hand -----------------------------------------------------------------------------------------------


class Scripted:
    """A client and its one connection, which answers fetches with what it is given, in turn."""

    def __init__(self, made: SourceSettings, *answers: PartitionData) -> None:
        self.settings = made.client
        self.answers = list(answers)
        self.asked: list[Any] = []
        self.forgotten = False

    def leader(self, partition: Any) -> int:
        return 0

    def connection(self, broker_id: int) -> Scripted:
        return self

    def send(self, key: ApiKey, request: Any) -> None:
        self.asked.append(request.topics[0].partitions[0].fetch_offset)

    def receive(self) -> FetchResponse:
        return FetchResponse(responses=[FetchableTopicResponse("t", partitions=[self.answers.pop(0)])])

    def forget(self, connection: Any) -> None:
        self.forgotten = True

    def close(self) -> None: ...

    def back_off(self) -> None: ...


def read(client: Scripted, made: SourceSettings, end: int) -> list[int]:
    return [r.offset for entry, _ in fetch(client, made, Range("t", 0, 0, end)) for r in records(entry.view)]  # type: ignore[arg-type]


def made(**options: str) -> SourceSettings:
    base = {"kafka.bootstrap.servers": "nowhere:1", "subscribe": "t", "fetchOffset.retryIntervalMs": "0"}
    return source_settings({**base, **{k.replace("__", "."): v for k, v in options.items()}}, streaming=False)


def data(*parts: bytes, aborted: list[AbortedTransaction] | None = None, end: int = 100) -> PartitionData:
    return PartitionData(
        high_watermark=end, last_stable_offset=end, aborted_transactions=aborted, records=b"".join(parts)
    )


def sent(base: int, count: int, producer: int = -1) -> bytes:
    """A batch, part of a transaction if a producer is given."""
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


def test_only_what_is_committed_is_read_when_that_is_asked_for() -> None:
    committed = made(kafka__isolation__level="read_committed")
    assert read(Scripted(committed, data(*MIXED, aborted=ABORTED)), committed, 15) == [2, 3, 4, 5, 7, 8, 14]


def test_else_aborted_records_are_read_and_markers_never() -> None:
    uncommitted = made()
    assert read(Scripted(uncommitted, data(*MIXED, aborted=None)), uncommitted, 15) == [
        *range(6), 7, 8, 10, 12, 14,
    ]  # fmt: skip


def test_a_transaction_that_was_aborted_before_the_answer_begins_is_told_again_and_left_out() -> None:
    committed = made(kafka__isolation__level="read_committed")
    answers = (
        data(sent(0, 3, 7), aborted=[AbortedTransaction(7, 0)]),
        data(sent(3, 3, 7), marker(6, 7, False), sent(7, 1), aborted=[AbortedTransaction(7, 0)]),
    )
    assert read(Scripted(committed, *answers), committed, 8) == [7]


def test_a_range_that_ends_in_markers_and_gaps_ends() -> None:
    committed = made(kafka__isolation__level="read_committed")
    gap = build_batch([NewRecord(b"v")], base_offset=3, last_offset_delta=6)
    client = Scripted(
        committed,
        data(sent(0, 2, 7), marker(2, 7, False), aborted=[AbortedTransaction(7, 0)]),
        data(gap),
        data(marker(10, 9, True)),
    )
    assert read(client, committed, 11) == [3]
    assert client.asked == [0, 3, 10] and not client.forgotten


def test_the_next_request_is_on_its_way_before_the_records_are_read() -> None:
    uncommitted = made()
    client = Scripted(uncommitted, data(sent(0, 5)), data(sent(5, 5)))
    reading = fetch(client, uncommitted, Range("t", 0, 0, 10))  # type: ignore[arg-type]
    next(reading)
    assert client.asked == [0, 5]
    reading.close()  # type: ignore[attr-defined]
    assert client.forgotten, "an answer is on its way that nobody will read"


def test_a_batch_whose_checksum_is_wrong_is_not_read_unless_nobody_looks() -> None:
    broken = bytearray(sent(0, 1))
    broken[-2] ^= 1
    with pytest.raises(DecodeError, match="crc"):
        read(Scripted(made(), data(bytes(broken))), made(), 1)
    lenient = made(kafka__check__crcs="false")
    assert read(Scripted(lenient, data(bytes(broken))), lenient, 1) == [0]


def test_an_error_that_does_not_pass_is_told() -> None:
    refused = PartitionData(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(KafkaError, match="fetching from t-0 at offset 0: TOPIC_AUTHORIZATION_FAILED"):
        read(Scripted(made(), refused), made(), 1)


def test_a_record_that_never_comes_ends_the_read_by_its_option() -> None:
    impatient = made(kafkaConsumer__pollTimeoutMs="1")
    with pytest.raises(TimeoutError, match=r"at offset 0 .*option kafkaConsumer\.pollTimeoutMs"):
        read(Scripted(impatient, *[data()] * 1_000_000), impatient, 1)


def test_time_that_passes_while_spark_works_is_no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    patient = made(kafkaConsumer__pollTimeoutMs="1000")
    reading = fetch(Scripted(patient, data(sent(0, 1)), data(), data(sent(1, 1))), patient, Range("t", 0, 0, 2))  # type: ignore[arg-type]
    next(reading)
    now[0] += 3600
    assert [entry.header.last_offset for entry, _ in reading] == [1]
