"""Functions that do the same work with a record batch, one for each codec that supports batches. The results are compared before timing.

Work that this project's codec does not support yet is reported and skipped.
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
"""A record as (offset, timestamp, key, value)."""


class NotSupportedYet(Exception):
    """Raised if this project's codec lacks the function that a benchmark case measures."""


def record_works(case: RecordCase) -> dict[str, dict[str, Work]]:
    """Return the functions to time as {kind of work: {codec: function}}. The dict has one kind of work, that of the case.

    case: the kind of work, such as "build", and the numbers and sizes of the records.

    Raises ValueError if the results of the codecs differ, and NotSupportedYet if this project's codec lacks a function.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # kafka-python uses a deprecated part of importlib
        return {case.work: WORKS[case.work](case)}


def batch_for(case: RecordCase) -> bytes:
    new_records = [NewRecord(value, key, TIMESTAMP_MS + i) for i, (key, value) in enumerate(case.plain_records())]
    return build_batch(new_records, compression=case.compression)


def batch_readers() -> dict[str, Callable[[bytes], Any]]:
    """Return the classes with which kafka-python and aiokafka read a record batch, by name of the library and its implementation.

    An object of such a class is made from the bytes of a batch and yields the records.
    """
    from aiokafka.record import default_records as aiokafka_python
    from aiokafka.record._crecords import DefaultRecordBatch as AiokafkaC
    from kafka.record import default_records as kafka_python

    return {
        "kafka-python": kafka_python.DefaultRecordBatch,
        "aiokafka": aiokafka_python._DefaultRecordBatchPy,
        "aiokafka (C)": AiokafkaC,
    }


def iterate(case: RecordCase) -> dict[str, Work]:
    data = batch_for(case)
    works: dict[str, Work] = {"ours": lambda: exhaust(records(data))}
    expected = [plain(record) for record in records(data)]
    for name, read in batch_readers().items():
        check([plain(record) for record in read(data)], expected)
        works[name] = lambda read=read: exhaust(read(data))
    if not case.compression:  # kio does not decompress
        from kio.records.readers import read_batch

        kio_records = read_batch(data, 0)[0].records
        check([(r.offset, r.key, r.value) for r in kio_records], [(o, key, value) for o, _, key, value in expected])
        works["kio (Rust)"] = lambda: read_batch(data, 0)
    return works


def keys(case: RecordCase) -> dict[str, Work]:
    data = batch_for(case)
    keys_of = columns_function("keys")
    expected = [key for key, _ in case.plain_records()]
    works: dict[str, Work] = {"ours": lambda: exhaust(keys_of(data))}
    check(list(keys_of(data)), expected)
    for name, read in batch_readers().items():
        works[name] = lambda read=read: exhaust(record.key for record in read(data))
        check([record.key for record in read(data)], expected)
    return works


def columns(case: RecordCase) -> dict[str, Work]:
    """Return functions that split a batch into columns (offsets, timestamps, keys, values), by name of the codec.

    case: the benchmark case with the records of the batch. This project's codec ("ours") has a function that returns columns. Other codecs have no
    such function: for each of them, the returned function reads all records and transposes them into one tuple per column.
    """
    data = batch_for(case)
    columns_of = columns_function("columns")
    works: dict[str, Work] = {"ours": lambda: columns_of(data)}
    column_values = columns_of(data)
    expected = [plain(record) for record in records(data)]
    check(
        list(zip(column_values.offsets, column_values.timestamps, *keys_and_values(column_values), strict=True)),
        expected,
    )
    for name, read in batch_readers().items():
        works[name] = lambda read=read: list(zip(*map(plain, read(data)), strict=True))
        check([plain(record) for record in read(data)], expected)
    return works


def build(case: RecordCase) -> dict[str, Work]:
    """Return functions that build a batch from keys and values, by name of the codec. case: the keys, values and compression to use."""
    from aiokafka.record import default_records as aiokafka_python
    from aiokafka.record._crecords import DefaultRecordBatchBuilder as AiokafkaC
    from kafka.record import default_records as kafka_python

    key_values = case.plain_records()

    def ours() -> bytes:
        new_records = [NewRecord(value, key, TIMESTAMP_MS) for key, value in key_values]
        return build_batch(new_records, compression=case.compression)

    def by_builder(builder: Any) -> bytes:
        batch_builder = builder(
            magic=2,
            compression_type=int(case.compression),
            is_transactional=False,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            batch_size=MIB,
        )
        for i, (key, value) in enumerate(key_values):
            batch_builder.append(i, TIMESTAMP_MS, key, value, [])
        return bytes(batch_builder.build())

    works: dict[str, Work] = {
        "ours": ours,
        "kafka-python": lambda: by_builder(kafka_python.DefaultRecordBatchBuilder),
        "aiokafka": lambda: by_builder(aiokafka_python._DefaultRecordBatchBuilderPy),
        "aiokafka (C)": lambda: by_builder(AiokafkaC),
    }
    if not case.compression:
        works["kio (Rust)"] = lambda: built_by_kio(key_values)
    expected = [(i, TIMESTAMP_MS, key, value) for i, (key, value) in enumerate(key_values)]
    for work in works.values():
        check([plain(record) for record in records(work())], expected)  # type: ignore[arg-type]
    return works


def built_by_kio(key_values: list[tuple[bytes | None, bytes]]) -> bytes:
    from kio.records.schema import NewRecordBatch, Record
    from kio.records.writers import write_new_batch

    time = datetime.datetime.fromtimestamp(TIMESTAMP_MS / 1000, datetime.UTC)
    kio_batch: Any = tuple(
        Record(attributes=0, timestamp=time, offset=i, key=key, value=value, headers=())  # type: ignore[arg-type]
        for i, (key, value) in enumerate(key_values)
    )
    out = io.BytesIO()
    write_new_batch(
        out,
        NewRecordBatch(producer_id=-1, producer_epoch=-1, base_sequence=-1, records=kio_batch, attributes=0),  # type: ignore[arg-type]
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


def keys_and_values(columns: Any) -> tuple[list[bytes | None], list[bytes | None]]:
    """Return (keys, values) of all records, as bytes or, for null, None.

    columns: a `kafkaproto.records.columns.Columns`: the decompressed records, and the byte positions of each key and value in them.
    """
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


def columns_function(name: str) -> Callable[[bytes], Any]:
    """Return a function of `kafkaproto.records.columns`. Raises NotSupportedYet if it does not exist."""
    try:
        function: Callable[[bytes], Any] = getattr(importlib.import_module("kafkaproto.records.columns"), name)
    except (ModuleNotFoundError, AttributeError):
        raise NotSupportedYet(
            f"the benchmark of record codecs needs kafkaproto.records.columns.{name}, which this commit does not have"
        ) from None
    return function


def plain(record: Any) -> Plain:
    return record.offset, record.timestamp, record.key, record.value


def exhaust(items: Iterable[object]) -> None:
    deque(items, maxlen=0)
