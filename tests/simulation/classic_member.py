"""A member of a classic group: it joins, syncs, sends heartbeats and leaves as a Java consumer with eager rebalancing does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kafkaproto.coordinator_records import write_value
from kafkaproto.data.consumer_protocol_assignment import ConsumerProtocolAssignment, TopicPartition
from kafkaproto.data.consumer_protocol_subscription import ConsumerProtocolSubscription
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.simulation.client import E
from tests.simulation.group_truth import GroupTruth
from tests.simulation.member import Member
from tests.simulation.world import World

SESSION_MS = 6_000
PROTOCOL = "range"
LOST = {E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS, E.FENCED_INSTANCE_ID}


class ClassicMember(Member):
    """A member. epoch: the generation of its assignment, 0 before it has one. joined: the generation that it has joined, not yet synced.

    version: the version of JoinGroup that it sends; static members exist from version 5 on.
    """

    is_classic = True

    def __init__(
        self, world: World, name: str, group: GroupTruth, client_id: str | None, instance_id: str | None
    ) -> None:
        super().__init__(world, name, group, client_id, instance_id)
        self.version = world.chance.choice([3, 4, 5, 7, 9] if instance_id is None else [5, 8, 9])
        self.joined: int | None = None
        self._assignments: dict[str, list[tuple[str, int]]] = {}
        self._rebalance_timeout_ms = world.chance.choice([3_000, 8_000])

    @property
    def is_member(self) -> bool:
        return self.epoch > 0

    def join(self) -> None:
        if self.joined is not None:
            self._sync(self.joined)
            return
        self.give_up_all()
        request = JoinGroupRequest(
            self.group.name,
            SESSION_MS,
            self._rebalance_timeout_ms,
            self.member_id,
            self.instance_id if self.version >= 5 else None,
            "consumer",
            [JoinGroupRequestProtocol(PROTOCOL, _subscription(self.group.topics))],
        )
        self.send(self.group.name, request, self.version, self._joined)

    def _joined(self, answer: Any) -> None:
        error = answer.error_code
        if error == E.MEMBER_ID_REQUIRED:
            assert self.version >= 4 and self.instance_id is None, f"{self.name}: no member id is required"
            self.member_id = answer.member_id
        elif error:
            if not self.looks_elsewhere(error):
                self.fenced(error)
        else:
            self.member_id = answer.member_id
            self.joined = answer.generation_id
            is_leader = answer.leader == answer.member_id and not answer.skip_assignment
            self._assignments = self._assign([member.member_id for member in answer.members]) if is_leader else {}

    def _assign(self, member_ids: list[str]) -> dict[str, list[tuple[str, int]]]:
        """Distribute all partitions of the group's topics in a random order."""
        topics = self.world.image.topics
        places = [(name, state.index) for name in self.group.topics for state in topics[name].partitions]
        self.world.chance.shuffle(places)
        return {member_id: places[number :: len(member_ids)] for number, member_id in enumerate(member_ids)}

    def _sync(self, generation: int) -> None:
        assignments = [
            SyncGroupRequestAssignment(member_id, _encoded(places)) for member_id, places in self._assignments.items()
        ]
        instance_id = self.instance_id if self.version >= 5 else None
        request = SyncGroupRequest(
            self.group.name, generation, self.member_id, instance_id, "consumer", PROTOCOL, assignments
        )
        self.send(self.group.name, request, 5, self._synced)

    def _synced(self, answer: Any) -> None:
        error = answer.error_code
        if error:
            if not self.looks_elsewhere(error):
                self.fenced(error)
            return
        assert self.joined is not None
        self.epoch, self.joined = self.joined, None
        self.epoch_reached(self.epoch)
        topics = self.world.image.topics
        self.owned = {(topics[name].topic_id, index) for name, index in _decoded(answer.assignment)}

    def heartbeat(self) -> None:
        committable = sorted(self.owned & self.positions.keys())
        if not self.calm and committable and self.epoch > 1 and self.world.chance.random() < 0.05:
            self.commit(committable, self.epoch - 1)
            return
        request = HeartbeatRequest(
            self.group.name, self.epoch, self.member_id, self.instance_id if self.version >= 5 else None
        )

        def on_response(answer: Any) -> None:
            error = answer.error_code
            if error and not self.looks_elsewhere(error):
                self.fenced(error)

        self.send(self.group.name, request, 4, on_response)

    def leave(self) -> None:
        self.give_up_all()
        if not self.member_id:
            self.end()
            return
        self.epoch = 0

        def on_response(answer: Any) -> None:
            self.is_gone = True

        identity = MemberIdentity(self.member_id, self.instance_id)
        if not self.send(self.group.name, LeaveGroupRequest(self.group.name, members=[identity]), 4, on_response):
            self.end()

    def fenced(self, error: int) -> None:
        """Join again. A commit is refused with REBALANCE_IN_PROGRESS during the sync phase, and with 69 if the group was deleted (GO-17)."""
        assert error in {*LOST, E.GROUP_ID_NOT_FOUND}, f"{self.name}: error {error}"
        self.joined = None
        self.epoch = 0
        if error == E.FENCED_INSTANCE_ID:
            assert self.instance_id is not None, f"{self.name}: has no instance id"
            self.end()
        elif error == E.UNKNOWN_MEMBER_ID:
            self.member_id = ""


def _subscription(topics: Sequence[str]) -> bytes:
    """Return the subscription of a member that has revoked all partitions, as consumers encode it."""
    return write_value(ConsumerProtocolSubscription(list(topics)), 1)


def _encoded(places: list[tuple[str, int]]) -> bytes:
    """Return an assignment as consumers encode it."""
    by_topic: dict[str, list[int]] = {}
    for name, index in places:
        by_topic.setdefault(name, []).append(index)
    return write_value(ConsumerProtocolAssignment([TopicPartition(*entry) for entry in by_topic.items()]), 1)


def _decoded(assignment: bytes) -> list[tuple[str, int]]:
    """Return the partitions of an encoded assignment, which is empty for a member that the leader did not know."""
    if not assignment:
        return []
    version = int.from_bytes(assignment[:2], "big")
    decoded = ConsumerProtocolAssignment.layout(version).decode_flat(memoryview(assignment), 2, len(assignment))[0]
    assert isinstance(decoded, ConsumerProtocolAssignment)
    return [(topic.topic, index) for topic in decoded.assigned_partitions for index in topic.partitions]
