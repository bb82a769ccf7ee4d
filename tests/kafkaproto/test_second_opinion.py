"""Other Python codecs read what we write and write what we read. (Java's opinion is in ``tests/oracle``.)

Without unknown tags: they lose or refuse them.
"""

from __future__ import annotations

import dataclasses
import importlib
import io
import warnings
from typing import Any

import pytest

from kafkaproto.records.batch import NewRecord, Record, build_batch, records
from kafkaproto.records.compression import Compression
from tests.kafkaproto.catalogue import ENTRIES, Entry
from tests.kafkaproto.values import Values

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python uses a part of importlib that is going away
    import kafka.protocol.consumer
    import kafka.protocol.metadata
    import kafka.protocol.producer
    from aiokafka.record.memory_records import MemoryRecords
from kio.serial import entity_reader, entity_writer

KAFKA_PYTHON = {
    "MetadataResponse": (kafka.protocol.metadata.MetadataResponse, range(13)),
    "MetadataRequest": (kafka.protocol.metadata.MetadataRequest, range(13)),
    "FetchRequest": (kafka.protocol.consumer.FetchRequest, range(4, 15)),
    "OffsetCommitRequest": (kafka.protocol.consumer.OffsetCommitRequest, range(2, 10)),
    "JoinGroupResponse": (kafka.protocol.consumer.JoinGroupResponse, range(10)),
}
KIO = {
    "FindCoordinatorResponse": "find_coordinator.v{}.response.FindCoordinatorResponse",
    "SyncGroupRequest": "sync_group.v{}.request.SyncGroupRequest",
    "DescribeGroupsResponse": "describe_groups.v{}.response.DescribeGroupsResponse",
    "AlterClientQuotasRequest": "alter_client_quotas.v{}.request.AlterClientQuotasRequest",
}


def kafka_python_entries() -> list[Entry]:
    return [e for e in ENTRIES if e.name in KAFKA_PYTHON and e.version in KAFKA_PYTHON[e.name][1]]


@pytest.mark.parametrize("entry", kafka_python_entries(), ids=lambda entry: entry.id)
def test_kafka_python_agrees(entry: Entry) -> None:
    other = KAFKA_PYTHON[entry.name][0]
    for shape in ("small", "random", "random", "highest"):
        data = entry.layout.encode(Values(f"{entry.id} {shape}").object(entry.layout, shape))
        theirs = other.decode(data, version=entry.version)
        theirs._header = None  # its decoder forgets the slot that its encoder asks for
        assert bytes(theirs.encode(version=entry.version)) == data


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.name in KIO], ids=lambda entry: entry.id)
def test_kio_agrees(entry: Entry) -> None:
    path, name = KIO[entry.name].format(entry.version).rsplit(".", 1)
    other = getattr(importlib.import_module(f"kio.schema.{path}"), name)
    for shape in ("small", "highest", "empty"):
        obj = Values(entry.id).object(entry.layout, shape)
        make_plausible(obj)
        data = entry.layout.encode(obj)
        theirs, size = entity_reader(other)(data, 0)
        buffer = io.BytesIO()
        entity_writer(other)(buffer, theirs)
        assert (buffer.getvalue(), size) == (data, len(data))


def make_plausible(obj: Any) -> None:
    """kio knows error codes by name and makes durations of throttle times."""
    for field in dataclasses.fields(obj):
        value = getattr(obj, field.name)
        if field.name == "error_code" and value:
            obj.error_code = 3
        elif field.name == "throttle_time_ms" and value:
            obj.throttle_time_ms = 1500
        for item in value if isinstance(value, list) else ():
            if dataclasses.is_dataclass(item):
                make_plausible(item)


@pytest.mark.parametrize("kind", list(Compression), ids=lambda kind: kind.name)
def test_aiokafka_reads_our_batches(kind: Compression) -> None:
    made = [
        NewRecord(b"v" * n, key=None if n % 2 else b"k", timestamp=1000 + n, headers=[("h", b"x")]) for n in range(50)
    ]
    data = build_batch(made, base_offset=30, compression=kind)
    found: Any = MemoryRecords(data).next_batch()
    assert found.validate_crc()
    theirs = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in found]
    assert theirs == list(records(data)) and len(theirs) == 50
