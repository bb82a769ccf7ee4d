"""The client of the benchmark `benchmarks.race`: a raw socket that sends frames built beforehand, and reads and discards the responses.

The benchmark uses this client for all programs that it compares.
"""

from __future__ import annotations

import selectors
import socket
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

from kafkaproto.api import ApiKey
from kafkaproto.client import read_response, request_frame
from kafkaproto.frame import read_frame, take_frame
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
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
    sock = socket.create_connection((host, int(port)))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def frame(version: int, request: object) -> bytes:
    """Return the frame of a request, with the length field at the beginning. version: API version."""
    return request_frame(request, version, 7, "race")


def read_exactly(sock: socket.socket, view: memoryview) -> None:
    while len(view):
        count = sock.recv_into(view)
        if not count:
            raise EOFError(
                f"the broker closed the connection although {len(view)} more bytes of a response were expected; "
                "look for the reason in the broker's log"
            )
        view = view[count:]


def read_response_frame(sock: socket.socket) -> bytes:
    return bytes(read_frame(sock.recv_into))


class NewTopic(NamedTuple):
    """A topic that `new_topic` has just created. name: name of the topic. leader: host:port of the leader of partition 0."""

    name: str
    leader: str


def new_topic(
    address: str, partitions: int = 1, replication: int = 1, assignments: list[CreatableReplicaAssignment] | None = None
) -> NewTopic:
    """Send CreateTopics for a new topic, wait until its partitions have leaders, and return the name of the topic and the leader's address.

    address: host:port of a broker. replication: the replication factor. assignments: the brokers of each partition; None to let the broker choose
    them. The minimal server of `benchmarks.floor` has no CreateTopics; it creates the topic when the first batch is written.
    """
    name = f"race-{uuid.uuid4().hex[:8]}"
    metadata = MetadataRequest([MetadataRequestTopic(name=name)])
    new = CreatableTopic(name, partitions, replication)
    if assignments is not None:
        new = CreatableTopic(name, -1, -1, assignments)
    try:
        created = ask(address, ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest([new]))
    except EOFError:
        with connect(address) as sock:
            sock.sendall(frame(4, metadata))
            read_response_frame(sock)
        return NewTopic(name, address)
    if created.topics[0].error_code:
        raise RuntimeError(
            f"the broker did not create topic {name}: error code {created.topics[0].error_code}, {created.topics[0].error_message}"
        )
    for _ in range(100):
        metadata_response = ask(address, ApiKey.METADATA, 4, metadata)
        partition_states = metadata_response.topics[0].partitions if metadata_response.topics else []
        if len(partition_states) == partitions and all(not p.error_code and p.leader_id >= 0 for p in partition_states):
            time.sleep(0.2)  # a broker reports a topic before it opens the log
            leader = next(p.leader_id for p in partition_states if p.partition_index == 0)
            return NewTopic(name, next(f"{b.host}:{b.port}" for b in metadata_response.brokers if b.node_id == leader))
        time.sleep(0.05)
    raise RuntimeError(
        f"the new topic {name} still has a partition without a leader after 100 checks; see the log of the broker"
    )


def new_topic_on_one_broker(address: str, partitions: int) -> NewTopic:
    """Create a topic whose partitions are all led by one broker, wait until they have leaders, and return the topic's name and leader.

    address: host:port of the broker that leads. partitions: number of partitions.
    """
    metadata_response = ask(address, ApiKey.METADATA, 4, MetadataRequest([]))
    if len(metadata_response.brokers) == 1:
        return new_topic(address, partitions)
    broker_id = next(b.node_id for b in metadata_response.brokers if f"{b.host}:{b.port}" == address)
    assignments = [CreatableReplicaAssignment(index, [broker_id]) for index in range(partitions)]
    return new_topic(address, partitions, assignments=assignments)


def delete_topic(address: str, name: str) -> None:
    """Delete a topic, so that its records do not slow down later measurements.

    The minimal server of `benchmarks.floor` has no DeleteTopics and keeps the topic.
    """
    with suppress(EOFError):
        ask(address, ApiKey.DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=[name], timeout_ms=30_000))


