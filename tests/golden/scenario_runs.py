"""Golden runs that need several requests: waiting, sessions, conversion, replication, quotas, connections."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import accumulate, count
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kafkaproto.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.elect_leaders import ElectLeadersRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kafkaproto.records.batch import TRANSACTIONAL
from tests.golden.batches import COMPRESSED, batch, message_set, values
from tests.golden.recording import RACKS, START_MS, RecordedClient
from tests.golden.world import World, commit, find_coordinator, join, metadata, produce, sync

TOPIC, BROKER = 2, 4
Scenario = Callable[[Callable[..., World]], World]
SCENARIOS: dict[str, Scenario] = {}


def scenario(function: Scenario) -> Scenario:
    SCENARIOS[function.__name__] = function
    return function


def run_scenario(semantics: str, name: str) -> list[str]:
    return SCENARIOS[name](partial(World, semantics=semantics)).finish()


def change_config(world: World, kind: int, name: str, **configs: str) -> Any:
    changes = [AlterableConfig(key.replace("_", "."), 0, value) for key, value in configs.items()]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(kind, name, changes)])
    return world.send(world.connect(client_id="admin"), request)


def hold(world: World, *broker_ids: int, topic: str = "t", index: int = 0, at: int | None = None) -> None:
    """Stop these followers from fetching records, or only records at or above offset `at`."""
    for broker_id in broker_ids:
        for fetcher in world.state.nodes[broker_id].replicas.fetchers.values():
            if (topic, index) in fetcher.partitions:
                fetcher.hold(topic, index, at, world.now_ms)


def release(world: World, *broker_ids: int, topic: str = "t", index: int = 0) -> None:
    for broker_id in broker_ids:
        world.state.nodes[broker_id].replicas.release(topic, index)
    world.run()


@scenario
def long_poll(new: Callable[..., World]) -> World:
    """Run fetches that wait: for bytes, until a timeout, for a client that disconnects, for a topic that is deleted."""
    world = new()
    world.topic("t", 2, 3)
    readers = [world.connect(world.leader("t"), f"reader-{i}") for i in range(5)]
    for reader, (wait_ms, min_bytes) in zip(
        readers, ((500, 1), (300, 1), (500, 200), (500, 1), (2000, 10_000)), strict=True
    ):
        world.send(reader, world.fetch(("t", 0, 0), max_wait_ms=wait_ms, min_bytes=min_bytes))
    readers[3].hang_up()
    world.advance(100)
    world.append("t", batch(b"first"))
    world.advance(100)
    world.append("t", batch(*values(10)))
    world.advance(400)
    for reader in readers[:2]:
        world.send(reader, world.fetch(("t", 0, 11), max_wait_ms=300, session=(0, 0)))
        world.send(reader, metadata("t"))
    world.advance(350)
    world.send(readers[0], world.fetch(("t", 0, 11), max_wait_ms=5000))
    world.send(world.connect(), DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=1000))
    world.advance(10_000)
    return world


@scenario
def fetch_sessions(new: Callable[..., World]) -> World:
    """Create, use, change, refuse and evict fetch sessions."""
    world = new(config={"max.incremental.fetch.session.cache.slots": "2"}).prepare()
    for version in (7, 12, 17):
        leader = world.leader("orders")
        at = world.connect(leader, f"v{version}")
        others = [i for i in range(3) if world.leader("orders", i) == leader]

        def ask(*places: tuple[str, int, int], at: RecordedClient = at, version: int = version, **options: Any) -> Any:
            ids = {name: world.topic_id(name) for name in ("orders", "table", "payments", "missing")}
            request = world.fetch(*places, **options)
            for forgotten in request.forgotten_topics_data:
                forgotten.topic_id = ids[forgotten.topic]
            response = world.send(at, request, version)
            world.advance(20)
            return response

        session = ask(*(("orders", i, 0) for i in others), ("table", 0, 0), session=(0, 0)).session_id
        ask(session=(session, 1))
        world.append("orders", batch(b"more"), others[0])
        ask(session=(session, 2))
        ask(("orders", others[0], 6), session=(session, 3))
        ask(("missing", 0, 0), session=(session, 4))
        ask(session=(session, 5), forgotten=(("table", 0), ("missing", 0)))
        ask(session=(session, 9))
        ask(session=(session, 6), max_wait_ms=100)
        world.advance(150)
        ask(session=(77, 1))
        ask(session=(77, 0))
        for number in range(3):
            world.advance(1000)
            ask(("orders", others[0], 0), session=(0, 0), at=world.connect(leader, f"other-{number}"))
        ask(session=(session, 7))
        ask(("orders", others[0], 0), session=(session, -1))
        world.advance(200_000)
        for overtaking in (2, -1, 0):  # on another connection, while a fetch of the session waits
            end = ask(("orders", others[0], 0), session=(0, 0)).responses[0].partitions[0].high_watermark
            session = ask(("orders", others[0], end), session=(0, 0)).session_id
            ask(session=(session, 1), max_wait_ms=500)
            ask(session=(session, overtaking), at=world.connect(leader, "overtakes"))
            world.append("orders", batch(b"for the one that waits"), others[0])
            world.advance(600)
    return world


@scenario
def down_conversion(new: Callable[..., World]) -> World:
    """Fetch batches of every codec and old message sets in every version."""
    world = new()
    world.topic("t", 1, 1)
    world.topic("appended", 1, 1, message_timestamp_type="LogAppendTime")
    world.topic("refused", 1, 1, message_downconversion_enable="false")
    world.topic("packed", 1, 1, compression_type="uncompressed")
    for topic in ("t", "appended", "refused", "packed"):
        for data, version in (
            (batch(*values(3), keys=True, headers=True), 9),
            (message_set(b"old", b"older", magic=0), 1),
            (message_set(b"newer", None, magic=1, keys=True), 2),
            *((COMPRESSED[name], 9) for name in ("gzip", "snappy", "lz4")),
        ):
            world.append(topic, data, version=version)
    for version in range(18):
        reader = world.connect(world.leader("t"), f"v{version}")
        for offset in (0, 2, 4, 9, 30):
            world.send(reader, world.fetch(("t", 0, offset)), version)
        for topic in ("appended", "refused", "packed"):
            world.send(world.connect(world.leader(topic)), world.fetch((topic, 0, 0)), version)
        world.send(reader, world.fetch(("t", 0, 0), partition_max=60, max_bytes=100), version)
    world.append("t", COMPRESSED["zstd"])
    for version in (0, 2, 3, 9, 10):
        world.send(world.connect(world.leader("t")), world.fetch(("t", 0, 42)), version)
    world.send(world.connect(world.leader("t")), produce("t", COMPRESSED["zstd"]), 6)
    return world


@scenario
def acks_of_all(new: Callable[..., World]) -> World:
    """Send produces that wait for followers, time out, find too few replicas, or need no response."""
    world = new(config={"replica.lag.time.max.ms": "2000"})
    world.topic("t", 1, 3, min_insync_replicas="2")
    writer, other = world.connect(world.leader("t")), world.connect(world.leader("t"))
    world.send(writer, produce("t", batch(b"at once"), acks=-1))
    followers = [i for i in range(3) if i != world.leader("t")]
    hold(world, *followers)
    world.send(writer, produce("t", batch(b"waits"), acks=-1, timeout_ms=10_000))
    world.send(writer, metadata("t"))
    world.send(other, produce("t", batch(b"times out"), acks=-1, timeout_ms=300))
    world.send(other, produce("t", batch(b"leader only"), acks=1))
    world.send(other, world.fetch(("t", 0, 0), max_wait_ms=100))
    world.advance(400)
    release(world, followers[0])
    world.advance(3000)
    release(world, followers[1])
    world.advance(3000)
    hold(world, *followers)
    for acks in (-1, 1, 0):
        world.send(other, produce("t", batch(b"more"), acks=acks, timeout_ms=5000))
    world.advance(6000)
    world.send(other, produce("t", batch(b"too few"), acks=-1, timeout_ms=1000))
    disconnecting = world.connect(world.leader("t"))
    world.send(disconnecting, produce("t", batch(b"from one that goes"), acks=1))
    release(world, *followers)
    world.send(disconnecting, produce("t", batch(b"waits again"), acks=-1))
    disconnecting.hang_up()
    world.advance(1000)
    return world


@scenario
def replication_quotas(new: Callable[..., World]) -> World:
    """Throttle followers by the leader's and by their own rate, and fetch in the name of followers (KIP-73)."""
    world = new(config={"replica.lag.time.max.ms": "1000"})
    world.topic("t", 1, 3)
    world.topic("free", 1, 3)
    leader = world.leader("t")
    followers = [i for i in range(3) if i != leader]
    hold(world, *followers)
    for _ in range(6):
        world.append("t", batch(*values(20, 200)), acks=1)
    world.advance(3000)
    lists = dict.fromkeys(("leader_replication_throttled_replicas", "follower_replication_throttled_replicas"), "*")
    change_config(world, TOPIC, "t", **lists)
    change_config(world, BROKER, str(leader), leader_replication_throttled_rate="3000")
    change_config(world, BROKER, str(followers[0]), follower_replication_throttled_rate="1000")
    release(world, *followers)
    follower_client = world.connect(leader, "follower")
    for _ in range(12):
        world.send(follower_client, world.fetch(("t", 0, 0), ("free", 0, 0), replica_id=followers[1], max_wait_ms=100))
        world.append("free", batch(b"free"), acks=1)
        world.record_metrics()
        world.advance(1000)
    change_config(world, BROKER, str(leader), leader_replication_throttled_rate="1000000")
    world.advance(60_000)
    world.send(follower_client, metadata("t", "free"))
    return world


