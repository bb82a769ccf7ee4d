"""Step 1 of the demo: kafka-python writes records with keys and headers in each compression kind, and reads every one back."""

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
    """The content of a record, to compare the records that were written with the records that were read.

    headers: (key, value) of each header. timestamp_ms: time in ms since the epoch.
    """

    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]
    timestamp_ms: int


def topic_of(kind: str) -> str:
    return f"demo-{kind}"


def record_number(i: int) -> Record:
    """Return the record with number `i`, which the demo writes. Its value compresses about as well as text."""
    value = f'{{"order": {i}, "item": "item-{i % 97}", "note": "{"please wrap it " * (i % 5)}"}}'.encode()
    headers = (("source", b"demo"), ("number", str(i).encode()))
    return Record(f"customer-{i % 1009}".encode(), value, headers, FIRST_TIMESTAMP_MS + i * STEP_MS)


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    cells = []
    records = [record_number(i) for i in range(RECORDS)]
    for kind in KINDS:
        brokers.create_topic(topic_of(kind), PARTITIONS)
        start = progress.seconds
        _write(brokers, kind, records)
        write_end = progress.seconds
        partitions, equal = _compare(records, _read(brokers, kind))
        progress.note(
            f"{kind}: {RECORDS:,} records written in {write_end - start:.1f} s, read and compared in {progress.seconds - write_end:.1f} s"
        )
        cells.append(
            same(f"{kind}: equal records, partitions", f"{RECORDS:,}, {PARTITIONS}", f"{equal:,}, {partitions}")
        )
    return cells


def _write(brokers: Brokers, kind: str, records: list[Record]) -> None:
    compression = None if kind == "none" else kind
    producer = KafkaProducer(
        bootstrap_servers=brokers.addresses, compression_type=compression, linger_ms=20, batch_size=65536
    )
    try:
        for record in records:
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
    """Return the records of a topic by partition, in the order of the log. kind: the compression kind, which selects the topic."""
    by_partition: dict[int, list[Record]] = {}
    consumer = KafkaConsumer(bootstrap_servers=brokers.addresses, max_poll_records=5000)
    try:
        topic = topic_of(kind)
        partitions = [TopicPartition(topic, i) for i in sorted(consumer.partitions_for_topic(topic) or ())]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        remaining = sum(consumer.end_offsets(partitions).values())
        while remaining > 0:
            polled = consumer.poll(10_000)
            if not polled:
                break
            for partition, batch in polled.items():
                remaining -= len(batch)
                by_partition.setdefault(partition.partition, []).extend(
                    Record(r.key, r.value, tuple(r.headers), r.timestamp) for r in batch
                )
    finally:
        consumer.close()
    return by_partition


def _compare(records_sent: list[Record], by_partition: dict[int, list[Record]]) -> tuple[int, int]:
    """Return (number of partitions with records, number of sent records that were read back unchanged and in order).

    The records of each key are compared separately. Each record that was read in addition to the sent records lowers the second number by one.
    by_partition: maps a partition to the records that were read from it.
    """
    sent_by_key: dict[bytes, list[Record]] = {}
    for record in records_sent:
        sent_by_key.setdefault(record.key, []).append(record)
    read_by_key: dict[bytes, list[Record]] = {}
    for index in sorted(by_partition):
        for record in by_partition[index]:
            read_by_key.setdefault(record.key, []).append(record)
    equal = 0
    for key, sent in sent_by_key.items():
        read = read_by_key.pop(key, [])
        equal += sum(a == b for a, b in zip(sent, read, strict=False)) - max(0, len(read) - len(sent))
    return len(by_partition), equal - sum(map(len, read_by_key.values()))
