"""Messages of magic 0 and 1 and conversions between all magics, compared with Kafka's own classes."""

from __future__ import annotations

import random
from typing import Any

import pytest

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.records import entries
from kafkaproto.records.batch import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, NewRecord, build_batch, read_header
from kafkaproto.records.compression import Compression
from kafkaproto.records.control import build_end_txn_marker
from kafkaproto.records.convert import down_convert, up_convert
from kafkaproto.records.message_set import build_message_set
from kafkaproto.records.record import Record
from kafkaproto.records.verify import problems
from tests.support.oracle.oracle import Conversions, Oracle, Refused
from tests.support.oracle.records import as_json, batch_spec, some_records

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

OLD_KINDS = [kind for kind in Compression if kind != Compression.ZSTD]
INSTANCES = 60


def old_records(chance: random.Random, magic: int) -> list[NewRecord]:
    new_records = some_records(chance, chance.randrange(1, 30))
    return [record._replace(headers=(), timestamp=record.timestamp if magic else -1) for record in new_records]


def old_spec(new_records: list[NewRecord], magic: int, kind: Compression, **overrides: Any) -> dict[str, Any]:
    producer = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1, "transactional": False}
    return batch_spec(new_records, kind, magic=magic, **{**producer, **overrides})


def assert_same_entries(oracle: Oracle, data: bytes) -> None:
    """Assert that Kafka, which verifies checksums, reads the same entries."""
    ours = list(entries.batches(data))
    theirs = oracle.records(data)
    assert len(theirs) == len(ours)
    for batch, (_, header, view) in zip(theirs, ours, strict=True):
        for name in ("magic", "last_offset", "size", "max_timestamp", "compression", "crc", "is_log_append_time"):
            assert batch[name] == getattr(header, name), name
        assert batch["is_control"] == header.is_control and not problems(view)
        read = [{"offset": record.offset, **as_json(record)} for record in entries.records(view)]
        assert batch["records"] == read


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("kind", OLD_KINDS, ids=lambda kind: kind.name)
def test_kafka_decodes_messages_of_magic_0_and_1_built_by_kafkaproto(
    oracle: Oracle, magic: int, kind: Compression
) -> None:
    for seed in range(INSTANCES):
        chance = random.Random(f"{magic} {kind} {seed}")
        new_records = old_records(chance, magic)
        append_time = chance.choice((None, 1_800_000_000_000))
        data = build_message_set(
            new_records, magic=magic, base_offset=2**40, compression=kind, log_append_time_ms=append_time
        )
        assert_same_entries(oracle, data)
        time = append_time if magic else None
        expected = [Record(2**40 + i, time or r.timestamp, r.key, r.value, ()) for i, r in enumerate(new_records)]
        assert list(entries.entries(data)) == expected


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("kind", OLD_KINDS, ids=lambda kind: kind.name)
def test_kafkaproto_decodes_messages_of_magic_0_and_1_built_by_kafka(
    oracle: Oracle, magic: int, kind: Compression
) -> None:
    for seed in range(INSTANCES):
        chance = random.Random(f"{magic} {kind} {seed} theirs")
        new_records = old_records(chance, magic)
        log_append_time = chance.random() < 0.3
        spec = old_spec(new_records, magic, kind, log_append_time=log_append_time, now_ms=1_800_000_000_000)
        data = oracle.batch(spec)
        assert_same_entries(oracle, data)
        if kind == Compression.NONE:
            append_time = 1_800_000_000_000 if log_append_time else None
            assert data == build_message_set(new_records, magic=magic, base_offset=100, log_append_time_ms=append_time)


@pytest.mark.parametrize("magic", [0, 1])
def test_kafka_and_kafkaproto_both_reject_zstd_in_messages_of_magic_0_and_1(oracle: Oracle, magic: int) -> None:
    new_records = old_records(random.Random(magic), magic)
    with pytest.raises(Refused, match="ZSt"):
        oracle.batch(old_spec(new_records, magic, Compression.ZSTD))
    with pytest.raises(EncodeError, match="zstd"):
        build_message_set(new_records, magic=magic, compression=Compression.ZSTD)


def stored(chance: random.Random, kinds: list[Compression]) -> bytes:
    """Return possible contents of a log: batches of magic 2, markers and messages of old magics, with ascending offsets."""
    parts, offset = [], chance.randrange(100)
    for _ in range(chance.randrange(1, 6)):
        kind = chance.choice(kinds)
        new_records = some_records(chance, chance.randrange(1, 8))
        match chance.randrange(6):
            case 0:
                part = build_end_txn_marker(
                    True, producer_id=3, producer_epoch=0, coordinator_epoch=1, timestamp=5, base_offset=offset
                )
            case 1 | 2 as magic:
                new_records = [record._replace(headers=()) for record in new_records]
                part = build_message_set(new_records, magic=magic - 1, base_offset=offset, compression=kind)
            case _:
                part = build_batch(
                    new_records,
                    base_offset=offset,
                    compression=kind,
                    attributes=chance.choice((0, LOG_APPEND_TIME)),
                    max_timestamp=chance.choice((None, 1_800_000_000_000)),
                )
        parts.append(part)
        offset = entries.read_header(part).next_offset + len(new_records) + chance.randrange(3)
    return b"".join(parts)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_down_converted_bytes_equal_those_of_kafka(conversions: Conversions, magic: int) -> None:
    for seed in range(4 * INSTANCES):
        chance = random.Random(f"{magic} {seed}")
        data = stored(chance, [Compression.NONE])
        data = data[: len(data) - chance.choice((0, 0, 3))]
        first_offset = chance.randrange(120)
        assert down_convert(data, magic, first_offset) == conversions.down_convert(data, magic, first_offset)