@scenario
def closest_replica(new: Callable[..., World]) -> World:
    """Fetch from the leader and from followers as consumers that name their rack (KIP-392)."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    world = new(config={"replica.selector.class": selector}).prepare()
    hold(world, 2, topic="orders")
    world.append("orders", batch(b"not everywhere"), acks=1)
    for version in (10, 11, 12, 17):
        for broker_id in range(3):
            for rack in ("a", "b", "c", "z", ""):
                reader = world.connect(broker_id, f"in {rack}")
                world.send(reader, world.fetch(("orders", 0, 0), rack=rack, max_wait_ms=20), version)
                world.send(reader, world.fetch(("orders", 0, 6), rack=rack), version)
                world.advance(50)
    world.state.stop_broker(2)
    world.run()
    for rack in ("a", "b", "c"):
        world.send(world.connect(world.leader("orders")), world.fetch(("orders", 0, 0), rack=rack))
    return world


@scenario
def producers_with_ids(new: Callable[..., World]) -> World:
    """Produce with producer ids, duplicates and gaps; all transactional requests are rejected."""
    world = new()
    world.topic("t", 1, 3)
    client = world.connect(world.leader("t"))
    producer_id = world.send(client, InitProducerIdRequest(None, 1000)).producer_id

    def write(first: int, epoch: int = 0, count: int = 2, **options: Any) -> None:
        data = batch(*values(count), producer_id=producer_id, producer_epoch=epoch, base_sequence=first, **options)
        world.send(client, produce("t", data, acks=-1))
        world.advance(5)

    for first in (0, 2, 2, 0, 7, 4):
        write(first)
    write(0, epoch=1)
    write(6, epoch=0)
    write(2, epoch=1, attributes=TRANSACTIONAL)
    transactional = produce(
        "t", batch(*values(2), producer_id=9, producer_epoch=0, base_sequence=0), transactional_id="t"
    )
    world.send(client, transactional)
    world.send(client, InitProducerIdRequest("transaction", 1000))
    for version in (1, 3, 6):
        world.send(client, find_coordinator("transaction", key_type=1), version)
    write(1, epoch=3)
    world.advance(90_000_000)
    write(9, epoch=1)
    return world


def framed(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def header(key: int, version: int, correlation_id: int = 7, client_id: bytes | None = b"x") -> bytes:
    return struct.pack(">hhih", key, version, correlation_id, -1 if client_id is None else len(client_id)) + (
        client_id or b""
    )


@scenario
def malformed_frames(new: Callable[..., World]) -> World:
    """Send invalid frames: only their connection is closed."""
    world = new(config={"socket.request.max.bytes": "10000"}).prepare()
    bystander = world.connect(client_id="bystander")
    whole = bystander.frame(metadata("orders"), 9, 3)
    old = bystander.frame(metadata("orders"), 1, 3)
    frames = [
        struct.pack(">i", -1),
        struct.pack(">i", 10_001),
        struct.pack(">i", 2**31 - 1),
        framed(b""),
        framed(b"\x00\x03"),
        framed(header(3, 1)[:-1]),
        framed(header(3, 1)),
        framed(header(999, 0)),
        framed(header(-1, 0)),
        framed(header(3, 99)),
        framed(header(3, -1)),
        framed(header(18, 99)),
        framed(header(18, 99, client_id=None)),
        framed(header(18, 99)[:9]),
        framed(header(4, 0)),
        framed(header(3, 1) + struct.pack(">i", 2**31 - 1)),
        framed(header(3, 1) + struct.pack(">ih", 1, -5)),
        framed(header(3, 1) + struct.pack(">ih", 1, 3) + b"\xff\xfe\xfd"),
        framed(header(0, 9) + b"\xff" * 30),
        framed(header(1, 11) + b"\x00" * 10),
        framed(old[4:] + b"behind"),
        framed(whole[4:-1]),
        framed(whole[4:] + b"\x00"),
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(500),
        whole[:10],
    ]
    for data in frames:
        client = world.connect(client_id="strange")
        client.raw = True
        client.send_bytes(data)
        client.send_bytes(old)
        world.advance(7)
    good = world.connect()
    good.expect(3, ApiKey.METADATA, 1)
    for at in range(0, len(old), 5):
        good.send_bytes(old[at : at + 5])
    world.send(bystander, metadata("orders"), 1)
    return world


@scenario
def forced_throttles(new: Callable[..., World]) -> World:
    """Force throttles by rules, independent of quotas."""
    return _forced(new().prepare())


@scenario
def forced_throttles_that_hold_responses(new: Callable[..., World]) -> World:
    """Force throttles in a release that sends the response after the throttle."""
    return _forced(new(release="1.1").prepare())


def _forced(world: World) -> World:
    rules = world.state.forced_throttles
    first = rules.add(ForcedThrottle(700, "Produce", client_id="x", times=2))
    second = rules.add(ForcedThrottle(300, "Fetch", broker_id=world.leader("orders")))
    leader = world.leader("orders")
    x, y = world.connect(leader, "x"), world.connect(leader, "y")
    for client in (x, y):
        for acks in (1, 0, -1):
            world.send(client, produce("orders", world.records(b"v"), acks=acks))
        world.send(client, world.fetch(("orders", 0, 0)))
        world.send(client, world.fetch(("orders", 0, 0), session=(0, 0)))
        world.send(client, metadata("orders"))
    world.advance(5000)
    rules.cancel(second)
    rules.cancel(first)
    rules.add(ForcedThrottle(50, "Metadata", user="ANONYMOUS", times=1))
    rules.add(ForcedThrottle(900, times=3))
    world.send(world.connect(leader, "follower"), world.fetch(("orders", 0, 0), replica_id=(leader + 1) % 3))
    world.limit("x", producer_byte_rate=100.0, consumer_byte_rate=100.0)
    for client in (x, y):
        world.send(client, metadata("orders"))
        world.send(client, produce("orders", world.records(*values(50, 100))))
        world.send(client, world.fetch(("orders", 0, 0), max_wait_ms=100))
    x.finish()
    world.advance(100_000)
    rules.add(ForcedThrottle(500, "Produce"))
    for acks in (0, 1):
        disconnecting = world.connect(leader, "gone")
        world.send(disconnecting, produce("orders", world.records(b"v"), acks=acks))
        world.advance(100)
        disconnecting.hang_up()
    world.advance(1000)
    return world


@scenario
def connection_quotas(new: Callable[..., World]) -> World:
    """Refuse, delay and throttle connections by number and by rate (KIP-612)."""
    world = new(
        brokers=2,
        config={
            "0.max.connections.per.ip": "3",
            "0.max.connections.per.ip.overrides": "10.0.0.9:1",
            "1.max.connections": "4",
            "1.max.connection.creation.rate": "2",
            "quota.window.num": "2",
        },
    )
    world.limit(None, ip="10.0.0.5", connection_creation_rate=1.0)
    clients = [world.connect(0, address="10.0.0.1") for _ in range(4)]
    clients += [world.connect(0, address="10.0.0.9") for _ in range(2)]
    clients += [world.connect(0, address="10.0.0.5") for _ in range(4)]
    world.advance(5000)
    clients[0].hang_up()
    clients += [world.connect(0, address="10.0.0.1") for _ in range(2)]
    clients += [world.connect(1, address=f"10.1.0.{i}") for i in range(8)]
    for client in clients:
        if client.closed_ms is None and client.served_ms is not None and not client.connection.closed:
            world.send(client, metadata())
    for _ in range(5):
        world.advance(1000)
        served = [c for c in clients if c.served_ms is not None and c.closed_ms is None and not c.connection.closed]
        served[-1].hang_up()
    world.advance(10_000)
    return world


@scenario
def mutation_quotas(new: Callable[..., World]) -> World:
    """Create and delete partitions faster than allowed, in strict and in permissive versions (KIP-599)."""
    world = new(config={"controller.quota.window.num": "10"})
    world.limit(controller_mutation_rate=2.0)
    for create, delete, add in ((7, 6, 3), (5, 4, 2)):
        client = world.connect()

        def topics(*named: tuple[str, int]) -> list[CreatableTopic]:
            return [CreatableTopic(name, partitions, 1) for name, partitions in named]

        world.send(client, CreateTopicsRequest(topics(("tried", 30)), validate_only=True), create)
        world.send(client, CreateTopicsRequest(topics(("a", 30), ("b", 30))), create)
        world.send(client, metadata())
        world.advance(3000)
        world.send(client, CreateTopicsRequest(topics(("c", 1))), create)
        world.advance(3000)
        more = [CreatePartitionsTopic(name, 40, None) for name in ("a", "b")]
        world.send(client, CreatePartitionsRequest(more, 1000), add)
        world.advance(20_000)
        names = ["a", "b", "c"]
        request = DeleteTopicsRequest([DeleteTopicState(name) for name in names], names, 1000)
        world.send(client, request, delete)
        world.send(client, metadata(everything=True))
        world.advance(60_000)
        world.send(client, request, delete)
        world.advance(60_000)
    world.limit(request_percentage=1.0)
    for cost_ms in (500.0, 5.0):
        world.state.set_request_cost("CreateTopics", cost_ms)
        client = world.connect()
        for number in range(2):
            topic_requests = [CreatableTopic(f"costly-{cost_ms}-{number}", (21, 30)[number], 1)]
            world.send(client, CreateTopicsRequest(topic_requests), 5)  # permissive
            world.record_metrics()
            world.advance(60_000)
    return world


@scenario
def journal_topic(new: Callable[..., World]) -> World:
    """Publish the journal as a topic and read it."""
    world = new(journal_topic="__journal").prepare()
    world.advance(200)
    world.limit("limited", producer_byte_rate=1000.0)
    writer = world.connect(world.leader("orders"), "limited")
    world.send(writer, produce("orders", batch(*values(40, 200))))
    reader = world.connect(world.leader("orders"), "reader")
    world.send(reader, world.fetch(("orders", 0, 0), partition_max=300))
    world.advance(200)
    world.append("orders", batch(b"more"))
    world.state.forced_throttles.add(ForcedThrottle(70, times=1))
    world.send(reader, metadata("orders"))
    world.advance(500)
    world.state.stop_broker(1)
    world.run()
    world.advance(500)
    world.state.start_broker(1)
    world.run()
    world.advance(500)
    tail = world.connect(world.leader("__journal"), "tail")
    world.send(tail, world.fetch(("__journal", 0, 0)))
    world.send(tail, metadata("__journal"))
    world.advance(500)
    world.send(tail, world.fetch(("__journal", 0, 0)), 4)
    return world


@scenario
def pipelining(new: Callable[..., World]) -> World:
    """Pipeline requests on several connections that are muted in turn, send partial frames, and close the sending direction."""
    world = new().prepare()
    leader = world.leader("orders")
    world.limit("limited", producer_byte_rate=2000.0)
    clients = [world.connect(leader, name) for name in ("limited", "free", "limited", None)]
    for client in clients:
        frames = b""
        for number in range(1, 8):
            request: Any = produce("orders", batch(*values(20, 100))) if number % 2 else metadata("orders")
            version = 9 if number % 2 else 5
            frames += client.next_frame(request, version)
        for at in range(0, len(frames), 1500):
            client.send_bytes(frames[at : at + 1500])
    world.advance(500)
    for client in clients[1:]:
        world.send(client, world.fetch(("orders", 0, 0), partition_max=100))
        world.send(client, metadata("payments"))
        client.finish()
    world.advance(120_000)
    many = world.connect(leader, "many")
    frames = b""
    for _ in range(200):
        frames += many.next_frame(ApiVersionsRequest(), 0)
    many.send_bytes(frames)
    world.advance(1)
    waiting = world.connect(leader, "waiting")
    world.send(waiting, world.fetch(("orders", 0, 500), max_wait_ms=400), 9)
    waiting.send_bytes(waiting.next_frame(ApiVersionsRequest(), 0))
    waiting.finish()
    world.advance(1000)
    return world


@scenario
def request_time(new: Callable[..., World]) -> World:
    """Throttle by handling time, alone and together with bytes (KIP-124)."""
    return _request_time(new().prepare())


@scenario
def request_time_that_holds_responses(new: Callable[..., World]) -> World:
    """Throttle by handling time in a release that sends the response after the throttle."""
    return _request_time(new(release="1.0").prepare())


def _request_time(world: World) -> World:
    world.limit("limited", request_percentage=1.0, producer_byte_rate=3000.0, consumer_byte_rate=3000.0)
    world.limit("zero", request_percentage=0.0001)
    for name, cost_ms in (("Metadata", 40.0), ("Produce", 3.0), ("Fetch", 200.0), ("Heartbeat", 1.0)):
        world.state.set_request_cost(name, cost_ms)
    leader = world.leader("orders")
    for name in ("limited", "zero", "free"):
        client = world.connect(leader, name)
        for _ in range(4):
            world.send(client, metadata("orders"))
            world.advance(300)
        world.send(client, produce("orders", world.records(*values(60, 150))))
        world.advance(30_000)
        world.send(client, world.fetch(("orders", 0, 0)))
        world.send(client, produce("orders", world.records(b"v"), acks=0))
        world.advance(30_000)
        world.send(client, world.fetch(("orders", 0, 500), max_wait_ms=100))
        world.send(client, world.fetch(("orders", 0, 0), replica_id=(leader + 1) % 3))
        world.record_metrics()
        world.advance(60_000)
    world.limit("limited", request_percentage=None, producer_byte_rate=None)
    world.send(world.connect(leader, "limited"), metadata("orders"))
    return world


@scenario
def fetch_quota(new: Callable[..., World]) -> World:
    """Fetch repeatedly under a byte rate, with and without a session."""
    world = new().prepare()
    world.append("orders", batch(*values(100, 100)))
    world.limit("limited", consumer_byte_rate=2000.0)
    leader = world.leader("orders")
    polling, in_session = world.connect(leader, "limited"), world.connect(leader, "limited")
    session = 0
    for number in range(30):
        world.send(polling, world.fetch(("orders", 0, 5), partition_max=15_000))
        epoch = 0 if not session else number
        places = () if session else (("orders", 0, 5),)
        response = world.send(in_session, world.fetch(*places, session=(session, epoch), max_wait_ms=50))
        session = session or (response.session_id if response else 0)
        world.advance(700)
        if number % 10 == 9:
            world.record_metrics()
            world.append("orders", batch(*values(50, 100)))
    world.advance(30_000)
    return world


@scenario
def two_quotas_at_once(new: Callable[..., World]) -> World:
    """Throttle one request by bytes and handling time: the larger time counts, or their sum where responses are delayed."""
    return _two_quotas(new().prepare())


@scenario
def two_quotas_at_once_that_hold_responses(new: Callable[..., World]) -> World:
    """Exceed two quotas at once in a release that sends the response after the throttle."""
    return _two_quotas(new(release="1.1").prepare())


def _two_quotas(world: World) -> World:
    """Throttle every request for a second by handling time. `ratio`: bytes to byte rate; 10.5 adds a throttle of half a second, 11 of one."""
    for api in ("Produce", "Fetch"):
        world.state.set_request_cost(api, 400.0)
    leader = world.leader("orders")
    request, fetch_request = produce("orders", world.records(*values(60, 150))), world.fetch(("orders", 0, 0))
    reader = world.connect(leader, "unlimited")
    world.send(reader, fetch_request)
    sizes = len(reader.frame(request, world.highest("Produce"))) - 4, _charged_bytes(world, reader)
    for ratio in (10.5, 12.0, 40.0):
        for sent, size, quota in zip(
            (request, fetch_request), sizes, ("producer_byte_rate", "consumer_byte_rate"), strict=True
        ):
            name = f"{quota} at {ratio}"
            world.limit(name, request_percentage=1.0, **{quota: float(int(size / ratio))})
            client = world.connect(leader, name)
            for _ in range(3):
                world.send(client, sent)
                world.record_metrics()
                world.advance(61_000)
    _equal_throttles(world)
    return world


def _charged_bytes(world: World, client: RecordedClient) -> int:
    """Return the charged bytes of the newest response: its body and 4 bytes."""
    flexible = world.highest("Fetch") >= 12
    return client.answers[-1].size_bytes - (1 if flexible else 0)


def _equal_throttles(world: World) -> None:
    """Throttle for a second by bytes and by handling time: the sizes are the first ones divisible by 11."""
    world.topic("equal", 1, 1)
    leader = world.leader("equal")
    measuring = world.connect(leader, "equal to measure")  # names of equal length: the client id is part of the size
    throttled = set()
    for offset in range(40):
        request = produce("equal", world.records(b"x" * (2000 + offset)))
        world.send(world.connect(leader), request)
        fetch_request = world.fetch(("equal", 0, offset), partition_max=1)
        world.send(measuring, fetch_request)
        written = len(measuring.frame(request, world.highest("Produce"))) - 4
        for name, sent, size, quota in (
            ("equal to produce", request, written, "producer_byte_rate"),
            ("equal to consume", fetch_request, _charged_bytes(world, measuring), "consumer_byte_rate"),
        ):
            if size % 11 == 0 and name not in throttled:
                throttled.add(name)
                client = world.connect(leader, name)
                world.limit(name, request_percentage=1.0, **{quota: size / 11})
                world.send(client, sent)
                world.record_metrics()
                world.advance(61_000)
        if len(throttled) == 2:
            break


@scenario
def quota_entities(new: Callable[..., World]) -> World:
    """Change the quotas of users, client-ids, both, and defaults while clients are throttled."""
    world = new().prepare()
    leader = world.leader("orders")
    data = batch(*values(30, 200))

    def round_of(*names: str) -> None:
        for name in names:
            client = world.connect(leader, name)
            world.send(client, produce("orders", data))
            world.send(client, produce("orders", data))
            client.hang_up()
        world.record_metrics()
        world.advance(40_000)

    world.limit("a", producer_byte_rate=1000.0)
    round_of("a", "b")
    world.limit(None, user="ANONYMOUS", producer_byte_rate=2000.0)
    round_of("a", "b")
    world.limit("a", user="ANONYMOUS", producer_byte_rate=500.0)
    round_of("a", "b")
    world.limit("a", user="ANONYMOUS", producer_byte_rate=None)
    muted = world.connect(leader, "b")
    world.send(muted, produce("orders", data))
    world.send(muted, produce("orders", data))
    world.send(muted, metadata("orders"))
    world.limit(None, user="ANONYMOUS", producer_byte_rate=None)
    world.advance(100_000)
    round_of("a", "b")
    world.advance(4_000_000)
    round_of("a", "b")
    return world


@scenario
def brokers_and_leaders(new: Callable[..., World]) -> World:
    """Stop and start brokers, elect leaders, shrink and extend the ISR, and truncate logs."""
    world = new(config={"replica.lag.time.max.ms": "1000", "unclean.leader.election.enable": "true"}).prepare()
    client = world.connect(1)

    def look() -> None:
        at = world.connect(1)
        world.send(at, metadata("orders", "payments"))
        for replica_id in (-1, 0):
            topics = [
                OffsetForLeaderTopic(
                    "orders", [OffsetForLeaderPartition(i, -1, e) for i in range(3) for e in (0, 1, 2)]
                )
            ]
            world.send(at, OffsetForLeaderEpochRequest(replica_id, topics))
        for index in range(3):
            if world.leader("orders", index) >= 0:
                leader = world.connect(world.leader("orders", index))
                world.send(leader, world.fetch(("orders", index, 0), epoch=0))
                world.send(leader, world.fetch(("orders", index, 3), last_epoch=0))
                world.append("orders", batch(b"after"), index)
        world.advance(50)

    waiting = world.connect(world.leader("orders"))
    world.send(waiting, world.fetch(("orders", 0, 5), max_wait_ms=5000))
    hold(world, 2, topic="orders")
    world.append("orders", batch(b"one"), acks=1)
    world.state.stop_broker(0)
    world.run()
    look()
    world.advance(3000)
    world.state.start_broker(0)
    world.run()
    look()
    release(world, 2, topic="orders")
    world.advance(3000)
    world.send(client, ElectLeadersRequest(0, None))
    look()
    for broker_id in (0, 2):
        world.state.stop_broker(broker_id)
        world.run()
        world.advance(100)
    look()
    world.state.start_broker(2)
    world.run()
    world.advance(2000)
    look()
    return world


@scenario
def retention_and_compaction(new: Callable[..., World]) -> World:
    """Roll, expire and compact segments while clients read."""
    world = new(config={"log.retention.check.interval.ms": "1000", "log.cleaner.backoff.ms": "1000"})
    world.topic("short", 1, 2, retention_ms="5000", segment_bytes="1000", segment_ms="2000")
    world.topic("small", 1, 2, retention_bytes="3000", segment_bytes="1000")
    world.topic("table", 1, 2, cleanup_policy="compact", segment_bytes="1000", min_cleanable_dirty_ratio="0.01")
    for number in range(12):
        for topic in ("short", "small"):
            world.append(topic, batch(*values(5, 60)))
        world.append("table", batch(b"%d" % number, None if number % 4 == 3 else b"x" * 100, keys=True))
        world.advance(1500)
        for topic in ("short", "small", "table"):
            world.send(world.connect(world.leader(topic)), world.fetch((topic, 0, 0)))
    world.state.log_manager.compaction.clean("table", 0, world.now_ms)
    world.run()
    world.send(world.connect(world.leader("table")), world.fetch(("table", 0, 0)))
    world.advance(100_000)
    for topic in ("short", "small", "table"):
        world.send(world.connect(world.leader(topic)), world.fetch((topic, 0, 0)))
    return world


@scenario
def idle_connections(new: Callable[..., World]) -> World:
    """Let idle connections be closed, including muted and waiting ones."""
    world = new(config={"connections.max.idle.ms": "1000"}).prepare()
    world.limit("limited", producer_byte_rate=100.0)
    leader = world.leader("orders")
    silent, busy, muted, waiting = (world.connect(leader, name) for name in ("silent", "busy", "limited", "waiting"))
    for _ in range(2):
        world.send(muted, produce("orders", batch(*values(20, 100))))
    world.send(waiting, world.fetch(("orders", 0, 500), max_wait_ms=5000), 9)
    half = world.connect(leader, "half")
    half.send_bytes(half.frame(metadata(), 1, 1)[:6])
    for _ in range(4):
        world.advance(400)
        world.send(busy, metadata())
    world.advance(5000)
    assert silent.closed_ms is not None
    return world


@scenario
def group_rebalances(new: Callable[..., World]) -> World:
    """Let members join late, leave, expire and return as static members; groups become empty and lose their coordinator."""
    world = new(config={"group.initial.rebalance.delay.ms": "300", "group.max.size": "3"}).prepare()
    members = [world.at_coordinator("g", f"member-{i}") for i in range(4)]
    ids = [world.join(member, "g") for member in members[:2]]
    world.advance(300)
    world.advance(300)

    def newest(member: RecordedClient) -> Any:
        return member.answers[-1].message

    generation = newest(members[0]).generation_id
    leader, follower = ids
    world.send(members[1], sync("g", follower, generation))
    world.send(members[0], sync("g", leader, generation, {leader: b"left", follower: b"right"}))
    world.advance(100)
    third = world.join(members[2], "g", instance="static-1")
    world.send(members[0], HeartbeatRequest("g", generation, leader))
    world.send(members[0], join("g", leader))
    world.advance(6000)
    world.send(members[0], DescribeGroupsRequest(["g"]))
    world.join(members[3], "g")
    world.advance(6000)
    world.send(members[3], join("g", "", instance="static-1"))
    world.advance(3000)
    world.send(members[2], HeartbeatRequest("g", generation + 1, third, "static-1"))
    world.send(members[0], commit("g", ("orders", 0, 1), member_id=leader, generation=generation))
    world.send(members[0], LeaveGroupRequest("g", leader, [MemberIdentity(leader), MemberIdentity("", "static-1")]))
    world.advance(100)
    world.send(members[0], DescribeGroupsRequest(["g"]))
    world.advance(40_000)
    world.send(members[0], DescribeGroupsRequest(["g"]))
    waiting = world.at_coordinator("h", "waiting")
    world.send(waiting, join("h"), 3)
    waiting.hang_up()
    world.advance(1000)
    world.state.stop_broker(world.coordinator("g"))
    world.run()
    client = world.connect(next(node.broker_id for node in world.state.nodes if node.running))
    world.send(client, find_coordinator("g"))
    world.send(world.at_coordinator("g"), DescribeGroupsRequest(["g", "h"]))
    return world


@scenario
def settings_changed_while_running(new: Callable[..., World]) -> World:
    """Change topic and broker settings that apply from the next request."""
    world = new().prepare()
    client = world.connect(world.leader("orders"))
    change_config(world, TOPIC, "orders", max_message_bytes="100")
    world.send(client, produce("orders", batch(*values(5, 50))))
    change_config(world, TOPIC, "orders", max_message_bytes="1000000", message_timestamp_type="LogAppendTime")
    world.send(client, produce("orders", batch(*values(5, 50))))
    change_config(world, BROKER, "", message_max_bytes="120", log_retention_ms="1000")
    world.send(world.connect(world.leader("payments")), produce("payments", batch(*values(5, 50))))
    change_config(world, TOPIC, "table", cleanup_policy="delete")
    change_config(world, BROKER, "0", max_connections_per_ip="1")
    world.connect(0)
    world.send(client, metadata("orders"))
    world.advance(400_000)
    world.send(client, world.fetch(("orders", 0, 0)))
    world.state.reset()
    world.run()
    world.send(world.connect(1), metadata(everything=True))
    return world


@scenario
def data_directory(new: Callable[..., World]) -> World:
    """Write records to files, and recover them in a second process after the first was killed."""
    with tempfile.TemporaryDirectory() as folder:
        first = new(data_dir=folder, seed=3).prepare()
        first.limit("limited", producer_byte_rate=1000.0)
        first.send(first.at_coordinator("g"), commit("g", ("orders", 0, 2), ("payments", 0, 9)))
        first.send(first.connect(), InitProducerIdRequest(None, 1000))
        change_config(first, TOPIC, "orders", retention_ms="100000000")
        reader = first.connect(first.leader("payments"))
        for version in (2, 4, 17):
            first.send(reader, first.fetch(("payments", 0, 0)), version)
        assert first.state.persistence is not None
        first.state.persistence.abandon()
        first.state.record(None)
        second = new(data_dir=folder, seed=3, clock=ManualClock(START_MS + 60_000))
        second.lines[:0] = first.lines
        second.send(second.connect(), metadata(everything=True))
        for topic in ("orders", "payments", "table"):
            at = second.connect(second.leader(topic))
            second.send(at, second.fetch((topic, 0, 0)))
            second.send(at, produce(topic, batch(b"second", keys=True), acks=-1))
        second.send(second.connect(), InitProducerIdRequest(None, 1000))
        second.advance(20_000)
        second.send(second.connect(second.leader("orders")), second.fetch(("orders", 0, 0)))
        return _finished_inside(second)


def _finished_inside(world: World) -> World:
    """Finish the run while its folder exists."""
    lines = world.finish()
    world.finish = lambda: lines  # type: ignore[method-assign]
    return world


# ---- single rules: without these runs, a broker that breaks one of them would pass --------------------------------------------


def log_end(world: World, topic: str, index: int = 0) -> int:
    """Return the log end offset of the leader."""
    replicas = world.state.nodes[world.leader(topic, index)].replicas
    return int(replicas.partitions[(topic, index)].log.log_end_offset)


def replicas_of(world: World, topic: str, index: int = 0) -> tuple[int, ...]:
    """Return the brokers of a partition, the preferred leader first."""
    state = world.state.controller.image.partition(topic, index)
    assert state is not None
    return tuple(state.replicas)


def delete_records(world: World, topic: str, index: int, offset: int, version: int | None = None) -> Any:
    request = DeleteRecordsRequest([DeleteRecordsTopic(topic, [DeleteRecordsPartition(index, offset)])], 500)
    return world.send(world.connect(world.leader(topic, index), "admin"), request, version)


@scenario
def session_news(new: Callable[..., World]) -> World:
    """Check which partitions an incremental response carries, and their order (S-6, S-9)."""
    world = new(brokers=1)
    world.topic("t", 3, 1)
    for index in range(3):
        world.append("t", batch(*values(6)), index)
    for number, version in enumerate((7, 12, 17)):
        reader = world.connect(0, f"v{version}")
        ends = [("t", index, log_end(world, "t", index)) for index in range(3)]
        session = world.send(reader, world.fetch(*ends, session=(0, 0)), version).session_id
        epochs = count(1)

        def poll(
            *places: tuple[str, int, int],
            reader: RecordedClient = reader,
            session: int = session,
            epochs: Iterator[int] = epochs,
            version: int = version,
            **options: Any,
        ) -> None:
            world.send(reader, world.fetch(*places, session=(session, next(epochs)), **options), version)
            world.advance(5)

        poll()
        world.append("t", batch(b"moves to the end"), 1)
        poll()
        for index in range(3):
            world.append("t", batch(b"in the new order"), index)
        poll()
        world.append("t", batch(b"no room"), 2)
        poll(max_bytes=1)  # the high watermark of partition 2 moves, and its records do not fit
        ends = [("t", index, log_end(world, "t", index)) for index in range(3)]
        poll(*ends)
        poll()
        delete_records(world, "t", 1, number + 1)
        poll()  # only the log start of partition 1 has changed
        poll(("t", 0, 1000))
        poll(ends[0])  # the high watermark equals the one before the error
        poll()
    return world


@scenario
def preferred_replica_in_a_session(new: Callable[..., World]) -> World:
    """Run incremental fetches that return a partition only for its preferred replica (KIP-392, S-6)."""
    selector = "org.apache.kafka.common.replica.RackAwareReplicaSelector"
    world = new(config={"replica.selector.class": selector})
    world.topic("t", 1, 3)
    world.append("t", batch(*values(3)))
    world.advance(10)
    leader = world.leader("t")
    near, far = RACKS[leader], RACKS[(leader + 1) % 3]
    for version in (11, 12, 17):
        reader = world.connect(leader, f"v{version}")
        session = world.send(reader, world.fetch(("t", 0, 0), session=(0, 0), rack=far), version).session_id
        for epoch, rack in enumerate((far, far, near, far), 1):
            world.send(reader, world.fetch(session=(session, epoch), rack=rack), version)
            world.advance(5)
    return world


@scenario
def session_eviction(new: Callable[..., World]) -> World:
    """Fill the session cache: the smallest session is evicted, and sessions of consumers before those of followers (S-13)."""
    world = new(brokers=2, config={"max.incremental.fetch.session.cache.slots": "3"})
    world.topic("t", 6, 2)
    leader = world.leader("t")
    places = [("t", index, 0) for index in range(6) if world.leader("t", index) == leader]
    sessions: list[tuple[RecordedClient, int, Iterator[int]]] = []

    def begin(size: int, **options: Any) -> None:
        client = world.connect(leader, f"session of {size}")
        session = world.send(client, world.fetch(*places[:size], session=(0, 0), **options)).session_id
        sessions.append((client, session, count(1)))
        world.advance(5)

    def use_all() -> None:
        for client, session, epochs in sessions:
            if session:
                world.send(client, world.fetch(session=(session, next(epochs))))

    for size in (2, 1, 3):
        begin(size)
    begin(1, replica_id=1 - leader)
    use_all()
    begin(3)
    for wait_ms in (100_000, 30_000):
        world.advance(wait_ms)
        use_all()
    for size in (1, 2, 3):
        begin(size)
        use_all()
    return world


@scenario
def lagging_follower_of_a_new_leader(new: Callable[..., World]) -> World:
    """Let a follower join the ISR only at or above the start of the leader's epoch (`Partition.isFollowerInSync`)."""
    world = new(config={"replica.lag.time.max.ms": "1000"})
    world.topic("t", 1, 3, min_insync_replicas="3")
    first, second, lagging = replicas_of(world, "t")
    for _ in range(5):
        world.append("t", batch(b"on all"))
    hold(world, lagging)
    for _ in range(5):
        world.append("t", batch(b"on two"), acks=1)
    world.advance(3000)
    world.state.stop_broker(first)
    world.run()
    assert world.leader("t") == second
    follower_client = world.connect(second, "follower")
    for offset in (5, 7, 9, 10):
        world.send(follower_client, world.fetch(("t", 0, offset), replica_id=lagging))
        world.advance(10)
        world.send(follower_client, metadata("t"))
    release(world, lagging)
    world.state.start_broker(first)
    world.run()
    world.advance(3000)
    world.send(follower_client, metadata("t"))
    world.append("t", batch(b"after"))
    return world