def ask(address: str, key: int, version: int, request: object) -> Any:
    """Send one request on a connection of its own and return the response.

    address: host:port of the broker. key, version: API key and version of the request. Raises EOFError if the broker closes the connection without a
    response.
    """
    with connect(address) as sock:
        sock.sendall(frame(version, request))
        try:
            response = read_response_frame(sock)
        except ConnectionError as error:
            raise EOFError(str(error)) from None
    return read_response(key, version, response).message


def batch_of(records: int, value_bytes: int) -> bytes:
    now_ms = int(time.time() * 1000)
    return build_batch([NewRecord(b"x" * value_bytes, None, now_ms)] * records)


def produce(address: str, topic: str, batch: bytes, count: int, acks: int = 1) -> float:
    """Write one batch `count` times with Produce v7, five requests in flight on one connection to the leader. Returns MB/s.

    address: host:port of the leader. acks: which replicas must store the batch: 1 for the leader only, -1 for all in-sync replicas.
    """
    data = _produce_frame(topic, batch, acks)
    sent = received = 0
    with connect(address) as sock:
        start = time.perf_counter()
        while received < count:
            while sent < count and sent - received < IN_FLIGHT:
                sock.sendall(data)
                sent += 1
            response = read_response_frame(sock)
            received += 1
            if received == 1:
                _check_produced(response)
        seconds = time.perf_counter() - start
    return count * len(batch) / seconds / 1e6


def _produce_frame(topic: str, batch: bytes, acks: int) -> bytes:
    data = [PartitionProduceData(0, batch)]
    return frame(7, ProduceRequest(None, acks, 30000, [TopicProduceData(topic, partition_data=data)]))


def produce_from_many(address: str, topic: str, batch: bytes, count: int) -> float:
    """Write one batch `count` times with Produce v7 and acks=1 from 64 connections, one request in flight on each. Returns MB/s.

    address: host:port of the leader of partition 0, to which the batches are written.
    """
    data = _produce_frame(topic, batch, acks=1)
    start = time.perf_counter()
    received = _on_many_connections(address, data, lambda responses, _: responses < count)
    return received * len(batch) / (time.perf_counter() - start) / 1e6


def _check_produced(response: bytes) -> None:
    topic = read_response(ApiKey.PRODUCE, 7, response).message.responses[0]
    error_code = topic.partition_responses[0].error_code
    if error_code:
        raise RuntimeError(f"a Produce request to topic {topic.name} returned error code {error_code}")


def fetch(address: str, topic: str, total_bytes: int) -> float:
    """Read `total_bytes` from the start of partition 0 with Fetch v11, in fetches of 10 MiB one after the other. Returns MB/s.

    address: host:port of the leader of the partition.
    """
    buffer = fetch_buffer()
    offset = read_bytes = 0
    with connect(address) as sock:
        start = time.perf_counter()
        while read_bytes < total_bytes:
            records = records_from(sock, buffer, topic, offset)
            whole = complete_bytes(records)
            last = None
            for last in batches(records[:whole]):  # noqa: B007 - only the last batch is needed
                pass
            assert last is not None
            offset = last.header.next_offset
            read_bytes += whole
        seconds = time.perf_counter() - start
    return read_bytes / seconds / 1e6


def fetch_buffer() -> memoryview:
    """Return a buffer that is large enough for any response that `records_from` receives."""
    return memoryview(bytearray(FETCH_BYTES + (1 << 20)))


def records_from(sock: socket.socket, buffer: memoryview, topic: str, offset: int) -> memoryview:
    """Fetch 10 MiB of partition 0, from `offset` on, with Fetch v11. Returns the records as a slice of the buffer.

    sock: a connection to the leader. buffer: memory for the response.
    """
    partition = FetchPartition(0, -1, offset, -1, -1, FETCH_BYTES)
    request = FetchRequest(
        max_wait_ms=500, min_bytes=1, max_bytes=FETCH_BYTES, topics=[FetchTopic(topic, partitions=[partition])]
    )
    sock.sendall(frame(11, request))
    response = read_response(ApiKey.FETCH, 11, read_frame(sock.recv_into, buffer))
    data = response.message.responses[0].partitions[0]
    if data.error_code or not data.records:
        raise RuntimeError(
            f"a fetch from {topic}-0 at offset {offset} must return records, but returned error code {data.error_code} "
            f"and {len(data.records or b'')} bytes of records"
        )
    records: memoryview = data.records
    return records


