"""aiokafka reads the record batches built by kafkaproto. `tests/oracle/test_second_opinions.py` compares messages."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka.record.memory_records import MemoryRecords

from kafkaproto.records.batch import NewRecord, Record, build_batch, records
from kafkaproto.records.compression import Compression


@pytest.mark.parametrize("kind", list(Compression), ids=lambda kind: kind.name)
def test_aiokafka_decodes_record_batches_built_by_kafkaproto(kind: Compression) -> None:
    new_records = [
        NewRecord(b"v" * n, key=None if n % 2 else b"k", timestamp=1000 + n, headers=[("h", b"x")]) for n in range(50)
    ]
    data = build_batch(new_records, base_offset=30, compression=kind)
    next_batch: Any = MemoryRecords(data).next_batch()
    assert next_batch.validate_crc()
    theirs = [Record(r.offset, r.timestamp, r.key, r.value, tuple(r.headers)) for r in next_batch]
    assert theirs == list(records(data)) and len(theirs) == 50
