"""Benchmark rows whose instructions are counted: heartbeats of one member beside a number of idle members, in both group protocols.

The program is run in place of `benchmarks/ab/workload.py`, with these rows: `python -P heartbeat_rows.py ROW...` prints one JSON object per row.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.ab import workload
from benchmarks.ab.workload import HEARTBEAT, STEP_MS, Peer, Work, find, message
from kafkaproto.broker.group import consumer_records
from kafkaproto.broker.group.consumer_group import ConsumerMember
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.group.reconciliation import Current
from kafkaproto.broker.replication.coordinator_log import CoordinatorLog

CONSUMER_GROUP_HEARTBEAT = 68
FEW, MANY = 10, 1000
SESSION_MS = 1_800_000
"""The session timeout of all members, so that none expires while the group is built."""
CONFIG = {
    "group.initial.rebalance.delay.ms": "3000",
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.consumer.session.timeout.ms": "60000",
}


def new_peer() -> Peer:
    """Return a connection to a new broker, which coordinates all groups."""
    cluster = find("VirtualCluster")(1, CONFIG)
    cluster.topic("t", 1, 1)
    cluster.state.coordinator_of("g")
    return Peer(cluster)


def classic(idle: int) -> Work:
    """Return the row of Heartbeat in a stable classic group with `idle` further members."""
    peer = new_peer()
    clients = [peer.cluster.connect() for _ in range(idle + 1)]
    protocol = message("join_group", "JoinGroupRequestProtocol", name="range", metadata=b"m")
    join = message(
        "join_group",
        "JoinGroupRequest",
        group_id="g",
        session_timeout_ms=SESSION_MS,
        rebalance_timeout_ms=SESSION_MS,
        protocol_type="consumer",
        protocols=[protocol],
    )
    for client in clients:
        client.send(join, 3)
    while not clients[0].answers:
        peer.cluster.advance(STEP_MS)
    joined = [client.latest for client in clients]
    for client, join_response in reversed(list(zip(clients, joined, strict=True))):  # the leader is the first member
        sync = message(
            "sync_group", "SyncGroupRequest", group_id="g", generation_id=1, member_id=join_response.member_id
        )
        client.send(sync, 2)
    if {client.latest.error_code for client in clients} != {0}:
        raise workload.WorkloadError("the group did not become stable")
    request = message("heartbeat", "HeartbeatRequest", group_id="g", generation_id=1, member_id=joined[-1].member_id)
    return workload.again(peer, request, HEARTBEAT)


def consumer(idle: int) -> Work:
    """Return the row of ConsumerGroupHeartbeat in a group with `idle` further members, none of which has a partition to give up."""
    peer, epoch = consumer_group(idle)
    return workload.again(peer, heartbeat_request("reader", epoch), CONSUMER_GROUP_HEARTBEAT)


def full(idle: int) -> Work:
    """Return the row of a full ConsumerGroupHeartbeat, which repeats the timeout, the topics and the owned partitions of the member."""
    peer, epoch = consumer_group(idle)
    return workload.again(peer, full_request(epoch), CONSUMER_GROUP_HEARTBEAT)


def consumer_group(idle: int) -> tuple[Peer, int]:
    """Return the connection of the member "reader" in a group with `idle` further members, and its epoch."""
    peer = new_peer()
    epoch = peer.ask(full_request(0), CONSUMER_GROUP_HEARTBEAT, 0).member_epoch
    add_idle_members(peer, idle, epoch)
    return peer, epoch


def full_request(epoch: int) -> Any:
    """Return a full heartbeat of the member "reader", which has no partition or reports none."""
    return heartbeat_request(
        "reader", epoch, rebalance_timeout_ms=SESSION_MS, subscribed_topic_names=["t"], topic_partitions=[]
    )


def add_idle_members(peer: Peer, count: int, epoch: int) -> None:
    """Add members to the group as its coordinator loads them from the log: to join them one by one would take minutes under valgrind."""
    node, now_ms = peer.cluster.state.nodes[0], peer.cluster.now_ms
    entries = []
    for number in range(count):
        member = ConsumerMember(
            f"idle-{number:04}", None, None, "test", "/127.0.0.1", SESSION_MS, frozenset({"missing"})
        )
        entries.append(consumer_records.member_entry("g", member))
        entries.append(consumer_records.current_entry("g", member.member_id, Current(epoch, epoch)))
    index = node.groups.ownership.partition_of("g")
    log = CoordinatorLog(OFFSETS_TOPIC, node.replicas, peer.cluster.state.timers, timeout_ms=5_000)
    error = log.append_only(index, entries, now_ms)
    node.groups.groups.reload("g", now_ms)
    group = node.groups.groups.get_consumer("g")
    if error or len(group.members) != count + 1 or group.unreconciled:
        raise workload.WorkloadError(f"the group was not loaded: error {error}, {len(group.members)} members")


def heartbeat_request(member_id: str, epoch: int, **fields: Any) -> Any:
    module = "consumer_group_heartbeat"
    return message(
        module, "ConsumerGroupHeartbeatRequest", group_id="g", member_id=member_id, member_epoch=epoch, **fields
    )


PREPARED: dict[str, Callable[[int], Work]] = {
    "Heartbeat": classic,
    "ConsumerGroupHeartbeat": consumer,
    "full ConsumerGroupHeartbeat": full,
}


def row(api: str, idle: int) -> str:
    """Return the name of a row."""
    return f"{api} beside {idle} members"


if __name__ == "__main__":
    workload.ROWS.clear()
    workload.ROWS.update(
        {row(api, idle): partial(prepare, idle) for api, prepare in PREPARED.items() for idle in (FEW, MANY)}
    )
    workload.VERSIONS[CONSUMER_GROUP_HEARTBEAT] = 0
    raise SystemExit(workload.main())
