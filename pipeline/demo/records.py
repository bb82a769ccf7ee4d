"""Step 1: kafka-python writes records with keys and headers in each compression kind, and reads every one back."""

from __future__ import annotations

from dataclasses import dataclass

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kafkaproto.pipeline.demo.brokers import Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same

RECORDS = 20_000
PARTITIONS = 6
KINDS = ("none", "gzip", "snappy", "lz4", "zstd")
FIRST_TIMESTAMP_MS = 1_700_000_000_000
STEP_MS = 50


@dataclass(frozen=True, slots=True)
class Record:
    """What was written, and what came back: equal or not."""

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


def topic_of(kind: str) -> str:
    return f"demo-{kind}"


def made(i: int) -> Record:
    """Record i: values compress about as well as text does."""
    value = f'{{"order": {i}, "item": "item-{i % 97}", "note": "{"please wrap it " * (i % 5)}"}}'.encode()
    headers = (("source", b"demo"), ("number", str(i).encode()))
    return Record(f"customer-{i % 1009}".encode(), value, headers, FIRST_TIMESTAMP_MS + i * STEP_MS)


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    cells = []
    wanted = [made(i) for i in range(RECORDS)]
    for kind in KINDS:
        brokers.create_topic(topic_of(kind), PARTITIONS)
        begun = progress.seconds
        _write(brokers, kind, wanted)
        written = progress.seconds
        partitions, equal = _compare(wanted, _read(brokers, kind))
        progress.note(
            f"{kind}: {RECORDS:,} records written in {written - begun:.1f} s, read and compared in {progress.seconds - written:.1f} s"
        )
        cells.append(
            same(f"{kind}: equal records, partitions", f"{RECORDS:,}, {PARTITIONS}", f"{equal:,}, {partitions}")
        )
    return cells


def _write(brokers: Brokers, kind: str, wanted: list[Record]) -> None:
    compression = None if kind == "none" else kind
    producer = KafkaProducer(
        bootstrap_servers=brokers.addresses, compression_type=compression, linger_ms=20, batch_size=65536
    )
    try:
        for record in wanted:
            producer.send(
                topic_of(kind),
                key=record.key,
                value=record.value,
                headers=list(record.headers),
                timestamp_ms=record.timestamp_ms,
            )
        producer.flush()
    finally:
        producer.close()


def _read(brokers: Brokers, kind: str) -> dict[int, list[Record]]:
    """By partition, in the order of the log."""
    found: dict[int, list[Record]] = {}
    consumer = KafkaConsumer(bootstrap_servers=brokers.addresses, max_poll_records=5000)
    try:
        topic = topic_of(kind)
        partitions = [TopicPartition(topic, i) for i in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        left = sum(consumer.end_offsets(partitions).values())
        while left > 0:
            polled = consumer.poll(10_000)
            if not polled:
                break
            for partition, batch in polled.items():
                left -= len(batch)
                found.setdefault(partition.partition, []).extend(
                    Record(r.key, r.value, tuple(r.headers), r.timestamp) for r in batch
                )
    finally:
        consumer.close()
    return found


def _compare(wanted: list[Record], found: dict[int, list[Record]]) -> tuple[int, int]:
    """(partitions with records, records that are equal). Order counts: records of one key lie in one partition as they were sent."""
    expected: dict[bytes, list[Record]] = {}
    for record in wanted:
        expected.setdefault(record.key, []).append(record)
    seen: dict[bytes, list[Record]] = {}
    for index in sorted(found):
        for record in found[index]:
            seen.setdefault(record.key, []).append(record)
    equal = 0
    for key, records in expected.items():
        got = seen.pop(key, [])
        equal += sum(a == b for a, b in zip(records, got, strict=False)) - max(0, len(got) - len(records))
    return len(found), equal - sum(map(len, seen.values()))
