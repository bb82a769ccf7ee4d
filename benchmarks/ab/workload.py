"""Send requests to a cluster on a simulated clock, without sockets, to count instructions.

`benchmarks.ab` runs this program under callgrind. Each measurement (ROW) sends one kind of request.
The program imports no other file of benchmarks/. It is started once for each of the two commits to
compare, with that commit's folder on the path, and works even if a module has another place in the
older commit. Every measurement runs in a forked process of its own, so that
measurements cannot influence each other and the modules are imported once. A measurement first
warms up and checks each response, then sends its requests between two calls of `getpriority`, at
which callgrind dumps its counters. The garbage collector is off while instructions are counted.

Run it with the folder of a commit on the path: `PYTHONPATH=FOLDER python -P workload.py ROW...`. It
prints one JSON object per measurement.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

WARM_UP = 40
"""The number of requests before instructions are counted: Python specialises bytecode only after a few runs, and the broker fills its caches."""
REQUESTS = 100
STEP_MS = 100
"""The time in ms by which the virtual clock advances in one step while a response is pending."""
MOST_STEPS = 10_000
SMALL_VALUE, LARGE_VALUE = 100, 16_000
FAR_ABOVE = 1e12
"""A quota in bytes per second that is too high for any measurement of this module to reach."""
SMALL_QUOTA = 100.0
"""A quota in bytes per second that is so small that a few requests exceed it."""
THROTTLE_MS = 30_000
"""The time in ms by which the virtual clock advances to unmute all connections. No throttle time in a measurement is longer."""
JOIN_ATTEMPTS = 100
"""The number of JoinGroup requests that may be rejected, because the coordinator may still be loading."""
SESSION_PARTITIONS = 100
TIMESTAMP_MS = 1_700_000_000_000
"""The time, in ms since the epoch, at which the virtual clock (`ManualClock`) of a measurement starts."""

HOMES = {
    "VirtualCluster": ("kafkaproto.broker.testing.memory", "broker.testing.memory"),
    "Recorder": ("kafkaproto.broker.observe.recorder", "kafkaproto.broker.trace", "broker.trace"),
    "codec": ("kafkaproto.api",),
    "decode_response_header": ("kafkaproto.header",),
    "NewRecord": ("kafkaproto.records.batch",),
    "build_batch": ("kafkaproto.records.batch",),
}
"""Maps the name of an object to the modules that define it, one module for the newest commits and others for older commits.

The module of the newest commits comes first. A commit that moves an object adds the new module to this dict.
"""


class WorkloadError(Exception):
    """Raised if a measurement cannot run with the code of the measured commit, or if the broker's responses are not as intended."""


def find(name: str) -> Any:
    """Return the object `name` from the first of its possible modules (`HOMES`) that defines it. Raises WorkloadError if none does."""
    for place in HOMES[name]:
        try:
            module = importlib.import_module(place)
        except ModuleNotFoundError as error:
            if error.name is None or not (place == error.name or place.startswith(error.name + ".")):
                raise
            continue
        if hasattr(module, name):
            return getattr(module, name)
    raise WorkloadError(
        f"the benchmark needs {name}, which is defined in none of the modules {', '.join(HOMES[name])}; "
        "add the module that defines it to HOMES in benchmarks/ab/workload.py"
    )


def message(module: str, name: str, /, **fields: Any) -> Any:
    """Return a message, or a struct inside one, with the given field values.

    module: name of a module in `kafkaproto.messages`, such as "produce". name: name of a class in this module.
    """
    return getattr(importlib.import_module(f"kafkaproto.messages.{module}"), name)(**fields)


def batch(value_bytes: int) -> bytes:
    record = find("NewRecord")(b"x" * value_bytes, None, TIMESTAMP_MS)
    return bytes(find("build_batch")([record]))


