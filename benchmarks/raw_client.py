"""The client side of the race: one raw socket, frames built beforehand, answers read and thrown away. Shared by all racers alike."""

from __future__ import annotations

import selectors
import socket
import time
import uuid

from kafkaproto.api import ApiKey, codec
from kafkaproto.frame import finish_frame, start_frame
from kafkaproto.header import RequestHeader, decode_response_header, encode_request_header
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.records.batch import NewRecord, batches, build_batch, complete_bytes

IN_FLIGHT = 5
FETCH_BYTES = 10 * 1024 * 1024
PIPELINE_DEPTH = 64
CONNECTIONS = 64


def connect(address: str) -> socket.socket:
    host, port = address.rsplit(":", 1)
    made = socket.create_connection((host, int(port)))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def frame(key: int, version: int, request: object) -> bytes:
    out = start_frame()
    encode_request_header(RequestHeader(key, version, 7, "race"), out)
    codec(key, version).encode_request(request, out, None)
    finish_frame(out)
    return bytes(out)


def read_exactly(sock: socket.socket, view: memoryview) -> None:
    while len(view):
        count = sock.recv_into(view)
        if not count:
            raise EOFError("the broker closed the connection")
        view = view[count:]


def read_answer(sock: socket.socket) -> bytes:
    length = bytearray(4)
    read_exactly(sock, memoryview(length))
    body = bytearray(int.from_bytes(length, "big"))
    read_exactly(sock, memoryview(body))
    return bytes(body)


def new_topic(address: str) -> str:
    """A topic of one partition, made by asking for it."""
    name = f"race-{uuid.uuid4().hex[:8]}"
    ask = frame(ApiKey.METADATA, 4, MetadataRequest([MetadataRequestTopic(name=name)]))
    with connect(address) as sock:
        for _ in range(3):
            sock.sendall(ask)
            read_answer(sock)
            time.sleep(0.02)
    return name


def batch_of(records: int, value_bytes: int) -> bytes:
    now_ms = int(time.time() * 1000)
    return build_batch([NewRecord(b"x" * value_bytes, None, now_ms)] * records)


def produce(address: str, topic: str, batch: bytes, count: int) -> float:
    """MB/s of Produce v7 with acks=1, five in flight on one connection."""
    request = ProduceRequest(None, 1, 30000, [TopicProduceData(topic, partition_data=[PartitionProduceData(0, batch)])])
    data = frame(ApiKey.PRODUCE, 7, request)
    sent = answered = 0
    with connect(address) as sock:
        begun = time.perf_counter()
        while answered < count:
            while sent < count and sent - answered < IN_FLIGHT:
                sock.sendall(data)
                sent += 1
            answer = read_answer(sock)
            answered += 1
            if answered == 1:
                _check_produced(answer)
        seconds = time.perf_counter() - begun
    return count * len(batch) / seconds / 1e6


def _check_produced(answer: bytes) -> None:
    response, _ = codec(ApiKey.PRODUCE, 7).decode_response(memoryview(answer), 4, len(answer))
    error = response.responses[0].partition_responses[0].error_code
    if error:
        raise RuntimeError(f"produce answered error {error}")


def fetch(address: str, topic: str, total_bytes: int) -> float:
    """MB/s of Fetch v11 of 10 MiB each, one after the other, until everything was read."""
    api = codec(ApiKey.FETCH, 11)
    buffer = memoryview(bytearray(FETCH_BYTES + (1 << 20)))
    offset = done = 0
    with connect(address) as sock:
        begun = time.perf_counter()
        while done < total_bytes:
            wanted = FetchPartition(0, -1, offset, -1, -1, FETCH_BYTES)
            request = FetchRequest(
                max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=[FetchTopic(topic, partitions=[wanted])]
            )
            sock.sendall(frame(ApiKey.FETCH, 11, request))
            length = bytearray(4)
            read_exactly(sock, memoryview(length))
            size = int.from_bytes(length, "big")
            read_exactly(sock, buffer[:size])
            _, at = decode_response_header(ApiKey.FETCH, 11, buffer, 0, size)
            response, _ = api.decode_response(buffer, at, size)
            data = response.responses[0].partitions[0]
            if data.error_code or not data.records:
                raise RuntimeError(
                    f"fetch at {offset} answered error {data.error_code}, {len(data.records or b'')} bytes"
                )
            whole = complete_bytes(data.records)
            last = None
            for last in batches(data.records[:whole]):  # noqa: B007 - walked to its end
                pass
            assert last is not None
            offset = last.header.next_offset
            done += whole
        seconds = time.perf_counter() - begun
    return done / seconds / 1e6


def round_trips(address: str, seconds: float = 1.0) -> float:
    """Metadata v1 without topics, one at a time, a second."""
    ask = frame(ApiKey.METADATA, 1, MetadataRequest([]))
    with connect(address) as sock:
        count, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            sock.sendall(ask)
            read_answer(sock)
            count += 1
        return count / (time.perf_counter() - begun)


def pipelined(address: str, seconds: float = 1.0) -> float:
    """ApiVersions v0, 64 sent at once, answers a second."""
    ask = frame(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    with connect(address) as sock:
        sock.sendall(ask)
        answers = memoryview(bytearray((4 + len(read_answer(sock))) * PIPELINE_DEPTH))
        count, begun = 0, time.perf_counter()
        while time.perf_counter() - begun < seconds:
            sock.sendall(ask * PIPELINE_DEPTH)
            read_exactly(sock, answers)
            count += PIPELINE_DEPTH
        return count / (time.perf_counter() - begun)


def many_connections(address: str, seconds: float = 1.5) -> float:
    """Metadata v1 round trips on 64 connections at once, a second."""
    ask = frame(ApiKey.METADATA, 1, MetadataRequest([]))
    selector = selectors.DefaultSelector()
    parts: dict[socket.socket, bytearray] = {}
    for _ in range(CONNECTIONS):
        sock = connect(address)
        parts[sock] = bytearray()
        selector.register(sock, selectors.EVENT_READ)
        sock.sendall(ask)
    count, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        for key, _ in selector.select(0.2):
            sock = key.fileobj  # type: ignore[assignment]
            part = parts[sock]
            part += sock.recv(65536)
            if len(part) >= 4 and len(part) >= 4 + int.from_bytes(part[:4], "big"):
                part.clear()
                count += 1
                sock.sendall(ask)
    elapsed = time.perf_counter() - begun
    selector.close()
    for sock in parts:
        sock.close()
    return count / elapsed
