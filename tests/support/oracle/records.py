"""Records and batches in the format of the oracle programs."""

from __future__ import annotations

import base64
import random
from typing import Any

from kafkaproto.records.batch import NewRecord
from kafkaproto.records.compression import Compression


def some_records(chance: random.Random, count: int) -> list[NewRecord]:
    return [
        NewRecord(
            value=chance.choice((None, b"", b"value " * chance.randrange(400), chance.randbytes(300))),
            key=chance.choice((None, b"", b"key", chance.randbytes(70))),
            timestamp=1_700_000_000_000 + chance.randrange(-(10**7), 10**7),
            headers=[("", None), ("h", b""), ("ü" * 40, b"x" * 130)][: chance.randrange(4)],
        )
        for _ in range(count)
    ]


def encoded(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def as_json(record: Any) -> dict[str, Any]:
    headers = [[key, encoded(value)] for key, value in record.headers]
    return {
        "timestamp": record.timestamp,
        "key": encoded(record.key),
        "value": encoded(record.value),
        "headers": headers,
    }


def batch_spec(new_records: list[NewRecord], kind: Compression, **overrides: Any) -> dict[str, Any]:
    spec = {
        "magic": 2,
        "compression": int(kind),
        "log_append_time": False,
        "base_offset": 100,
        "now_ms": -1,
        "producer_id": 77,
        "producer_epoch": 3,
        "base_sequence": 12,
        "transactional": True,
        "leader_epoch": 4,
        "records": [as_json(record) for record in new_records],
    }
    return {**spec, **overrides}
