"""Consumer groups in conformance tests: a group, its coordinator, and clients that join it and commit offsets.

Every client has a connection of its own, because a parked JoinGroup or SyncGroup holds back the later responses of its connection.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.conformance.client import Answer, Connection
from kafkaproto.conformance.internal_topics import reassign
from kafkaproto.conformance.scene import Topic, wait_until
from kafkaproto.conformance.subject import PATIENCE_MS, Subject
from kafkaproto.messages.describe_groups import DescribeGroupsRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from kafkaproto.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from kafkaproto.partitioner import java_hash

OFFSETS_TOPIC = "__consumer_offsets"
DESCRIBE_WITH_MESSAGES = 6
"""The first DescribeGroups version that reports an unknown group as an error, with a message."""
PARKED_MS = 150
"""The time in ms without a response after which a test assumes that the request is parked in purgatory."""
SESSION_MS = REBALANCE_MS = 10_000
Offsets = Mapping[str, Mapping[int, Any]]
"""Offsets to commit: maps topics to dicts that map partitions to (offset, metadata)."""


def has_new_coordinator(subject: Subject) -> bool:
    """Return whether the cluster has the group coordinator of Kafka 4, recognised by its versions of DescribeGroups (KIP-848, KIP-1043)."""
    return subject.offered()[ApiKey.DESCRIBE_GROUPS][1] >= DESCRIBE_WITH_MESSAGES


def subscription(*topics: str) -> bytes:
    """Return a ConsumerProtocolSubscription of version 0 for these topics."""
    names = b"".join(struct.pack(">h", len(topic)) + topic.encode() for topic in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class Group:
    """A consumer group of one test. `coordinator` looks up the coordinating broker on every call, because coordinators move.

    index: the partition of the offsets topic that the group must be in; None for any.
    """

    def __init__(self, subject: Subject, index: int | None = None) -> None:
        self.subject = subject
        self.offsets = Topic(subject, OFFSETS_TOPIC)
        self.id = subject.new_name("g")
        self.coordinator()
        if index is not None:
            count = len(self.offsets.metadata().partitions)
            while java_hash(self.id) % count != index:
                self.id = subject.new_name("g")

    @property
    def index(self) -> int:
        """Return the group's partition of the offsets topic (M-8)."""
        return java_hash(self.id) % len(self.offsets.metadata().partitions)

    def coordinator(self) -> int:
        """Return the id of the broker that coordinates the group. Waits until this broker has loaded the group."""
        coordinator: int = wait_until(self.subject, self._ready, f"the coordinator of group {self.id} is available") - 1
        return coordinator

    def _ready(self) -> int:
        """Return the coordinator's broker id plus 1, or 0 while no coordinator is available. `wait_until` waits for a result other than 0."""
        version = self.subject.version(ApiKey.FIND_COORDINATOR, 3)
        response = self.subject.ask_once(FindCoordinatorRequest(key=self.id), version)
        if response.error_code:
            return 0
        return 0 if self.describe(response.node_id).error_code in (14, 15, 16) else int(response.node_id) + 1

    def connect(self) -> Connection:
        """Return a connection to the coordinator."""
        return self.subject.connect(self.coordinator(), "pc")

    def describe(self, broker_id: int | None = None) -> Any:
        """Return the group's entry of a DescribeGroups response of version 5. broker_id: the broker to ask, by default the coordinator."""
        broker_id = self.coordinator() if broker_id is None else broker_id
        [description] = self.subject.ask_once(DescribeGroupsRequest([self.id]), 5, broker_id).groups
        return description

    def state(self) -> tuple[str, int]:
        """Return (state of the group, number of its members)."""
        description = self.describe()
        return description.group_state, len(description.members)

    def wait_for(self, state: str, members: int) -> None:
        wait_until(
            self.subject, lambda: self.state() == (state, members), f"group {self.id} is {state} with {members} members"
        )

    def client(self, member_id: str = "", **options: Any) -> Client:
        return Client(self, member_id, **options)

    def ask(self, request: Any, version: int) -> Any:
        """Send a request to the coordinator over a new connection, and return the response."""
        return self.subject.ask_once(request, version, self.coordinator())

    def leave(
        self, *members: tuple[str, str | None], version: int = 4
    ) -> tuple[int, list[tuple[str, str | None, int]]]:
        """Remove members, given as (member id, group instance id), with LeaveGroup.

        Returns (error of the response, [(member id, group instance id, error) of each member]). A group instance id is None for a dynamic member.
        """
        response = self.ask(LeaveGroupRequest(self.id, members=[MemberIdentity(*m) for m in members]), version)
        return response.error_code, [(m.member_id, m.group_instance_id, m.error_code) for m in response.members]

    def fetch_request(self, partitions: Mapping[str, Sequence[int]] | None, **more: Any) -> OffsetFetchRequest:
        """Return an OffsetFetch request of version 8 or later.

        partitions: maps topics to partitions; None for all partitions. more: further fields of the request.
        """
        topics = None
        if partitions is not None:
            topics = [
                OffsetFetchRequestTopics(name, partition_indexes=list(indexes)) for name, indexes in partitions.items()
            ]
        return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(self.id, topics=topics)], **more)

    def fetch(self, partitions: Mapping[str, Sequence[int]] | None, **more: Any) -> Any:
        """Return the group's entry of an OffsetFetch response of version 8.

        partitions: maps topics to partitions; None for all partitions. more: further fields of the request.
        """
        [group] = self.ask(self.fetch_request(partitions, **more), 8).groups
        return group

    def committed(self, partitions: Mapping[str, Sequence[int]] | None = None) -> dict[tuple[str, int], int]:
        """Return a dict of (topic, partition) to committed offset. Checks that there is no error.

        partitions: maps topics to the partitions to fetch; None for all partitions that have a committed offset.
        """
        group = self.fetch(partitions)
        assert group.error_code == 0
        assert all(p.error_code == 0 for topic in group.topics for p in topic.partitions)
        return {(t.name, p.partition_index): p.committed_offset for t in group.topics for p in t.partitions}

    def delete_offsets(self, partitions: Mapping[str, Iterable[int]]) -> tuple[int, dict[tuple[str, int], int]]:
        """Delete committed offsets of these partitions, given by topic, with OffsetDelete.

        Returns (error of the whole response, dict of (topic, partition) to error).
        """
        topics = [
            OffsetDeleteRequestTopic(name, [OffsetDeleteRequestPartition(index) for index in indexes])
            for name, indexes in partitions.items()
        ]
        response = self.ask(OffsetDeleteRequest(self.id, topics), 0)
        errors = {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}
        return response.error_code, errors


