"""Synthetic traces of any size from a seed: produces, fetches and heartbeats of many connections, one of which has half of all traffic.

The codec encodes each kind of frame once. Then only values in the frame are replaced, so that ten million requests take minutes. The traffic is
consistent: offsets and times increase, and consumers read the batches in order. The rules of the pipeline's audit have something to check, and none
is broken.
"""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.client import request_frame, response_frame
from kafkaproto.frame import LENGTH_BYTES
from kafkaproto.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from kafkaproto.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkaproto.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from kafkaproto.records.batch import NewRecord, build_batch
from kafkaproto.trace.cutting import batch_heads
from kafkaproto.trace.format import SUFFIX, Exchange, exchange, header

FILE_BYTES = 64 * 1024 * 1024
WALL_MS = 1_795_000_000_000
CONNECTIONS = 64
RECORDS, RECORD_BYTES = 10, 150
NS_PER_REQUEST = 50_000
CORRELATION, OFFSET, END, PARTITION = 0x5A010203, 0x5A10111213141516, 0x5A20212223242526, 0x5A303132
"""Placeholders in an encoded frame, which `Template.filled` replaces by the values of one exchange.

CORRELATION: the correlation id. OFFSET: the base offset of a batch, or the fetch offset. END: the high watermark and last stable offset in a fetch
response. PARTITION: the partition index.
"""
WIDTHS = {CORRELATION: ">i", OFFSET: ">q", END: ">q", PARTITION: ">i"}
TOPIC = "synthetic"
PRODUCE_VERSION, FETCH_VERSION, HEARTBEAT_VERSION = 7, 11, 3

BATCH = build_batch([NewRecord(bytes(RECORD_BYTES), None, WALL_MS) for _ in range(RECORDS)])
HEAD = batch_heads(BATCH)


class Template:
    """An encoded frame with placeholders for correlation id, offsets and partition. `filled` replaces them without encoding the frame again."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._places = [
            (match.start(), struct.Struct(width), value)
            for value, width in WIDTHS.items()
            for match in re.finditer(re.escape(struct.pack(width, value)), frame)
        ]

    def filled(self, values: dict[int, int]) -> bytes:
        out = bytearray(self._frame)
        for at, form, value in self._places:
            form.pack_into(out, at, values[value])
        return bytes(out)


def request(version: int, message: Any, client_id: str) -> Template:
    return Template(request_frame(message, version, CORRELATION, client_id)[LENGTH_BYTES:])


def response(key: int, version: int, message: Any) -> Template:
    return Template(response_frame(message, key, version, CORRELATION)[LENGTH_BYTES:])


def fetch_response(head: bytes) -> FetchResponse:
    data = PartitionData(PARTITION, 0, END, last_stable_offset=END, log_start_offset=0, records=head)
    return FetchResponse(responses=[FetchableTopicResponse(TOPIC, partitions=[data])])


def entries(count: int, seed: int) -> Iterator[Exchange]:
    """Yield `count` exchanges (requests with responses) of a synthetic trace, in the order of the responses. Equal seeds give equal exchanges."""
    generator = random.Random(seed)
    stored = struct.pack(">q", OFFSET) + HEAD[8:]
    partition = FetchPartition(PARTITION, fetch_offset=OFFSET, partition_max_bytes=1 << 20)
    fetch = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(TOPIC, partitions=[partition])]
    )
    produce = ProduceRequest(
        None, 1, 1000, [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(PARTITION, HEAD)])]
    )
    produced = ProduceResponse(
        [TopicProduceResponse(TOPIC, partition_responses=[PartitionProduceResponse(PARTITION, 0, OFFSET)])]
    )
    beat = HeartbeatRequest("group", 1, "member", None)
    requests = {
        (key, i): request(version, message, f"client-{i:02}")
        for key, version, message in (
            (ApiKey.PRODUCE, PRODUCE_VERSION, produce),
            (ApiKey.FETCH, FETCH_VERSION, fetch),
            (ApiKey.HEARTBEAT, HEARTBEAT_VERSION, beat),
        )
        for i in range(CONNECTIONS)
    }
    responses = {
        ApiKey.PRODUCE: response(ApiKey.PRODUCE, PRODUCE_VERSION, produced),
        ApiKey.FETCH: response(ApiKey.FETCH, FETCH_VERSION, fetch_response(stored)),
        ApiKey.HEARTBEAT: response(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, HeartbeatResponse()),
    }
    ends, read, correlation_ids = [0] * CONNECTIONS, [0] * CONNECTIONS, [0] * CONNECTIONS
    records = (len(BATCH),)
    for seq in range(1, count + 1):
        i = 0 if generator.random() < 0.5 else generator.randrange(1, CONNECTIONS)
        correlation_ids[i] += 1
        at_ns = seq * NS_PER_REQUEST
        draw = generator.random()
        key = ApiKey.HEARTBEAT if draw < 0.1 else ApiKey.PRODUCE if draw < 0.55 or read[i] == ends[i] else ApiKey.FETCH
        values = {CORRELATION: correlation_ids[i], PARTITION: i, OFFSET: 0, END: ends[i]}
        sent = received = ()
        if key == ApiKey.PRODUCE:
            values[OFFSET] = ends[i]
            ends[i] += RECORDS
            sent = records
        elif key == ApiKey.FETCH:
            values[OFFSET] = read[i]
            read[i] += RECORDS
            received = records
        request_bytes, response_bytes = requests[key, i].filled(values), responses[key].filled(values)
        yield Exchange(
            seq, 0, i + 1, WALL_MS + at_ns // 1_000_000, at_ns, at_ns + 5_000, at_ns + 20_000, at_ns + 25_000, 0, True, False, False,
            len(request_bytes) + (records[0] - len(HEAD) if sent else 0), len(response_bytes) + (records[0] - len(HEAD) if received else 0),
            request_bytes, response_bytes, sent, received, WALL_MS + at_ns // 1_000_000,
        )  # fmt: skip


def write(folder: Path, count: int, seed: int = 1) -> int:
    """Write a synthetic trace of `count` requests into the new folder `folder`, in files of 64 MB. Returns the size of all its entries in bytes.

    seed: the seed of the random numbers. Calls with the same `count` and `seed` write the same trace.
    """
    folder.mkdir(parents=True)
    meta = {
        "recorder": "synthetic",
        "run": f"synthetic-{count}",
        "wall_ms": WALL_MS,
        "at_ns": 0,
        "clock_ms": WALL_MS,
        "advertised": {"0": [0, 11], "1": [0, 17], "12": [0, 4]},
        "brokers": [{"id": 0, "rack": None}],
    }
    number = total = 0
    file, written = None, 0
    for entry in entries(count, seed):
        data = exchange(entry)
        if file is None or written + len(data) > FILE_BYTES:
            if file is not None:
                file.close()
            file = (folder / f"{meta['run']}-{number:05d}{SUFFIX}").open("wb")
            written = file.write(header({**meta, "file": number}))
            number += 1
        written += file.write(data)
        total += len(data)
    if file is not None:
        file.close()
    return total
