"""Record batches in every compression, written by kafkaproto and read by Kafka, and the reverse."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkaproto.records.batch import (
    TRANSACTIONAL,
    NewRecord,
    batches,
    build_batch,
    check_crc,
    patch_log_append_time,
    patch_offset_and_epoch,
    records,
)
from kafkaproto.records.compression import Compression
from tests.support.oracle.oracle import Oracle, Refused
from tests.support.oracle.records import as_json, batch_spec, some_records

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

KINDS = list(Compression)
COMPARED = ("base_offset", "last_offset", "partition_leader_epoch", "size", "producer_id", "producer_epoch")
COMPARED += ("base_sequence", "max_timestamp", "base_timestamp", "crc", "compression", "record_count")
COMPARED += ("is_transactional", "is_control", "is_log_append_time")


def assert_same_batch(theirs: dict[str, Any], batch: bytes) -> None:
    """Assert that two batches have equal headers and records."""
    (ours,) = batches(batch)
    header = ours.header
    assert {name: theirs[name] for name in COMPARED} == {name: getattr(header, name) for name in COMPARED}
    read = [{"offset": record.offset, **as_json(record)} for record in records(batch)]
    assert theirs["records"] == read


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", [1, 2, 130, 2000])
def test_kafka_decodes_batches_built_by_kafkaproto(oracle: Oracle, kind: Compression, count: int) -> None:
    new_records = some_records(random.Random(f"{kind} {count}"), count)
    batch = build_batch(
        new_records,
        base_offset=2**40,
        leader_epoch=7,
        compression=kind,
        producer_id=5,
        producer_epoch=6,
        base_sequence=9,
    )
    (theirs,) = oracle.records(batch)
    assert_same_batch(theirs, batch)
    assert [{**as_json(record), "offset": 2**40 + i} for i, record in enumerate(new_records)] == theirs["records"]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", [1, 2, 130, 2000])
def test_kafkaproto_decodes_batches_built_by_kafka(oracle: Oracle, kind: Compression, count: int) -> None:
    new_records = some_records(random.Random(f"{kind} {count} theirs"), count)
    batch = oracle.batch(batch_spec(new_records, kind))
    assert check_crc(batch)
    (theirs,) = oracle.records(batch)
    assert_same_batch(theirs, batch)
    assert [as_json(record) for record in new_records] == [as_json(record) for record in records(batch)]


def test_uncompressed_batch_bytes_equal_those_of_kafka(oracle: Oracle) -> None:
    for seed in range(30):
        chance = random.Random(seed)
        new_records = some_records(chance, chance.randrange(1, 40))
        ours = build_batch(
            new_records,
            base_offset=100,
            leader_epoch=4,
            producer_id=77,
            producer_epoch=3,
            base_sequence=12,
            attributes=TRANSACTIONAL,
        )
        assert ours == oracle.batch(batch_spec(new_records, Compression.NONE))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_kafka_accepts_a_batch_after_its_base_offset_and_timestamp_were_patched(
    oracle: Oracle, kind: Compression
) -> None:
    batch = bytearray(build_batch(some_records(random.Random(1), 20), compression=kind))
    patch_offset_and_epoch(batch, 0, 10**12, 41)
    (theirs,) = oracle.records(bytes(batch))
    assert_same_batch(theirs, bytes(batch))
    patch_log_append_time(batch, 1_800_000_000_000)
    (theirs,) = oracle.records(bytes(batch))
    assert_same_batch(theirs, bytes(batch))
    assert theirs["is_log_append_time"] and {r["timestamp"] for r in theirs["records"]} == {1_800_000_000_000}


def test_kafkaproto_decodes_a_log_append_time_batch_built_by_kafka(oracle: Oracle) -> None:
    new_records = some_records(random.Random(2), 5)
    batch = oracle.batch(batch_spec(new_records, Compression.GZIP, log_append_time=True, now_ms=1_800_000_000_000))
    assert_same_batch(oracle.records(batch)[0], batch)


def test_kafka_and_kafkaproto_both_reject_a_wrong_batch_checksum(oracle: Oracle) -> None:
    batch = bytearray(build_batch([NewRecord(b"value")]))
    batch[-2] ^= 1
    assert not check_crc(batch)
    with pytest.raises(Refused, match="corrupt"):
        oracle.records(bytes(batch))


def test_kafkaproto_and_kafka_decode_consecutive_batches_to_the_same_records(oracle: Oracle) -> None:
    chance = random.Random(3)
    parts = [build_batch(some_records(chance, n), base_offset=10 * n, compression=k) for n, k in enumerate(KINDS, 1)]
    whole = b"".join(parts)
    assert [bytes(batch.view) for batch in batches(whole)] == parts
    for theirs, part in zip(oracle.records(whole), parts, strict=True):
        assert_same_batch(theirs, part)
