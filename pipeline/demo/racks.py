"""Step 3 of the demo: a consumer reads from the closest replica. The client's statistics show how many bytes each broker sent (KIP-392)."""

from __future__ import annotations

import json
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from kafkaproto.pipeline.demo.brokers import RACKS, Brokers
from kafkaproto.pipeline.demo.table import Cell, Progress, same, within

TOPIC = "demo-racks"
PARTITIONS = 3
RECORDS = 3_000
VALUE_BYTES = 1_000
POLL_SECONDS = 10.0


def run(brokers: Brokers, progress: Progress) -> list[Cell]:
    brokers.create_topic(TOPIC, PARTITIONS, assignments={i: [i, (i + 1) % 3, (i + 2) % 3] for i in range(PARTITIONS)})
    _fill(brokers)
    cells = []
    count, shares = _read(brokers, None)
    progress.note(f"without a rack: {_bytes(shares)}")
    cells += [
        same("without a rack: records", RECORDS, count),
        within("without a rack: largest share of bytes from one broker", 30, 45, max(_percent(shares)), "%"),
    ]
    count, shares = _read(brokers, "b")
    progress.note(f"client.rack=b: {_bytes(shares)}")
    cells += [
        same("client.rack=b: records", RECORDS, count),
        within("client.rack=b: bytes from the broker in rack b", 95, 100, _percent(shares)[RACKS.index("b")], "%", 1),
    ]
    return cells


def _fill(brokers: Brokers) -> None:
    producer = Producer({"bootstrap.servers": brokers.bootstrap, "linger.ms": 20})
    for i in range(RECORDS):
        producer.produce(TOPIC, value=b"%0*d" % (VALUE_BYTES, i), partition=i % PARTITIONS)
    producer.flush(30)


def _read(brokers: Brokers, rack: str | None) -> tuple[int, list[int]]:
    """Read the topic of step 3 of the demo with one consumer.

    Returns (number of distinct records received, number of bytes that each broker sent, by broker id). rack: the consumer's rack, or None for a
    consumer without `client.rack`.
    """
    statistics: dict[str, Any] = {}

    def store(text: str) -> None:
        statistics.update(json.loads(text))

    settings: dict[str, Any] = {
        "bootstrap.servers": brokers.bootstrap,
        "group.id": "demo-racks",
        "enable.auto.commit": False,
        "statistics.interval.ms": 100,
        "stats_cb": store,
    }
    if rack is not None:
        settings["client.rack"] = rack
    consumer = Consumer(settings)
    offsets: set[tuple[int | None, int | None]] = set()
    try:
        consumer.assign([TopicPartition(TOPIC, i, OFFSET_BEGINNING) for i in range(PARTITIONS)])
        while len(offsets) < RECORDS:
            message = consumer.poll(POLL_SECONDS)
            if message is None:
                break
            if message.error() is None:
                offsets.add((message.partition(), message.offset()))
        statistics.clear()  # the next statistics include everything that was read
        while not statistics:
            consumer.poll(0.1)
    finally:
        consumer.close()
    shares = [0] * len(RACKS)
    for broker in statistics["brokers"].values():
        if broker["nodeid"] >= 0:
            shares[broker["nodeid"]] += broker["rxbytes"]
    return len(offsets), shares


def _percent(shares: list[int]) -> list[float]:
    return [100 * share / sum(shares) for share in shares]


def _bytes(shares: list[int]) -> str:
    return ", ".join(f"broker {i} in rack {rack} sent {shares[i]:,} B" for i, rack in enumerate(RACKS))