@scenario
def follower_about_to_join(new: Callable[..., World]) -> World:
    """Hold the high watermark at a follower that is out of sync but was caught up recently (P-15)."""
    world = new(brokers=2, config={"replica.lag.time.max.ms": "2000"})
    world.topic("t", 1, 2)
    leader, follower = replicas_of(world, "t")
    fetcher, reader = world.connect(leader, "follower"), world.connect(leader, "reader")
    world.append("t", batch(*values(3)))
    hold(world, follower)
    world.append("t", batch(*values(5)), acks=1)
    world.advance(5000)
    world.send(fetcher, world.fetch(("t", 0, 3), replica_id=follower))
    world.append("t", batch(*values(2)), acks=1)
    world.advance(100)
    world.send(fetcher, world.fetch(("t", 0, 8), replica_id=follower))  # its log end offset as of its previous fetch
    world.append("t", batch(b"not committed"), acks=1)
    world.send(reader, world.fetch(("t", 0, 8)))
    world.append("t", batch(b"times out"), acks=-1)
    world.advance(1500)
    world.send(reader, world.fetch(("t", 0, 8)))
    world.advance(2000)
    world.append("t", batch(b"commits all"), acks=-1)
    world.send(reader, world.fetch(("t", 0, 8)))
    release(world, follower)
    world.advance(100)
    world.send(reader, metadata("t"))
    return world