def follower_of(group: Group) -> int:
    """Return the id of a broker to which a test can give the second replica of the group's partition of the offsets topic.

    The broker is not the coordinator, which already has a replica, and not broker 0: tests stop the returned broker from fetching (`scene.held`), and
    broker 0 must keep responding to requests.
    """
    return 1 if group.coordinator() != 1 else 2


@contextmanager
def two_replicas(group: Group) -> Iterator[int]:
    """Give partition 0 of the offsets topic, which stores the group, a second replica until the end of the `with` block.

    Yields the id of the broker with the second replica.
    """
    leader, follower = group.coordinator(), follower_of(group)
    group.subject.need_broker(follower)
    reassign(group.offsets, leader, follower)
    try:
        yield follower
    finally:
        reassign(group.offsets, leader)


@contextmanager
def moving(group: Group) -> Iterator[tuple[int, int]]:
    """Give partition 0 of the offsets topic, which stores the group, three replicas until the end of the `with` block.

    Yields (id of the broker to which the test moves the coordinator, id of the broker whose replica the test lets lag).
    """
    old_coordinator, lagging = group.coordinator(), follower_of(group)
    new_coordinator = next(broker_id for broker_id in (0, 1, 2) if broker_id not in (old_coordinator, lagging))
    group.subject.need_broker(max(new_coordinator, lagging))
    reassign(group.offsets, old_coordinator, new_coordinator, lagging)
    try:
        yield new_coordinator, lagging
    finally:
        reassign(group.offsets, old_coordinator)