class Peer:
    """The client's end of one connection: receives the bytes that the broker writes, counts the responses and keeps the latest one."""

    def __init__(self, cluster: Any, broker_id: int = 0) -> None:
        self.cluster = cluster
        self.client = cluster.connect(broker_id)
        self.client.write = self._take
        self.responses = 0
        self._latest: Sequence[Any] = ()

    def _take(self, buffers: Sequence[Any]) -> bool:
        self.responses += 1
        self._latest = buffers
        return True

    def deliver(self, frame: bytes) -> None:
        """Pass the bytes of a request to the connection, as a socket does. frame: the request with its length field."""
        connection, cluster, rest = self.client.connection, self.cluster, memoryview(frame)
        while len(rest):
            buffer = connection.get_buffer()
            count = min(len(buffer), len(rest))
            buffer[:count] = rest[:count]
            connection.received(count, cluster.now_ms)
            rest = rest[count:]
        cluster.run()

    def exchange(self, frame: bytes) -> None:
        """Deliver a request and advance the clock until its response is written. The client has one request in flight.

        frame: the request with its length field.
        """
        before = self.responses
        self.deliver(frame)
        self.await_response(before)

    def await_response(self, before: int) -> None:
        steps = 0
        while self.responses == before:
            self.cluster.advance(STEP_MS)
            steps += 1
            if steps > MOST_STEPS:
                raise WorkloadError(
                    f"the broker sent no response to a request within {MOST_STEPS * STEP_MS / 1000:.0f} seconds of virtual time"
                )

    def frame(self, request: Any, version: int) -> bytes:
        return bytes(self.client.frame(request, version))

    def ask(self, request: Any, key: int, version: int) -> Any:
        """Send one request and return its decoded response. key, version: API key and version of the request."""
        self.exchange(self.frame(request, version))
        return self.latest(key, version)

    def latest(self, key: int, version: int) -> Any:
        """Return the latest response, decoded. key, version: API key and version of the request that it answers.

        The broker may pass records as ranges of a log file instead of bytes; they are read from the file.
        """
        parts = [part.read() if hasattr(part, "read") else bytes(part) for part in self._latest]
        view = memoryview(b"".join(parts))[4:]
        _, at = find("decode_response_header")(key, version, view, 0, len(view))
        return find("codec")(key, version).decode_response(view, at, len(view))[0]


class Crowd(Peer):
    """Many connections of one client id, each of which sends one request.

    A throttled connection is muted. With a new connection for each request, the next request can be sent without waiting.
    """

    def __init__(self, cluster: Any) -> None:
        super().__init__(cluster)
        self._fresh: deque[Any] = deque()

    def frames(self, request: Any, version: int) -> Iterator[bytes]:
        """Yield the frame of a request endlessly. Before each frame, a new connection is opened, over which `exchange` sends the frame."""
        frame = self.frame(request, version)
        while True:
            client = self.cluster.connect()
            client.write = self._take
            self._fresh.append(client)
            yield frame

    def exchange(self, frame: bytes) -> None:
        if self._fresh:
            self.client = self._fresh.popleft()
        super().exchange(frame)

    def unmute(self) -> None:
        """Advance the clock until the throttle times of all connections have passed."""
        self.cluster.advance(THROTTLE_MS)


class Exchange(NamedTuple):
    """The values of a response that a measurement checks: throttle time, size of the records in bytes, and error codes other than 0."""

    throttle_ms: int
    record_bytes: int
    errors: list[int]


class Work(NamedTuple):
    """A measurement that is ready to run.

    key, version: API key and version of the measured request. frames: yields the frames of the requests to send. step: sends one frame and waits for
    the response. expected: a function that returns whether the broker did what the measurement is for, such as throttle the request; it gets an
    `Exchange`, the values of the response that measurements check. finish: called once after the last request; the CPU instructions that it takes
    belong to the measurement.
    """

    peer: Peer
    key: int
    version: int
    frames: Iterator[bytes]
    step: Callable[[bytes], None]
    expected: Callable[[Exchange], bool]
    finish: Callable[[], None] = lambda: None


def exchange_of(response: Any) -> Exchange:
    errors, record_bytes = [getattr(response, "error_code", 0)], 0
    for topic in getattr(response, "responses", None) or getattr(response, "topics", None) or ():
        errors.append(getattr(topic, "error_code", 0))
        for field in ("partitions", "partition_responses"):
            for partition in getattr(topic, field, ()):
                errors.append(partition.error_code)
                record_bytes += len(getattr(partition, "records", None) or b"")
    return Exchange(getattr(response, "throttle_time_ms", 0), record_bytes, [error for error in errors if error])