def round_trips(address: str, seconds: float = 1.0) -> float:
    """Measure round trips per second of Metadata v1 without topics, one at a time. seconds: how long to measure."""
    ask = frame(1, MetadataRequest([]))
    with connect(address) as sock:
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            sock.sendall(ask)
            read_response_frame(sock)
            count += 1
        return count / (time.perf_counter() - start)


def pipelined(address: str, seconds: float = 1.0) -> float:
    """Measure responses per second when 64 ApiVersions v0 requests are sent at once on one connection. seconds: how long to measure."""
    ask = frame(0, ApiVersionsRequest())
    with connect(address) as sock:
        sock.sendall(ask)
        responses = memoryview(bytearray((4 + len(read_response_frame(sock))) * PIPELINE_DEPTH))
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            sock.sendall(ask * PIPELINE_DEPTH)
            read_exactly(sock, responses)
            count += PIPELINE_DEPTH
        return count / (time.perf_counter() - start)


def many_connections(address: str, seconds: float = 1.5) -> float:
    """Measure round trips per second of Metadata v1 on 64 connections at once. seconds: how long to measure."""
    data = frame(1, MetadataRequest([]))
    start = time.perf_counter()
    count = _on_many_connections(address, data, lambda _, elapsed: elapsed < seconds)
    return count / (time.perf_counter() - start)


def _on_many_connections(address: str, data: bytes, go_on: Callable[[int, float], bool]) -> int:
    """Send the frame `data` on 64 connections, and again on each connection when its response arrives. Returns the number of responses.

    go_on: a function of (number of responses so far, seconds since the start) that returns whether to continue.
    """
    selector = selectors.DefaultSelector()
    parts: dict[socket.socket, bytearray] = {}
    for _ in range(CONNECTIONS):
        sock = connect(address)
        parts[sock] = bytearray()
        selector.register(sock, selectors.EVENT_READ)
        sock.sendall(data)
    count, start = 0, time.perf_counter()
    while go_on(count, time.perf_counter() - start):
        for key, _ in selector.select(0.2):
            sock = key.fileobj  # type: ignore[assignment]
            part = parts[sock]
            part += sock.recv(65536)
            if take_frame(part) is not None:
                count += 1
                sock.sendall(data)
    selector.close()
    for sock in parts:
        sock.close()
    return count


def fetch_many_partitions(address: str, topic: str, partitions: int, incremental: bool, seconds: float = 1.0) -> float:
    """Measure how many fetches per second a broker handles if each fetch covers all partitions of a topic without records.

    partitions: the number of partitions. incremental: whether to send incremental fetches of one fetch session instead of full fetches. seconds: how
    long to measure.
    """
    requested = [FetchPartition(i, -1, 0, -1, -1, FETCH_BYTES) for i in range(partitions)]
    full = FetchRequest(max_bytes=FETCH_BYTES, session_epoch=0, topics=[FetchTopic(topic, partitions=requested)])
    with connect(address) as sock:

        def exchange(request: FetchRequest) -> Any:
            sock.sendall(frame(11, request))
            return read_response(ApiKey.FETCH, 11, read_response_frame(sock)).message

        session = exchange(full)
        if session.error_code or sum(len(t.partitions) for t in session.responses) != partitions:
            raise RuntimeError(
                f"a full fetch of {partitions} partitions failed: error code {session.error_code}, "
                f"{sum(len(t.partitions) for t in session.responses)} partitions returned"
            )
        if not incremental:
            full.session_epoch = -1
            data = frame(11, full)
        count, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            if incremental:
                data = frame(
                    11,
                    FetchRequest(max_bytes=FETCH_BYTES, session_id=session.session_id, session_epoch=count + 1),
                )
            sock.sendall(data)
            read_response_frame(sock)
            count += 1
        return count / (time.perf_counter() - start)