class Client:
    """A client of a group. It stores the member id and the generation from each JoinGroup response with error NONE or MEMBER_ID_REQUIRED.

    version: the version of the client's JoinGroup requests. From version 4 on, the coordinator first gives a dynamic member a member id, and the
    member joins with a second request that has this id. `enter` sends both requests.
    """

    def __init__(
        self,
        group: Group,
        member_id: str = "",
        *,
        instance: str | None = None,
        version: int = 5,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        kind: str = "consumer",
        protocols: Sequence[tuple[str, bytes]] = (("range", b"m"),),
    ) -> None:
        self.group = group
        self.subject = group.subject
        self.connection = group.connect()
        self.member_id = member_id
        self.generation = -1
        self.instance = instance
        self.version = version
        self.session_ms = session_ms
        self.rebalance_ms = rebalance_ms
        self.kind = kind
        self.protocols = protocols

    def ask(self, request: Any, version: int) -> Any:
        return self.subject.ask(self.connection, request, version)

    def is_parked(self) -> bool:
        """Wait up to 150 ms (`PARKED_MS`) for the client's response, and return whether none arrived. A response that does arrive is discarded."""
        return self.subject.answer_or_none(self.connection, PARKED_MS) is None

    # ---- join and sync ----------------------------------------------------------------------------------------------------------

    def send_join(self) -> None:
        protocols = [JoinGroupRequestProtocol(name, metadata) for name, metadata in self.protocols]
        request = JoinGroupRequest(
            self.group.id, self.session_ms, self.rebalance_ms, self.member_id, self.instance, self.kind, protocols
        )
        self.subject.send(self.connection, request, self.version)

    def join_response(self, within_ms: float = PATIENCE_MS) -> Answer:
        """Return the response to the last JoinGroup. Raises AssertionError if it does not arrive within `within_ms`.

        If the error is NONE or MEMBER_ID_REQUIRED, this client stores the member id and the generation of the response.
        """
        response = self.subject.answer(self.connection, within_ms)
        if response.message.error_code in (0, 79):
            self.member_id = response.message.member_id
            self.generation = response.message.generation_id
        return response

    def joined(self) -> Any:
        return self.join_response().message

    def join(self) -> Any:
        """Send JoinGroup and return the response."""
        self.send_join()
        return self.joined()

    def send_enter(self) -> None:
        """Send the JoinGroup of a new member without waiting for the response. If the coordinator requires a member id, get the id first."""
        if self.version >= 4 and self.instance is None:
            assert self.join().error_code == 79
        self.send_join()

    def enter(self) -> Any:
        """Join the group as a new member. Returns the response to the JoinGroup that joins; a previous JoinGroup may have requested a member id."""
        self.send_enter()
        return self.joined()

    def send_sync(self, assignments: Mapping[str, bytes] | None = None, version: int = 3, **changes: Any) -> None:
        sync_assignments = [SyncGroupRequestAssignment(*assignment) for assignment in (assignments or {}).items()]
        fields: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
            "assignments": sync_assignments,
        }
        if version >= 5:
            fields |= {"protocol_type": self.kind, "protocol_name": self.protocols[0][0]}
        self.subject.send(self.connection, SyncGroupRequest(self.group.id, **(fields | changes)), version)

    def synced(self) -> Any:
        return self.subject.answer(self.connection).message

    def sync(self, assignments: Mapping[str, bytes] | None = None, version: int = 3, **changes: Any) -> Any:
        """Send SyncGroup and return the response.

        assignments: maps member ids to assignments, as the group leader sends them; None for no assignments. changes: fields of the request. By
        default, the request has the member id, instance id and generation of this client.
        """
        self.send_sync(assignments, version, **changes)
        return self.synced()

    # ---- other requests ---------------------------------------------------------------------------------------------------------

    def heartbeat(self, **changes: Any) -> int:
        """Send a Heartbeat and return its error code.

        changes: fields of the request. By default, the request has the member id, instance id and generation of this client.
        """
        fields: dict[str, Any] = {
            "generation_id": self.generation,
            "member_id": self.member_id,
            "group_instance_id": self.instance,
        }
        return int(self.ask(HeartbeatRequest(self.group.id, **(fields | changes)), 3).error_code)

    def commit(self, offsets: Offsets, version: int = 8, **changes: Any) -> dict[tuple[str, int], int]:
        """Commit offsets, and return a dict of (topic, partition) to error code.

        changes: fields of the request. By default, the request has the member id, instance id and generation of this client.
        """
        fields: dict[str, Any] = {"generation_id_or_member_epoch": self.generation, "member_id": self.member_id}
        if version >= 7:
            fields["group_instance_id"] = self.instance
        return commit(self.group, offsets, version, **(fields | changes))


def commit(
    group: Group, offsets: Offsets, version: int = 8, timestamp: int = -1, **fields: Any
) -> dict[tuple[str, int], int]:
    """Commit offsets, and return a dict of (topic, partition) to error code.

    timestamp: the commit time in ms, which only version 1 of the request contains; -1 for the broker's time. fields: further fields of the request,
    such as the member id. By default the request names no member, like a commit of a client that is not in the group.
    """
    topics = [
        OffsetCommitRequestTopic(
            name,
            partitions=[
                OffsetCommitRequestPartition(index, offset, -1, timestamp, metadata)
                for index, (offset, metadata) in partitions.items()
            ],
        )
        for name, partitions in offsets.items()
    ]
    response = group.ask(OffsetCommitRequest(group.id, topics=topics, **fields), version)
    return {(t.name, p.partition_index): p.error_code for t in response.topics for p in t.partitions}


def enter_together(*clients: Client) -> None:
    """Let clients join a group as new members of one generation. The first client is the leader."""
    leader, *others = clients
    assert leader.enter().error_code == 0
    for client in others:
        client.send_enter()
    if others:
        leader.group.wait_for("PreparingRebalance", len(clients))
        leader.send_join()
    for client in clients if others else ():
        assert client.joined().error_code == 0


def make_stable(*clients: Client) -> None:
    """Let clients join and synchronise a group until it is stable. The first client gets the assignment b"a0", the second b"a1" and so on."""
    enter_together(*clients)
    assignments = {client.member_id: b"a%d" % i for i, client in enumerate(clients)}
    for client in clients[1:]:
        client.send_sync()
    assert clients[0].sync(assignments).assignment == b"a0"
    for i, client in enumerate(clients[1:], 1):
        assert client.synced().assignment == b"a%d" % i
