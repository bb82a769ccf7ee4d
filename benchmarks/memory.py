"""Measure the memory of a broker with much data, many partitions or many connections.

Each measurement starts its own broker process and observes it from outside. The program writes
docs/benchmarks.md.

The measurements are:
records: 5 GB of records in one partition, which a client reads three times
replicas: as `records`, but with three brokers and three replicas of the partition
partitions: 10,000 partitions with 100 records each, all in memory (`--memory 256M`)
partitions-on-disk: 10,000 partitions with 100 records each, mostly in files (`--memory 1M`)
partitions-kept: 10,000 partitions with 100 records each, in a data directory (`--data-dir`)
connections: 1,000 connections, each with a fetch that waits for records
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import selectors
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.programs import choice_of
from benchmarks.raw_client import batch_of, connect, fetch_buffer, frame, read_response_frame, records_from
from benchmarks.report import add_limitation, limitation, write_section
from kafkaproto.api import ApiKey
from kafkaproto.client import read_response
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

MB = 1e6
IN_FLIGHT = 200
DESCRIPTORS = 1024
Row = tuple[str, str, str]


class Broker:
    """A running broker process. `resident()` returns its resident memory in bytes, `descriptors()` the number of its open file descriptors."""

    def __init__(self, process: subprocess.Popen[str], address: str) -> None:
        self.process = process
        self.address = address

    def resident(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
        return int(line.split()[1]) * 1024

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


@contextmanager
def broker(*options: str, descriptors: int | None = None) -> Iterator[Broker]:
    def limit() -> None:
        if descriptors is not None:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))

    command = [sys.executable, "-m", "kafkaproto.broker", "--port", "0", "--log-level", "error", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=limit)
    assert process.stdout is not None
    try:
        yield Broker(process, process.stdout.readline().strip())
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()


def create(sock: socket.socket, name: str, partitions: int, replicas: int = 1) -> None:
    sock.sendall(frame(4, CreateTopicsRequest([CreatableTopic(name, partitions, replicas)], 60_000)))
    frame_bytes = read_response_frame(sock)
    response = read_response(ApiKey.CREATE_TOPICS, 4, frame_bytes).message
    if response.topics[0].error_code:
        raise RuntimeError(
            f"the broker did not create topic {name}: error code {response.topics[0].error_code}, {response.topics[0].error_message}"
        )


def produce(sock: socket.socket, topic: str, partition: int, batch: bytes, count: int = 1) -> None:
    """Send the same batch `count` times, with up to 200 requests in flight, and check every response. sock: a connection to the broker."""
    request = ProduceRequest(
        None, 1, 30_000, [TopicProduceData(topic, partition_data=[PartitionProduceData(partition, batch)])]
    )
    data = frame(7, request)
    sent = received = 0
    while received < count:
        new_requests = min(IN_FLIGHT, count - sent) if sent - received < IN_FLIGHT else 0
        sock.sendall(data * new_requests)
        sent += new_requests
        for _ in range(min(IN_FLIGHT, sent - received)):
            response = read_response_frame(sock)
            # After the correlation id: one topic, its name, one partition, its index, and then the error code.
            at = 4 + 4 + 2 + len(topic) + 4 + 4
            if response[at : at + 2] != bytes(2):
                raise RuntimeError(
                    f"a Produce request to {topic}-{partition} returned error code {int.from_bytes(response[at : at + 2], 'big')}"
                )
            received += 1


def read_all(sock: socket.socket, topic: str, batch_bytes: int, count: int) -> None:
    """Fetch the first `count` batches of partition 0. Each has one record and a size of `batch_bytes`. sock: a connection to the broker."""
    buffer = fetch_buffer()
    offset = 0
    while offset < count:
        offset += len(records_from(sock, buffer, topic, offset)) // batch_bytes


def much_data(total_bytes: int, replicas: int, reads: int = 3) -> list[Row]:
    batch = batch_of(1, 1024 - len(batch_of(1, 0)))
    count = total_bytes // len(batch)
    with broker("--brokers", str(replicas)) as running, connect(running.address) as sock:
        create(sock, "t", 1, replicas)
        largest = 0
        for _ in range(10):
            produce(sock, "t", 0, batch, count // 10)
            largest = max(largest, running.resident())
        for _ in range(reads):
            read_all(sock, "t", len(batch), count // 10 * 10)
            largest = max(largest, running.resident())
    title = f"{total_bytes / 1e9:g} GB in batches of 1 KB, read {reads} times, {replicas} replica{'s' if replicas > 1 else ''}"
    return [(title + ": resident, MB", f"{largest / MB:.0f}", "< 200")]


def many_partitions(partitions: int, *options: str, records: int = 100) -> list[Row]:
    batch = batch_of(records, 100)
    with (
        broker(*options, descriptors=DESCRIPTORS) as running,
        connect(running.address) as sock,
    ):
        create(sock, "t", partitions)
        for index in range(partitions):
            produce(sock, "t", index, batch)
        resident, descriptors = running.resident(), running.descriptors()
    title = f"{partitions:,} partitions with {records} records of 100 B, {options[0]}"
    if options[0] == "--memory":
        title += f" {options[1]}"
    return [
        (title + ": resident, MB", f"{resident / MB:.0f}", "< 300"),
        (title + ": descriptors", str(descriptors), f"< {DESCRIPTORS}"),
    ]


def many_partitions_kept() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        return many_partitions(10_000, "--data-dir", folder)


def many_connections(connections: int, seconds: float, per_second: int = 300) -> list[Row]:
    """Measure a broker's memory per connection while all connections wait in a long poll, and how soon after an append a response arrives.

    connections: number of connections, each of which waits for a record in a partition of its own. Another process appends a record to one partition
    after the other for `seconds` seconds, `per_second` times per second. The time is measured from just before the append until the response to the
    long poll has arrived. Returns table rows for docs/benchmarks.md, each a tuple (measurement, value, goal) of texts.
    """
    with broker() as running, connect(running.address) as control:
        create(control, "t", connections)
        before = running.resident()
        selector = selectors.DefaultSelector()
        for index in range(connections):
            sock = connect(running.address)
            selector.register(sock, selectors.EVENT_READ, index)
            _park(sock, index, 0)
        read_metadata_response(control)
        after = running.resident()
        start, stamps = multiprocessing.Event(), multiprocessing.SimpleQueue()
        appender = multiprocessing.Process(
            target=_append_in_turn, args=(running.address, connections, per_second, seconds, start, stamps)
        )
        appender.start()
        start.set()
        woken: dict[tuple[int, int], float] = {}
        offsets = [0] * connections
        appended: list[tuple[int, int, float]] = []
        while len(woken) < int(per_second * seconds):
            for key, _ in selector.select(10):
                sock, index = key.fileobj, key.data
                assert isinstance(sock, socket.socket)
                read_response_frame(sock)
                woken[(index, offsets[index])] = time.perf_counter()
                offsets[index] += 1
                _park(sock, index, offsets[index])
        appended = stamps.get()
        appender.join()
        for key in list(selector.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        selector.close()
    late = sorted(woken[(index, offset)] - at for index, offset, at in appended)
    p99_ms = late[int(len(late) * 0.99)] * 1000
    return [
        (
            f"{connections:,} connections in a long poll: KB each",
            f"{(after - before) / connections / 1000:.1f}",
            "< 40",
        ),
        (f"p99 response time at {per_second} appends a second, ms", f"{p99_ms:.1f}", "< 50"),
    ]


def _park(sock: socket.socket, index: int, offset: int) -> None:
    request = FetchRequest(max_wait_ms=600_000, min_bytes=1, max_bytes=1 << 20)
    request.topics = [FetchTopic("t", partitions=[FetchPartition(index, -1, offset, -1, -1, 1 << 20)])]
    sock.sendall(frame(11, request))


def read_metadata_response(sock: socket.socket) -> None:
    """Send 100 Metadata requests one after the other, and discard the responses. sock: a connection to the broker.

    The only purpose is to give the broker time to read requests that were sent on other connections before.
    """
    from kafkaproto.messages.metadata import MetadataRequest

    for _ in range(100):
        sock.sendall(frame(4, MetadataRequest([])))
        read_response_frame(sock)


def _append_in_turn(
    address: str,
    connections: int,
    per_second: int,
    seconds: float,
    start: multiprocessing.synchronize.Event,
    stamps: multiprocessing.SimpleQueue[list[tuple[int, int, float]]],
) -> None:
    batch = batch_of(1, 100)
    offsets = [0] * connections
    appended = []
    with connect(address) as sock:
        start.wait()
        start_s = time.perf_counter()
        for number in range(int(per_second * seconds)):
            index = number % connections
            time.sleep(max(0.0, start_s + number / per_second - time.perf_counter()))
            appended.append((index, offsets[index], time.perf_counter()))
            produce(sock, "t", index, batch)
            offsets[index] += 1
    stamps.put(appended)


WORKS: dict[str, Callable[[], list[Row]]] = {
    "records": lambda: much_data(5_000_000_000, 1),
    "replicas": lambda: much_data(5_000_000_000, 3),
    "partitions": lambda: many_partitions(10_000, "--memory", "256M"),
    "partitions-on-disk": lambda: many_partitions(10_000, "--memory", "1M"),
    "partitions-kept": many_partitions_kept,
    "connections": lambda: many_connections(1000, 10),
}


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "what",
        nargs="*",
        type=choice_of(WORKS),
        metavar="WORK",
        help="names of the measurements to run, see the list above (default: all)",
    )
    add_limitation(parser)
    options = parser.parse_args(arguments)
    chosen = options.what or list(WORKS)
    rows: list[Row] = []
    for work in chosen:
        work_rows = WORKS[work]()
        rows += work_rows
        for row in work_rows:
            print("  ".join(row), flush=True)
    if chosen == list(WORKS):
        write_section(
            "memory",
            "Memory",
            "python -m benchmarks.memory",
            "The resident memory of the broker's process, measured from outside. It does not include memory files (`--memory`, 256M)."
            + limitation(options.limitation),
            ("measurement", "value", "goal"),
            rows,
        )


if __name__ == "__main__":
    main()
