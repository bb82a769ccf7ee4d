"""Golden runs of each release: the requests of plain clients at its highest versions, and a throttled produce and fetch.

Releases before 2.0 hold a throttled response back; later ones send it at once and mute the connection.
"""

from __future__ import annotations

from kafkaproto.messages.api_versions import ApiVersionsRequest
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.list_groups import ListGroupsRequest
from kafkaproto.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from tests.golden.batches import values
from tests.golden.recording import RecordedClient
from tests.golden.world import World, commit, find_coordinator, metadata, produce, sync


def run_release(semantics: str, release: str) -> list[str]:
    world = World(semantics=semantics, release=release).prepare()
    client = world.connect()
    if world.offers("ApiVersions"):
        world.send(client, ApiVersionsRequest("golden", "1.0"))
    unknown = world.connect()
    unknown.raw = True  # the response may be version 0, or the connection is closed
    unknown.send(ApiVersionsRequest("golden", "1.0"), 4)
    world.send(client, metadata("orders", "payments", "missing"))
    for timestamp in (-1, -2):
        partitions = [ListOffsetsPartition(i, -1, timestamp, 1) for i in range(3)]
        world.send(client, ListOffsetsRequest(-1, 0, [ListOffsetsTopic("orders", partitions)]))
    leader = world.connect(world.leader("orders"))
    world.send(leader, produce("orders", world.records(b"plain", b"records"), acks=-1))
    world.advance(10)
    world.send(leader, world.fetch(("orders", 0, 0), ("orders", 7, 0)))
    _groups(world)
    _throttles(world)
    return world.finish()


def _groups(world: World) -> None:
    client = world.connect()
    world.send(client, find_coordinator("group"))
    first, second = world.at_coordinator("group", "first"), world.at_coordinator("group", "second")
    first_id = world.join(first, "group")
    world.send(first, sync("group", first_id, 1, {first_id: b"everything"}))
    two = world.join(second, "group")
    world.send(first, HeartbeatRequest("group", 1, first_id))
    world.join(first, "group", member_id=first_id)
    two = second.answers[-1].message.member_id or two
    world.send(second, sync("group", two, 2))
    world.send(first, sync("group", first_id, 2, {first_id: b"left", two: b"right"}))
    world.send(first, commit("group", ("orders", 0, 3), member_id=first_id, generation=2))
    _fetch_offsets(world, first)
    world.send(first, ListGroupsRequest())
    world.send(first, DescribeGroupsRequest(["group"]))
    world.send(second, LeaveGroupRequest("group", two, [MemberIdentity(two)]))
    world.send(second, HeartbeatRequest("group", 2, two))
    world.advance(60_000)
    world.send(client, DescribeGroupsRequest(["group"]))


def _fetch_offsets(world: World, client: RecordedClient) -> None:
    topics = [OffsetFetchRequestTopic("orders", [0, 1])]
    groups = [OffsetFetchRequestGroup("group", topics=[OffsetFetchRequestTopics("orders", partition_indexes=[0, 1])])]
    world.send(client, OffsetFetchRequest("group", topics, groups))


def _throttles(world: World) -> None:
    """Send two produces and two fetches, the second of each throttled, with another request behind each."""
    world.limit("limited", producer_byte_rate=1000.0, consumer_byte_rate=1500.0)
    writer = world.connect(world.leader("payments"), "limited")
    data = world.records(*values(40, 150))
    world.send(writer, produce("payments", data))
    world.send(writer, produce("payments", data))
    world.send(writer, metadata("payments"))
    world.advance(30_000)
    reader = world.connect(world.leader("payments"), "limited")
    for _ in range(2):
        world.send(reader, world.fetch(("payments", 0, 0)))
    world.send(reader, metadata("payments"))
    world.advance(60_000)
    disconnecting = world.connect(world.leader("payments"), "limited")
    for _ in range(2):
        world.send(disconnecting, produce("payments", data))
    world.advance(100)
    disconnecting.hang_up()
    world.advance(60_000)
