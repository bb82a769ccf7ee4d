"""The same work with a record batch, by every codec that knows batches. What they found is compared first.

What our codec lacks is said and left out, so that the other works can be measured before it is there.
"""

from __future__ import annotations

import datetime
import importlib
import io
import warnings
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.codec.cases import MIB, TIMESTAMP_MS, RecordCase, batch
from benchmarks.codec.rivals import Work, check
from kafkaproto.records.batch import NewRecord, build_batch, check_crc, records

Plain = tuple[int, int, bytes | None, bytes | None]
"""Offset, timestamp, key, value."""


class NotThereYet(Exception):
    """Our codec has no such work."""


def record_works(case: RecordCase) -> dict[str, dict[str, Work]]:
    """The work, then codec, to what is timed. Raises ValueError if the codecs do not find the same."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kafka-python uses a part of importlib that is going away
        return {case.work: WORKS[case.work](case)}


def made_batch(case: RecordCase) -> bytes:
    made = [NewRecord(value, key, TIMESTAMP_MS + i) for i, (key, value) in enumerate(case.plain_records())]
    return build_batch(made, compression=case.compression)


def batch_readers() -> dict[str, Callable[[bytes], Any]]:
    """Those whose batches are objects to iterate over."""
    from aiokafka.record import default_records as aiokafka_python
    from aiokafka.record._crecords import DefaultRecordBatch as AiokafkaC
    from kafka.record import default_records as kafka_python

    return {
        "kafka-python": kafka_python.DefaultRecordBatch,
        "aiokafka": aiokafka_python._DefaultRecordBatchPy,
        "aiokafka (C)": AiokafkaC,
    }


def iterate(case: RecordCase) -> dict[str, Work]:
    data = made_batch(case)
    works: dict[str, Work] = {"ours": lambda: exhaust(records(data))}
    expected = [plain(record) for record in records(data)]
    for name, read in batch_readers().items():
        check([plain(record) for record in read(data)], expected)
        works[name] = lambda read=read: exhaust(read(data))
    if not case.compression:  # kio does not decompress
        from kio.records.readers import read_batch

        found = read_batch(data, 0)[0].records
        check([(r.offset, r.key, r.value) for r in found], [(o, key, value) for o, _, key, value in expected])
        works["kio (Rust)"] = lambda: read_batch(data, 0)
    return works


def keys(case: RecordCase) -> dict[str, Work]:
    data = made_batch(case)
    keys_of = lately("keys")
    expected = [key for key, _ in case.plain_records()]
    works: dict[str, Work] = {"ours": lambda: exhaust(keys_of(data))}
    check(list(keys_of(data)), expected)
    for name, read in batch_readers().items():
        works[name] = lambda read=read: exhaust(record.key for record in read(data))
        check([record.key for record in read(data)], expected)
    return works


def columns(case: RecordCase) -> dict[str, Work]:
    """Ours are arrays of numbers; the others have no such thing, so their records are taken apart into tuples."""
    data = made_batch(case)
    columns_of = lately("columns")
    works: dict[str, Work] = {"ours": lambda: columns_of(data)}
    found = columns_of(data)
    expected = [plain(record) for record in records(data)]
    check(list(zip(found.offsets, found.timestamps, *taken_out(found), strict=True)), expected)
    for name, read in batch_readers().items():
        works[name] = lambda read=read: list(zip(*map(plain, read(data)), strict=True))
        check([plain(record) for record in read(data)], expected)
    return works


def build(case: RecordCase) -> dict[str, Work]:
    """From keys and values to the finished batch."""
    from aiokafka.record import default_records as aiokafka_python
    from aiokafka.record._crecords import DefaultRecordBatchBuilder as AiokafkaC
    from kafka.record import default_records as kafka_python

    given = case.plain_records()

    def ours() -> bytes:
        made = [NewRecord(value, key, TIMESTAMP_MS) for key, value in given]
        return build_batch(made, compression=case.compression)

    def by_builder(builder: Any) -> bytes:
        made = builder(
            magic=2,
            compression_type=int(case.compression),
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=MIB,
        )
        for i, (key, value) in enumerate(given):
            made.append(i, TIMESTAMP_MS, key, value, [])
        return bytes(made.build())

    works: dict[str, Work] = {
        "ours": ours,
        "kafka-python": lambda: by_builder(kafka_python.DefaultRecordBatchBuilder),
        "aiokafka": lambda: by_builder(aiokafka_python._DefaultRecordBatchBuilderPy),
        "aiokafka (C)": lambda: by_builder(AiokafkaC),
    }
    if not case.compression:
        works["kio (Rust)"] = lambda: built_by_kio(given)
    expected = [(i, TIMESTAMP_MS, key, value) for i, (key, value) in enumerate(given)]
    for work in works.values():
        check([plain(record) for record in records(work())], expected)  # type: ignore[arg-type]
    return works


def built_by_kio(given: list[tuple[bytes | None, bytes]]) -> bytes:
    from kio.records.schema import NewRecordBatch, Record
    from kio.records.writers import write_new_batch

    time = datetime.datetime.fromtimestamp(TIMESTAMP_MS / 1000, datetime.UTC)
    made: Any = tuple(
        Record(attributes=0, timestamp=time, offset=i, key=key, value=value, headers=())  # type: ignore[arg-type]
        for i, (key, value) in enumerate(given)
    )
    out = io.BytesIO()
    write_new_batch(
        out,
        NewRecordBatch(producer_id=-1, producer_epoch=-1, base_sequence=-1, records=made, attributes=0),  # type: ignore[arg-type]
    )
    return out.getvalue()


def checksum(case: RecordCase) -> dict[str, Work]:
    data = batch(MIB)
    works: dict[str, Work] = {"ours": lambda: check_crc(data)}
    for name, read in batch_readers().items():
        works[name] = lambda read=read: read(data).validate_crc()
    for work in works.values():
        check(work(), True)
    return works


def taken_out(columns: Any) -> tuple[list[bytes | None], list[bytes | None]]:
    """The keys and values that our columns tell the places of."""
    data = columns.payload
    ranges = (columns.key_starts, columns.key_ends), (columns.value_starts, columns.value_ends)
    keys, values = (
        [bytes(data[start:end]) if start >= 0 else None for start, end in zip(*places, strict=True)]
        for places in ranges
    )
    return keys, values


WORKS: dict[str, Callable[[RecordCase], dict[str, Work]]] = {
    "iterate": iterate,
    "keys": keys,
    "columns": columns,
    "build": build,
    "checksum": checksum,
}


def lately(name: str) -> Callable[[bytes], Any]:
    """A function of `kafkaproto.records.columns`."""
    try:
        found: Callable[[bytes], Any] = getattr(importlib.import_module("kafkaproto.records.columns"), name)
    except (ModuleNotFoundError, AttributeError):
        raise NotThereYet(f"kafkaproto.records.columns.{name}") from None
    return found


def plain(record: Any) -> Plain:
    return record.offset, record.timestamp, record.key, record.value


def exhaust(items: Iterable[object]) -> None:
    deque(items, maxlen=0)