@pytest.mark.parametrize("magic", [0, 1])
def test_kafkaproto_and_kafka_down_convert_to_equal_records_and_compression_types(
    conversions: Conversions, oracle: Oracle, magic: int
) -> None:
    for seed in range(2 * INSTANCES):
        chance = random.Random(f"{magic} {seed} packed")
        data = stored(chance, OLD_KINDS)
        first_offset = chance.randrange(60)
        ours = down_convert(data, magic, first_offset)
        assert_same_entries(oracle, ours)
        theirs = conversions.down_convert(data, magic, first_offset)
        assert list(entries.entries(ours)) == list(entries.entries(theirs))
        described = [
            [
                (h.magic, h.compression, h.last_offset, h.max_timestamp, h.attributes)
                for _, h, _ in entries.batches(data)
            ]
            for data in (ours, theirs)
        ]
        assert described[0] == described[1]


def test_kafka_and_kafkaproto_both_refuse_to_down_convert_zstd(conversions: Conversions) -> None:
    data = build_batch([NewRecord(b"v")], compression=Compression.ZSTD)
    with pytest.raises(Refused, match="zstandard"):
        conversions.down_convert(data, 1)
    with pytest.raises(EncodeError, match="zstd"):
        down_convert(data, 1)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("source", OLD_KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("target", [Compression.NONE, Compression.GZIP], ids=lambda kind: kind.name)
def test_up_converted_record_batch_has_the_same_records_and_header_as_in_kafka(
    conversions: Conversions, oracle: Oracle, magic: int, source: Compression, target: Compression
) -> None:
    for seed in range(INSTANCES):
        chance = random.Random(f"{magic} {source} {target} {seed}")
        data = build_message_set(old_records(chance, magic), magic=magic, compression=source)
        log_append_time = chance.random() < 0.4
        now_ms = 1_800_000_000_000
        theirs = conversions.up_convert(
            {
                "data": data.hex(),
                "source": int(source),
                "target": int(target),
                "now_ms": now_ms,
                "log_append_time": log_append_time,
                "leader_epoch": 9,
                "base_offset": 5000,
            }
        )
        ours = up_convert(
            data,
            base_offset=5000,
            compression=target,
            log_append_time_ms=now_ms if log_append_time else None,
            leader_epoch=9,
        )
        assert_same_entries(oracle, ours)
        if target == Compression.NONE:
            assert ours == theirs
        else:
            left_out = {"batch_length": 0, "crc": 0}
            assert read_header(ours)._replace(**left_out) == read_header(theirs)._replace(**left_out)
            assert list(entries.entries(ours)) == list(entries.entries(theirs))


def test_transaction_marker_bytes_equal_those_of_kafka(oracle: Oracle) -> None:
    for committed in (True, False):
        spec = {
            "base_offset": 77,
            "timestamp": 1_700_000_000_000,
            "leader_epoch": 4,
            "producer_id": 2**40,
            "producer_epoch": 7,
            "coordinator_epoch": 12,
            "committed": committed,
        }
        ours = build_end_txn_marker(**spec)
        assert ours == oracle.end_txn_marker(spec)
        assert_same_entries(oracle, ours)
        assert read_header(ours).attributes == CONTROL | TRANSACTIONAL


def test_kafka_decodes_the_delete_horizon_written_by_kafkaproto(oracle: Oracle) -> None:
    new_records = some_records(random.Random(5), 4)
    data = build_batch(new_records, delete_horizon_ms=1_600_000_000_000)
    (theirs,) = oracle.records(data)
    assert theirs["delete_horizon_ms"] == read_header(data).delete_horizon_ms == 1_600_000_000_000
    assert [record["timestamp"] for record in theirs["records"]] == [record.timestamp for record in new_records]
    assert [record.timestamp for record in entries.records(data)] == [record.timestamp for record in new_records]
    (without,) = oracle.records(build_batch(new_records))
    assert without["delete_horizon_ms"] is None


@pytest.mark.parametrize("kind", OLD_KINDS[1:], ids=lambda kind: kind.name)
def test_kafkaproto_and_kafka_reject_the_same_damaged_compressed_messages(oracle: Oracle, kind: Compression) -> None:
    """The cases are every wrapper offset and every truncation of the contents: both reject the data, or both read equal records."""
    new_records = [NewRecord(b"value", b"key", 1_700_000_000_000 + i) for i in range(3)]
    data = build_message_set(new_records, magic=1, base_offset=40, compression=kind)
    for offset in (-1, 0, 1, 2, 3, 42, 2**62):
        moved = offset.to_bytes(8, "big", signed=True) + data[8:]
        try:
            theirs = [record["offset"] for record in oracle.records(moved)[0]["records"]]
        except Refused:
            with pytest.raises(DecodeError):
                list(entries.entries(moved))
        else:
            assert [record.offset for record in entries.entries(moved)] == theirs
