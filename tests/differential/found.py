"""Reduced request sequences that once got different responses from the real broker. Each is a test named after the fixed bug."""

from __future__ import annotations

from typing import Any

from tests.differential.request_sequences import NOBODY, TOPIC, RequestSequence, Step


def _produce(version: int = 9, acks: int = 1, partition: int = 0, **batch: Any) -> Step:
    whole = {"values": [30], "codec": 0, **batch}
    return "produce", {"topic": TOPIC, "partition": partition, "version": version, "acks": acks, "batch": whole}


def _asked(
    partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, topic: str = TOPIC, last_epoch: int = -1
) -> dict[str, Any]:
    partition_request = {"topic": topic, "partition": partition, "offset": offset, "max": max_bytes}
    return partition_request | {"epoch": -1, "last_epoch": last_epoch}


def _fetch(version: int, *partitions: dict[str, Any], **more: Any) -> Step:
    usual = {"max_bytes": 1 << 20, "min_bytes": 0, "isolation": 0, "session": "none", "forgotten": []}
    return "fetch", {"version": version, "partitions": list(partitions), "replica_id": -1, "rack": "", **usual, **more}


FOUND = {
    "a recompressed batch keeps its log append time": RequestSequence(
        configs={"compression.type": "zstd"},
        steps=(_produce(5, values=[5, 5], codec=2, damage="log append time"), _fetch(15, _asked())),
    ),
    "a second batch is rejected before acks is checked": RequestSequence(
        steps=(_produce(5, 2, damage="cut"), _produce(9, 2)),
    ),
    "an invalid batch length rejects the whole request": RequestSequence(
        steps=(_produce(4, 2, damage="magic 3"), _produce(5, partition=2, damage="length tiny")),
    ),
    "transactional batches need a transactional id": RequestSequence(
        steps=(_produce(9, damage="transactional"), _produce(3, 2, damage="transactional")),
    ),
    "an unknown codec is UNKNOWN_SERVER_ERROR": RequestSequence(
        steps=(_produce(4, codec=1, damage="unknown codec"), _produce(9, codec=1, damage="unknown codec")),
    ),
    "unknown topic ids are reported before other errors": RequestSequence(
        steps=(_fetch(14, _asked(0), _asked(2), session="next"), _fetch(17, _asked(topic=NOBODY), session="next")),
    ),
    "errors found without a log list no aborted transactions": RequestSequence(
        steps=(_fetch(4, _asked(2), isolation=1), _fetch(13, _asked(topic=NOBODY)), _fetch(12, _asked(topic=NOBODY))),
    ),
    "a zstd topic lists no aborted transactions for old versions": RequestSequence(
        configs={"compression.type": "zstd"}, steps=(_fetch(6, _asked()), _fetch(5, _asked(), isolation=1)),
    ),
    "diverging epochs list no aborted transactions": RequestSequence(
        steps=(_produce(), _fetch(17, _asked(offset=1, last_epoch=0), _asked(offset=8, last_epoch=0), isolation=1)),
    ),
    "a first batch beyond the limit lists no aborted transactions": RequestSequence(
        steps=(_produce(), _produce(partition=1), _fetch(5, _asked(1), _asked(0, max_bytes=1), isolation=1)),
    ),
    "followers get no list of aborted transactions": RequestSequence(
        3, steps=(_fetch(10, _asked(), isolation=1, replica_id=2),),
    ),
    "a converted lz4 batch is no larger than Kafka's": RequestSequence(
        steps=(
            _produce(3, partition=1, values=[30, 150], codec=2),
            _produce(3, partition=1, codec=3),
            _fetch(3, _asked(1)),
        ),
    ),
    "a fetch in a follower's name has no effect after the follower's next fetch": RequestSequence(
        3,
        steps=(
            _produce(acks=-1),
            _fetch(10, _asked(), replica_id=2),
            ("delete", {"version": 0, "partition": 0, "offset": 0}),
            ("list_offsets", {"version": 7, "topic": TOPIC, "partition": 0, "timestamp": -3, "epoch": -1, "isolation": 0, "replica_id": -1}),
        ),
    ),
    "a leader is not a follower of its own partition": RequestSequence(
        3,
        {"max.message.bytes": "300"},
        (
            ("stop", {"who": "leader"}),
            _fetch(10, {**_asked(1, 1, 100), "epoch": 0}, _asked(0, 1, 200, last_epoch=1), min_bytes=1, replica_id=1, rack="r1"),
        ),
    ),
}  # fmt: skip
