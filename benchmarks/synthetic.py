"""Synthetic traces of any size from a seed: produces, fetches and heartbeats of many connections, one of which has half of all traffic.

Frames are made by the codec once and then patched, so that ten million requests take minutes. What they say is consistent: offsets go
on, every batch is read, times go forward; so rules have something to check, and hold.
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
"""What stands in a template where a value belongs."""
WIDTHS = {CORRELATION: ">i", OFFSET: ">q", END: ">q", PARTITION: ">i"}
TOPIC = "synthetic"
PRODUCE_VERSION, FETCH_VERSION, HEARTBEAT_VERSION = 7, 11, 3

BATCH = build_batch([NewRecord(bytes(RECORD_BYTES), None, WALL_MS) for _ in range(RECORDS)])
HEAD = batch_heads(BATCH)


class Template:
    """A frame in which values are replaced: bytes, and where each value stands."""

    def __init__(self, frame: bytes) -> None:
        self._frame = frame
        self._places = [
            (found.start(), struct.Struct(width), value)
            for value, width in WIDTHS.items()
            for found in re.finditer(re.escape(struct.pack(width, value)), frame)
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


def answer(head: bytes) -> FetchResponse:
    data = PartitionData(PARTITION, 0, END, last_stable_offset=END, log_start_offset=0, records=head)
    return FetchResponse(responses=[FetchableTopicResponse(TOPIC, partitions=[data])])


def entries(count: int, seed: int) -> Iterator[Exchange]:
    """`count` exchanges in the order of their answers."""
    dice = random.Random(seed)
    stored = struct.pack(">q", OFFSET) + HEAD[8:]
    wanted = FetchPartition(PARTITION, fetch_offset=OFFSET, partition_max_bytes=1 << 20)
    asked = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=1 << 20, topics=[FetchTopic(TOPIC, partitions=[wanted])]
    )
    wrote = ProduceRequest(
        None, 1, 1000, [TopicProduceData(TOPIC, partition_data=[PartitionProduceData(PARTITION, HEAD)])]
    )
    answered = ProduceResponse(
        [TopicProduceResponse(TOPIC, partition_responses=[PartitionProduceResponse(PARTITION, 0, OFFSET)])]
    )
    beat = HeartbeatRequest("group", 1, "member", None)
    requests = {
        (key, i): request(version, message, f"client-{i:02}")
        for key, version, message in (
            (ApiKey.PRODUCE, PRODUCE_VERSION, wrote),
            (ApiKey.FETCH, FETCH_VERSION, asked),
            (ApiKey.HEARTBEAT, HEARTBEAT_VERSION, beat),
        )
        for i in range(CONNECTIONS)
    }
    responses = {
        ApiKey.PRODUCE: response(ApiKey.PRODUCE, PRODUCE_VERSION, answered),
        ApiKey.FETCH: response(ApiKey.FETCH, FETCH_VERSION, answer(stored)),
        ApiKey.HEARTBEAT: response(ApiKey.HEARTBEAT, HEARTBEAT_VERSION, HeartbeatResponse()),
    }
    ends, read, asks = [0] * CONNECTIONS, [0] * CONNECTIONS, [0] * CONNECTIONS
    records = (len(BATCH),)
    for seq in range(1, count + 1):
        i = 0 if dice.random() < 0.5 else dice.randrange(1, CONNECTIONS)
        asks[i] += 1
        at_ns = seq * NS_PER_REQUEST
        die = dice.random()
        key = ApiKey.HEARTBEAT if die < 0.1 else ApiKey.PRODUCE if die < 0.55 or read[i] == ends[i] else ApiKey.FETCH
        values = {CORRELATION: asks[i], PARTITION: i, OFFSET: 0, END: ends[i]}
        sent = got = ()
        if key == ApiKey.PRODUCE:
            values[OFFSET] = ends[i]
            ends[i] += RECORDS
            sent = records
        elif key == ApiKey.FETCH:
            values[OFFSET] = read[i]
            read[i] += RECORDS
            got = records
        asking, answering = requests[key, i].filled(values), responses[key].filled(values)
        yield Exchange(
            seq, 0, i + 1, WALL_MS + at_ns // 1_000_000, at_ns, at_ns + 5_000, at_ns + 20_000, at_ns + 25_000, 0, True, False, False,
            len(asking) + (records[0] - len(HEAD) if sent else 0), len(answering) + (records[0] - len(HEAD) if got else 0),
            asking, answering, sent, got, WALL_MS + at_ns // 1_000_000,
        )  # fmt: skip


def write(folder: Path, count: int, seed: int = 1) -> int:
    """A trace of `count` requests in files of 64 MB; its bytes."""
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
    for one in entries(count, seed):
        data = exchange(one)
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