def unthrottled(exchange: Exchange) -> bool:
    return exchange.throttle_ms == 0


def throttled(exchange: Exchange) -> bool:
    return 0 < exchange.throttle_ms <= THROTTLE_MS and exchange.record_bytes == 0


def with_records(least: int, most: int) -> Callable[[Exchange], bool]:
    """Return a function that checks that a fetch is not throttled and has `least` to `most` bytes of records, both inclusive."""
    return lambda exchange: unthrottled(exchange) and least <= exchange.record_bytes <= most


# ---- clusters and requests -----------------------------------------------------------------------------------------------------


PRODUCE, FETCH, LIST_OFFSETS, METADATA, OFFSET_COMMIT, JOIN_GROUP, HEARTBEAT, SYNC_GROUP = 0, 1, 2, 3, 8, 11, 12, 14
ALTER_CLIENT_QUOTAS = 49
VERSIONS = {PRODUCE: 9, FETCH: 12, LIST_OFFSETS: 6, METADATA: 9, OFFSET_COMMIT: 8, HEARTBEAT: 4}


def cluster_with_topic(brokers: int = 1, partitions: int = 1) -> Any:
    cluster = find("VirtualCluster")(brokers)
    cluster.topic("t", partitions, brokers)
    return cluster


def produce_request(data: bytes, acks: int = 1) -> Any:
    partition = message("produce", "PartitionProduceData", index=0, records=data)
    topic = message("produce", "TopicProduceData", name="t", partition_data=[partition])
    return message("produce", "ProduceRequest", acks=acks, timeout_ms=30_000, topic_data=[topic])