@scenario
def fewer_replicas_than_min_insync(new: Callable[..., World]) -> World:
    """Set `min.insync.replicas` above the replication factor, which counts as the replication factor (P-7)."""
    world = new()
    for factor in (1, 2):
        name = f"t{factor}"
        world.topic(name, 1, factor, min_insync_replicas="3")
        world.append(name, batch(*values(2)))
        world.advance(10)
        world.send(world.connect(world.leader(name)), world.fetch((name, 0, 0)))
    follower = replicas_of(world, "t2")[1]
    world.state.stop_broker(follower)
    world.run()
    world.append("t2", batch(b"too few"))
    return world


@scenario
def unclean_election(new: Callable[..., World]) -> World:
    """Elect a leader uncleanly, which drops a high watermark beyond its log end (D2); topic events of the trace carry its epoch."""
    world = new(brokers=2, config={"replica.lag.time.max.ms": "1000"})
    world.topic("t", 1, 2, unclean_leader_election_enable="true")
    first, second = replicas_of(world, "t")
    for _ in range(5):
        world.append("t", batch(b"everywhere"))
    hold(world, second)
    for _ in range(5):
        world.append("t", batch(b"on one"), acks=1)
    world.advance(3000)
    hold(world, second, at=7)
    world.append("t", batch(b"makes the follower fetch"), acks=1)
    world.state.stop_broker(first)
    world.run()
    client = world.connect(second)
    for offset in (0, 6, 7, 9):
        world.send(client, world.fetch(("t", 0, offset)))
    world.send(client, metadata("t"))
    world.append("t", batch(b"after"))
    world.send(client, world.fetch(("t", 0, 7)))
    release(world, second)
    world.state.start_broker(first)
    world.run()
    world.advance(3000)
    change_config(world, TOPIC, "t", retention_ms="100000000")
    world.send(client, ElectLeadersRequest(0, None))
    change_config(world, TOPIC, "t", retention_ms="200000000")
    world.send(client, metadata("t"))
    world.send(world.connect(), DeleteTopicsRequest([DeleteTopicState("t")], timeout_ms=1000))
    return world


