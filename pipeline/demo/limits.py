"""Step 5 of the demo: fetch size limits that are smaller than a record. The consumer still gets one batch per fetch (KIP-74)."""

from __future__ import annotations

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from kafkaproto.pipeline.demo.brokers import Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same

TOPIC = "demo-limits"
RECORDS = 40
VALUE_BYTES = 5_000
MAX_BYTES = 100


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    brokers.create_topic(TOPIC, 1)
    producer = KafkaProducer(bootstrap_servers=brokers.addresses)
    try:
        for i in range(RECORDS):
            producer.send(TOPIC, value=_value(i)).get(10)  # one at a time: each is a batch of its own
    finally:
        producer.close()
    consumer = KafkaConsumer(
        bootstrap_servers=brokers.addresses, max_partition_fetch_bytes=MAX_BYTES, fetch_max_bytes=MAX_BYTES
    )
    values: list[bytes] = []
    try:
        partition = TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning()
        while len(values) < RECORDS:
            polled = consumer.poll(10_000)
            if not polled:
                break
            values += [record.value for record in polled[partition]]
        metrics = consumer.metrics()["consumer-fetch-manager-metrics"]
    finally:
        consumer.close()
    progress.note(f"max_bytes={MAX_BYTES}: received {len(values)} records of {VALUE_BYTES:,} B, one per fetch")
    return [
        same(f"records with max_bytes={MAX_BYTES}", RECORDS, sum(value == _value(i) for i, value in enumerate(values))),
        same("records per fetch", "1.00", f"{metrics['records-per-request-avg']:.2f}"),
    ]


def _value(i: int) -> bytes:
    return b"%0*d" % (VALUE_BYTES, i)