def fetch_request(partitions: Iterable[int] = (0,), offset: int = 0, **fields: Any) -> Any:
    fetch_partitions = [
        message("fetch", "FetchPartition", partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        for index in partitions
    ]
    topics = [message("fetch", "FetchTopic", topic="t", partitions=fetch_partitions)] if fetch_partitions else []
    return message("fetch", "FetchRequest", **({"max_bytes": 1 << 30, "topics": topics} | fields))


def set_quota(peer: Peer, key: str, bytes_per_second: float) -> None:
    """Set a quota for the client id of `peer`. key: name of the quota, such as producer_byte_rate."""
    module = "alter_client_quotas"
    component = message(
        module, "AlterClientQuotasRequestEntityData", entity_type="client-id", entity_name=peer.client.client_id
    )
    change = message(module, "OpData", key=key, value=bytes_per_second)
    entry = message(module, "AlterClientQuotasRequestEntryData", entity=[component], ops=[change])
    response = peer.ask(message(module, "AlterClientQuotasRequest", entries=[entry]), ALTER_CLIENT_QUOTAS, 1)
    if [entry_result.error_code for entry_result in response.entries] != [0]:
        raise WorkloadError(f"the broker rejected the AlterClientQuotas request of the benchmark: {response}")


def record(cluster: Any) -> None:
    """Switch on the recording that `--trace` does, so that its cost is measured. The recorded entries are discarded instead of written to a file."""
    cluster.state.record(find("Recorder")(lambda data, entries: None, 64))


def fill(peer: Peer, value_bytes: int, batches: int) -> None:
    for _ in range(batches):
        check_response(exchange_of(peer.ask(produce_request(batch(value_bytes)), PRODUCE, 9)), unthrottled)


def again(peer: Peer, request: Any, key: int, expected: Callable[[Exchange], bool] = unthrottled) -> Work:
    """Return a measurement that sends one request over the connection `peer` repeatedly.

    key: the API key of the request. expected: takes the checked values of a response (`Exchange`), such as its throttle time, and returns whether the
    response is as intended.
    """
    frame = peer.frame(request, VERSIONS[key])
    return Work(peer, key, VERSIONS[key], iter(lambda: frame, None), peer.exchange, expected)


# ---- rows ----------------------------------------------------------------------------------------------------------------------


def produce_row(
    value_bytes: int, *, quota: float | None = None, recorded: bool = False, brokers: int = 1
) -> Callable[[], Work]:
    """Return a function that prepares a measurement of produce requests.

    The function creates a cluster with a topic of one partition; the requests go to the leader of this partition. value_bytes: size of the one record
    value in each request. quota: in bytes per second; None for no quota. recorded: whether to record all traffic. brokers: number of brokers; acks is
    1 for one broker, otherwise -1.
    """

    def prepare() -> Work:
        cluster = cluster_with_topic(brokers)
        peer = leader(cluster, brokers)
        if quota is not None:
            set_quota(peer, "producer_byte_rate", quota)
        if recorded:
            record(cluster)
        return again(peer, produce_request(batch(value_bytes), acks=1 if brokers == 1 else -1), PRODUCE)

    return prepare


def leader(cluster: Any, brokers: int) -> Peer:
    """Return a connection to the broker that leads the first partition of the cluster's only topic. brokers: the number of brokers in the cluster."""
    response = Peer(cluster).ask(metadata_request(), METADATA, VERSIONS[METADATA])
    leaders = [partition.leader_id for partition in response.topics[0].partitions]
    return Peer(cluster, leaders[0] if brokers > 1 else 0)


def fetch_row(
    value_bytes: int, batches: int, *, quota: float | None = None, recorded: bool = False
) -> Callable[[], Work]:
    """Return a function that prepares a measurement of fetches, each of which returns the whole log.

    value_bytes: size of each record's value. batches: number of batches in the log, of one record each. quota: in bytes per second; None for no
    quota. recorded: whether to record all traffic.
    """

    def prepare() -> Work:
        cluster = cluster_with_topic()
        peer = Peer(cluster)
        fill(peer, value_bytes, batches)
        if quota is not None:
            set_quota(peer, "consumer_byte_rate", quota)
        if recorded:
            record(cluster)
        records = batches * value_bytes
        return again(peer, fetch_request(), FETCH, with_records(records, records + 200 * batches))

    return prepare


def throttled_row(peer: Crowd, request: Any, key: int) -> Work:
    version = VERSIONS[key]
    return Work(peer, key, version, peer.frames(request, version), peer.exchange, throttled, peer.unmute)


def throttled_produce() -> Work:
    """Return a measurement of produce requests that the broker throttles.

    A large request before the measured requests exceeds the quota. The virtual clock does not move, so that each measured request is throttled.
    """
    peer = Crowd(cluster_with_topic())
    set_quota(peer, "producer_byte_rate", SMALL_QUOTA * 500)
    check_response(
        exchange_of(peer.ask(produce_request(batch(LARGE_VALUE * 60)), PRODUCE, VERSIONS[PRODUCE])), throttled
    )
    return throttled_row(peer, produce_request(batch(SMALL_VALUE)), PRODUCE)


def throttled_fetch() -> Work:
    """Return a measurement of fetches that the broker throttles.

    Without throttling, a fetch would return 2 KB. That is more than the quota allows in the whole time over which the broker measures the rate.
    """
    peer = Crowd(cluster_with_topic())
    fill(peer, LARGE_VALUE // 8, 1)
    set_quota(peer, "consumer_byte_rate", SMALL_QUOTA)
    return throttled_row(peer, fetch_request(), FETCH)


def metadata_request() -> Any:
    topic = message("metadata", "MetadataRequestTopic", name="t")
    return message("metadata", "MetadataRequest", topics=[topic])


def metadata() -> Work:
    return again(Peer(cluster_with_topic()), metadata_request(), METADATA)


def list_offsets() -> Work:
    partition = message("list_offsets", "ListOffsetsPartition", partition_index=0, timestamp=-1)
    topic = message("list_offsets", "ListOffsetsTopic", name="t", partitions=[partition])
    request = message("list_offsets", "ListOffsetsRequest", replica_id=-1, topics=[topic])
    return again(Peer(cluster_with_topic()), request, LIST_OFFSETS)


def member() -> tuple[Peer, str, int]:
    """Let a consumer join group "g" as its only member. Returns (connection, member id, generation)."""
    peer = Peer(cluster_with_topic())
    protocol = message("join_group", "JoinGroupRequestProtocol", name="range", metadata=b"m")
    join = message(
        "join_group",
        "JoinGroupRequest",
        group_id="g",
        session_timeout_ms=30_000,
        rebalance_timeout_ms=30_000,
        protocol_type="consumer",
        protocols=[protocol],
    )
    for _ in range(JOIN_ATTEMPTS):
        joined = peer.ask(join, JOIN_GROUP, 3)
        if joined.error_code == 0:
            break
        peer.cluster.advance(STEP_MS)
    else:
        raise WorkloadError(
            f"the broker rejected each of {JOIN_ATTEMPTS} JoinGroup requests of the benchmark to group g; "
            f"the last response: {joined}"
        )
    assignment = message("sync_group", "SyncGroupRequestAssignment", member_id=joined.member_id, assignment=b"a")
    sync = message(
        "sync_group",
        "SyncGroupRequest",
        group_id="g",
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        assignments=[assignment],
    )
    check_response(exchange_of(peer.ask(sync, SYNC_GROUP, 2)), unthrottled)
    return peer, joined.member_id, joined.generation_id


def heartbeat() -> Work:
    peer, member_id, generation = member()
    request = message("heartbeat", "HeartbeatRequest", group_id="g", generation_id=generation, member_id=member_id)
    return again(peer, request, HEARTBEAT)


def offset_commit() -> Work:
    peer, member_id, generation = member()
    partition = message("offset_commit", "OffsetCommitRequestPartition", partition_index=0, committed_offset=7)
    topic = message("offset_commit", "OffsetCommitRequestTopic", name="t", partitions=[partition])
    request = message(
        "offset_commit",
        "OffsetCommitRequest",
        group_id="g",
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[topic],
    )
    return again(peer, request, OFFSET_COMMIT)


def incremental_fetch() -> Work:
    peer = Peer(cluster_with_topic(partitions=SESSION_PARTITIONS))
    version = VERSIONS[FETCH]
    full = peer.ask(fetch_request(range(SESSION_PARTITIONS), session_epoch=0), FETCH, version)
    if not full.session_id:
        raise WorkloadError(
            f"the broker opened no fetch session for a fetch of all {SESSION_PARTITIONS} partitions, but this "
            "benchmark measures fetches of a session"
        )

    def frames() -> Iterator[bytes]:
        epoch = 0
        while True:
            epoch += 1
            yield peer.frame(fetch_request((), session_id=full.session_id, session_epoch=epoch), version)

    return Work(peer, FETCH, version, frames(), peer.exchange, with_records(0, 0))


def long_poll() -> Work:
    cluster = cluster_with_topic()
    consumer, producer = Peer(cluster), Peer(cluster)
    produced = producer.frame(produce_request(batch(SMALL_VALUE)), VERSIONS[PRODUCE])

    def frames() -> Iterator[bytes]:
        offset = 0
        while True:
            yield consumer.frame(fetch_request(offset=offset, max_wait_ms=500, min_bytes=1), VERSIONS[FETCH])
            offset += 1

    def step(frame: bytes) -> None:
        before, now_ms = consumer.responses, cluster.now_ms
        consumer.deliver(frame)
        if consumer.responses != before:
            raise WorkloadError(
                "the broker answered a long-poll Fetch request at once, but must wait for the next record"
            )
        producer.exchange(produced)
        consumer.await_response(before)
        if cluster.now_ms - now_ms >= 500:
            raise WorkloadError(
                "a Produce request did not complete the parked Fetch request of the benchmark before its wait time ended"
            )

    expected = with_records(SMALL_VALUE, SMALL_VALUE + 200)
    return Work(consumer, FETCH, VERSIONS[FETCH], frames(), step, expected)


ROWS: dict[str, Callable[[], Work]] = {
    "produce 100 B": produce_row(SMALL_VALUE),
    "produce 16 KB": produce_row(LARGE_VALUE),
    "produce 100 B, three replicas, acks=all": produce_row(SMALL_VALUE, brokers=3),
    "fetch 100 B": fetch_row(SMALL_VALUE, 1),
    "fetch 1 MB of 16 KB batches": fetch_row(LARGE_VALUE, 60),
    "fetch that waits, and the produce that completes it": long_poll,
    "incremental fetch of 100 partitions": incremental_fetch,
    "metadata": metadata,
    "list offsets": list_offsets,
    "heartbeat": heartbeat,
    "offset commit": offset_commit,
    "produce 100 B, quota not reached": produce_row(SMALL_VALUE, quota=FAR_ABOVE),
    "fetch 100 B, quota not reached": fetch_row(SMALL_VALUE, 1, quota=FAR_ABOVE),
    "produce 100 B, throttled": throttled_produce,
    "fetch 2 KB, throttled": throttled_fetch,
    "produce 100 B, recorded": produce_row(SMALL_VALUE, recorded=True),
    "fetch 100 B, recorded": fetch_row(SMALL_VALUE, 1, recorded=True),
}


# ---- running -------------------------------------------------------------------------------------------------------------------


def check_response(exchange: Exchange, expected: Callable[[Exchange], bool]) -> None:
    if exchange.errors:
        raise WorkloadError(
            f"unexpected response with errors: {exchange}; the requests of a benchmark must not cause errors"
        )
    if not expected(exchange):
        check = expected.__qualname__.partition(".")[0]
        raise WorkloadError(
            f"unexpected response with throttle time {exchange.throttle_ms} ms and {exchange.record_bytes} bytes of records: the function "
            f"{check} in benchmarks/ab/workload.py does not allow it for this benchmark"
        )


def marker() -> None:
    """Call the libc function (`getpriority`) at which callgrind dumps and resets its counters. Nothing else in the process calls it."""
    os.getpriority(os.PRIO_PROCESS, 0)


def run(name: str, requests: int) -> dict[str, Any]:
    """Run a measurement: warm up, then send `requests` requests between two calls of `marker`. name: the name of the measurement.

    Returns a description of the run as JSON values: the name, the process id, the file with the code of the virtual cluster (it shows which commit
    ran), the numbers of requests and of responses between the two calls, the number of checked responses, how many of the checked responses were
    throttled, and the size in bytes of the records in the last response.
    """
    work = ROWS[name]()
    exchanges: list[Exchange] = []

    def checked() -> None:
        work.step(next(work.frames))
        exchanges.append(exchange_of(work.peer.latest(work.key, work.version)))
        check_response(exchanges[-1], work.expected)

    for _ in range(WARM_UP):
        checked()
    frames = [next(work.frames) for _ in range(requests)]
    before, step = work.peer.responses, work.step
    gc.collect()
    gc.freeze()
    gc.disable()
    marker()
    for frame in frames:
        step(frame)
    work.finish()
    marker()
    gc.enable()
    responses = work.peer.responses - before
    if responses != requests:
        raise WorkloadError(
            f"benchmark {name} sent {requests} requests, but got {responses} responses; each request needs one response"
        )
    exchanges.append(exchange_of(work.peer.latest(work.key, work.version)))
    check_response(exchanges[-1], work.expected)
    return {
        "row": name,
        "pid": os.getpid(),
        "source": sys.modules[type(work.peer.cluster).__module__].__file__,
        "requests": requests,
        "responses": responses,
        "checked": len(exchanges),
        "throttled": sum(exchange.throttle_ms > 0 for exchange in exchanges),
        "record_bytes": exchanges[-1].record_bytes,
    }


def run_apart(name: str, requests: int) -> None:
    """Run a measurement in a forked process, and print its result or the reason for its failure, as JSON.

    name: the name of the measurement. requests: the number of requests to send.
    """
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
        return
    try:
        result = run(name, requests)
    except Exception as error:  # noqa: BLE001 - whatever fails is the result of this row
        result = {"row": name, "pid": os.getpid(), "error": f"{type(error).__name__}: {error}"}
    print(json.dumps(result), flush=True)
    os._exit(0)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="workload.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--requests",
        type=int,
        default=REQUESTS,
        help=f"number of requests whose instructions are counted, per row (default: {REQUESTS})",
    )
    parser.add_argument("rows", nargs="+", choices=list(ROWS), metavar="ROW", help="name of a measurement")
    options = parser.parse_args(arguments)
    imported = metadata()  # the broker and its handlers are imported before the first fork
    imported.step(next(imported.frames))
    sys.stdout.flush()
    for name in options.rows:
        run_apart(name, options.requests)
    return 0


if __name__ == "__main__":
    sys.exit(main())