@scenario
def refused_records(new: Callable[..., World]) -> World:
    """Reject Produce and DeleteRecords for a transaction, single records, an internal topic, a cleanup policy (P-10, P-23)."""
    world = new().prepare()
    world.topic("timed", 1, 1, message_timestamp_before_max_ms="25")
    transactional = batch(*values(2), producer_id=9, producer_epoch=0, base_sequence=0, attributes=TRANSACTIONAL)
    at = world.connect(world.leader("orders"))
    for version in (3, 8, 11):
        world.send(at, produce("orders", transactional, transactional_id="t"), version)
    world.advance(30)
    for version in (7, 8, 9, 11):
        world.append("table", batch(*values(3)), version=version)
        # The first records are too old, the last ones are not.
        world.append("timed", batch(*values(5)), version=version)
    world.coordinator("g")
    for name in ("__admin_client", "admin"):
        client = world.connect(world.leader("__consumer_offsets"), name)
        for acks in (1, -1):
            world.send(client, produce("__consumer_offsets", batch(b"v", keys=True), acks=acks))
        world.send(client, world.fetch(("__consumer_offsets", 0, 0)))
    for version in range(3):
        delete_records(world, "table", 0, 1, version)
    return world


@scenario
def largest_frame(new: Callable[..., World]) -> World:
    """Send a frame of exactly `socket.request.max.bytes`, and one that is a byte larger, which closes the connection (W-1)."""
    world = new(brokers=1, config={"socket.request.max.bytes": "1000"})
    for size_bytes in (999, 1000, 1001):
        client = world.connect(client_id="x" * (size_bytes - len(header(18, 0, client_id=b""))))
        assert len(client.frame(ApiVersionsRequest(), 0)) == 4 + size_bytes
        for _ in range(2):
            world.send(client, ApiVersionsRequest(), 0)
            world.advance(5)
    return world


