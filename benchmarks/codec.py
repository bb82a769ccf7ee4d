"""The codec against kafka-python, kio and its own interpreted form: the same bytes, in turn, in one run. Writes BENCHMARKS.md.

Each case is timed in many short rounds, all codecs in each round, and the fastest round of each counts: what is left then is the work.
The collector is off while a round runs, for everybody.

usage: python -m benchmarks.codec      (make bench)
"""

from __future__ import annotations

import argparse
import gc
import io
import sys
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.report import write_section
from kafkaproto.api import ApiKey, codec
from kafkaproto.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kafkaproto.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records.batch import NewRecord, build_batch

ROUNDS = 40
ROUND_SECONDS = 0.01
Work = Callable[[], object]


def metadata() -> MetadataResponse:
    partitions = [MetadataResponsePartition(0, i, i % 20, 3, [1, 2, 3], [1, 2, 3], []) for i in range(12)]
    return MetadataResponse(
        0,
        [MetadataResponseBroker(i, f"broker-{i}.example", 9092, "rack-a") for i in range(20)],
        "a-cluster-id-of-22-char",
        1,
        [MetadataResponseTopic(0, f"topic-{i:03}", bytes(range(16)), False, partitions) for i in range(100)],
    )


def fetch() -> FetchResponse:
    records = build_batch([NewRecord(b"x" * 1000, None, 0)] * 1000)
    data = [PartitionData(i, 0, 1000, 1000, 0, aborted_transactions=None, records=records) for i in range(4)]
    return FetchResponse(0, 0, 7, [FetchableTopicResponse("topic-001", partitions=data)])


def produce() -> ProduceRequest:
    batch = build_batch([NewRecord(b"x" * 1000, None, 0)] * 16)
    data = [PartitionProduceData(i, batch) for i in range(4)]
    return ProduceRequest(None, -1, 30000, [TopicProduceData("topic-001", partition_data=data)])


def best_us(works: dict[str, Work]) -> dict[str, float]:
    """Microseconds a call of each, the fastest of many interleaved rounds."""
    calls = {}
    for name, work in works.items():
        begun = time.perf_counter()
        work()
        work()
        calls[name] = max(1, int(ROUND_SECONDS / ((time.perf_counter() - begun) / 2)))
    best = dict.fromkeys(works, float("inf"))
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for name, work in works.items():
                count = calls[name]
                begun = time.perf_counter()
                for _ in range(count):
                    work()
                best[name] = min(best[name], (time.perf_counter() - begun) / count * 1e6)
            gc.collect()
    finally:
        gc.enable()
    return best


def ours(message: Any, key: int, version: int, request: bool) -> tuple[bytes, dict[str, Work], dict[str, Work]]:
    api = codec(key, version)
    layout = api.request if request else api.response
    data = layout.encode(message)
    view = memoryview(data)
    decode = {
        "flat": lambda: layout.decode_flat(view, 0, len(view)),
        "interpreted": lambda: layout.parse(data),
    }
    encode = {
        "flat": lambda: layout.encode_flat(message, bytearray(), []),
        "interpreted": lambda: layout.build(message),
    }
    return data, decode, encode


def kafka_python(name: str, version: int, data: bytes) -> tuple[Work, Work]:
    from kafka.protocol import consumer, metadata, producer

    made = next(getattr(module, name) for module in (metadata, consumer, producer) if hasattr(module, name))
    message = made.decode(data, version=version)
    message._header = None  # its decoder forgets the slot that its encoder asks for
    return (lambda: made.decode(data, version=version)), (lambda: message.encode(version=version))


def kio(module: str, name: str, version: int, data: bytes) -> tuple[Work, Work]:
    from kio.serial import entity_reader, entity_writer

    kind = "request" if name.endswith("Request") else "response"
    entity = getattr(import_module(f"kio.schema.{module}.v{version}.{kind}"), name)
    read, write = entity_reader(entity), entity_writer(entity)
    message = read(data, 0)[0]

    def encode() -> bytes:
        out = io.BytesIO()
        write(out, message)
        return out.getvalue()

    return (lambda: read(data, 0)), encode


CASES = [
    ("Metadata response v12, 100 topics of 12 partitions", metadata, ApiKey.METADATA, 12, False, "metadata"),
    ("Fetch response v11, 4 MB of records", fetch, ApiKey.FETCH, 11, False, "fetch"),
    ("Produce request v9, 64 KB of records", produce, ApiKey.PRODUCE, 9, True, "produce"),
]


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    rows = []
    for title, make, key, version, request, module in CASES:
        message = make()
        data, decode, encode = ours(message, key, version, request)
        name = type(message).__name__
        decode["kafka-python"], encode["kafka-python"] = kafka_python(name, version, data)
        decode["kio"], encode["kio"] = kio(module, name, version, data)
        for verb, works in (("decode", decode), ("encode", encode)):
            best = best_us(works)
            flat = best.pop("flat")
            rows.append(
                (f"{title}, {verb}", *(f"{best[name] / flat:.1f}" for name in ("kafka-python", "kio", "interpreted")))
            )
            print(f"{title}, {verb}: done", file=sys.stderr, flush=True)
    text = write_section(
        "codec",
        "The codec against others",
        "make bench",
        "How many times as long the others take as our flat code (more than 1: we are faster). Same bytes, rounds interleaved, the "
        "fastest round of each, collector off. kio reads in Rust; a records field is a slice for us and for kio a copy.",
        ("work", "kafka-python", "kio", "our interpreted form"),
        rows,
    )
    print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