@scenario
def byte_limits(new: Callable[..., World]) -> World:
    """Fetch with limits of the size of the records, a byte less and a byte more (F-8)."""
    world = new(brokers=1)
    world.topic("t", 3, 1)
    batches = [batch(*values(1 + index)) for index in range(3)]
    for index, data in enumerate(batches):
        world.append("t", data, index)
    reader = world.connect(0)
    places = [("t", index, 0) for index in range(3)]
    _, second, _ = sizes = [len(data) for data in batches]

    def read(size_bytes: int, version: int) -> None:
        for limit in (size_bytes - 1, size_bytes, size_bytes + 1):
            world.send(reader, world.fetch(*places, max_bytes=limit), version)

    for version in (3, 12, 17):
        for size_bytes in accumulate(sizes):
            read(size_bytes, version)
        for partition_max in (second - 1, second, second + 1):
            world.send(reader, world.fetch(*places, partition_max=partition_max), version)
    for index in range(3):
        world.append("t", batch(b"cut off"), index)
    read(sum(sizes), 17)  # the last batch of partition 1 is truncated at the limit of the request
    return world


@scenario
def trace_file(new: Callable[..., World]) -> World:
    """Write a trace file with the thread of `TraceWriter`."""
    with tempfile.TemporaryDirectory() as folder:
        return _traced(new(trace_folder=folder))


@scenario
def trace_files(new: Callable[..., World]) -> World:
    """Write a trace to several files: with a limit of one byte, each piece from the recorder starts a file."""
    with tempfile.TemporaryDirectory() as folder:
        return _traced(new(trace_folder=folder, trace_file_bytes=1))


def _traced(world: World) -> World:
    world.prepare()
    leader = world.leader("orders")
    world.limit("limited", producer_byte_rate=1000.0)
    limited, waiting = world.connect(leader, "limited"), world.connect(leader, "waiting")
    world.send(waiting, world.fetch(("orders", 0, log_end(world, "orders")), max_wait_ms=500))
    for _ in range(2):
        world.send(limited, produce("orders", batch(*values(20, 100))))
    world.send(limited, world.fetch(("orders", 0, 0)))
    disconnecting = world.connect(leader, "gone")
    world.send(disconnecting, world.fetch(("orders", 0, 1000), max_wait_ms=500), 9)
    disconnecting.send_bytes(framed(header(3, 99)))
    world.advance(60_000)
    return _finished_inside(world)
