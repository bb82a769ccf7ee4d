"""One classic consumer group: its members, who leads, which protocol they chose, in which state it is.

What is true of a group at an instant, and nothing about when it changes: no timer is set here and nobody is answered;
that is `rebalance`'s and `coordinator`'s. Kafka's `GroupMetadata` and `MemberMetadata`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.results import JoinedMember, JoinReply, JoinResult, Protocols, SyncReply
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL, subscribed_topics
from kafkaproto.broker.runtime.timers import Timer
from kafkaproto.error_codes import ErrorCode


class GroupState(Enum):
    """Kafka's names, as ListGroups and DescribeGroups show them."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


_MAY_FOLLOW = {
    GroupState.PREPARING_REBALANCE: {GroupState.EMPTY, GroupState.COMPLETING_REBALANCE, GroupState.STABLE},
    GroupState.COMPLETING_REBALANCE: {GroupState.PREPARING_REBALANCE},
    GroupState.STABLE: {GroupState.COMPLETING_REBALANCE},
    GroupState.EMPTY: {GroupState.PREPARING_REBALANCE},
    GroupState.DEAD: set(GroupState) - {GroupState.DEAD},
}


@dataclass(slots=True, eq=False)
class Member:
    """One member. is_new: it has never got an answer to a join, so it cannot send heartbeats.

    join_reply, sync_reply: where the answer of its parked request goes.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocols: Protocols
    is_new: bool = True
    assignment: bytes = b""
    join_reply: JoinReply | None = None
    sync_reply: SyncReply | None = None
    session_timer: Timer | None = None

    @property
    def is_waiting(self) -> bool:
        """A parked request proves life: no heartbeat can be sent meanwhile."""
        return self.join_reply is not None or self.sync_reply is not None

    def metadata(self, protocol_name: str) -> bytes:
        return next((data for name, data in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str:
        return next(name for name, _ in self.protocols if name in candidates)


@dataclass(slots=True, eq=False)
class Group:
    """One group. Members stand in the order in which they came; without a leader the first of them leads."""

    group_id: str
    state_since_ms: int
    state: GroupState = GroupState.EMPTY
    generation_id: int = 0
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    subscribed: frozenset[str] | None = None
    """Topics of this generation; None if the group is no consumer group or cannot be read."""
    members: dict[str, Member] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)
    """Group instance id to member id."""
    pending: dict[str, Timer] = field(default_factory=dict)
    """Ids given out to members that are to come back with them, each with its timeout."""
    owing_sync: dict[str, None] = field(default_factory=dict)
    """Members that got this generation's join answer and have not synced yet (a set that keeps its order)."""
    new_member_added: bool = False
    """Somebody came while the first rebalance was being delayed: it may be delayed further."""
    initial_join: bool = False
    """The first rebalance of an empty group waits for its time, even if all have joined."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None
    offsets: dict[PartitionKey, CommittedOffset] = field(default_factory=dict)

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    def move_to(self, state: GroupState, now_ms: int) -> None:
        if self.state not in _MAY_FOLLOW[state]:
            raise AssertionError(f"group {self.group_id}: {self.state.value} cannot become {state.value}")
        self.state = state
        self.state_since_ms = now_ms

    @property
    def can_rebalance(self) -> bool:
        return self.state in _MAY_FOLLOW[GroupState.PREPARING_REBALANCE]

    @property
    def rebalance_timeout_ms(self) -> int:
        return max((m.rebalance_timeout_ms for m in self.members.values()), default=0)

    @property
    def waiting_join_count(self) -> int:
        return sum(m.join_reply is not None for m in self.members.values())

    @property
    def all_joined(self) -> bool:
        return not self.pending and all(m.join_reply is not None for m in self.members.values())

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def not_a_member(self, member_id: str, instance_id: str | None) -> int:
        """0 if `member_id` is a member, and the one behind `instance_id` if that is given; else the error (KIP-345)."""
        if instance_id is not None:
            current = self.static_ids.get(instance_id)
            if current is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def other_generation(self, generation_id: int) -> int:
        """0 if `generation_id` is the current one, else the error."""
        return ErrorCode.NONE if generation_id == self.generation_id else ErrorCode.ILLEGAL_GENERATION

    def accepts(self, member_id: str, max_size: int) -> bool:
        """Whether there is room for a joining member (`group.max.size`)."""
        if self.is_in(GroupState.EMPTY, GroupState.DEAD):
            return True
        member = self.members.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            # Who waits already is in; of the others the last to come stay out, should the limit have been lowered.
            return (member is not None and member.join_reply is not None) or self.waiting_join_count < max_size
        return member is not None or len(self.members) < max_size

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Whether somebody with these protocols can be a member: one of them must be known to all."""
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        common = self._common_protocols()
        return any(name in common for name, _ in protocols)

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        if member.group_instance_id is not None:
            self.static_ids[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_ids[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = next(iter(self.members), None)
        self.owing_sync.pop(member_id, None)

    def rename(self, member: Member, new_id: str) -> None:
        """Give a static member, whose process was started anew, a new member id; it keeps its place."""
        old_id = member.member_id
        self.members = {new_id if key == old_id else key: value for key, value in self.members.items()}
        self.owing_sync = {new_id if key == old_id else key: None for key in self.owing_sync}
        member.member_id = new_id
        assert member.group_instance_id is not None
        self.static_ids[member.group_instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined again, else take the first member that has. False: nobody has."""
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_reply is not None:
            return True
        joined = next((m for m in self.members.values() if m.join_reply is not None), None)
        if joined is None:
            return False
        self.leader_id = joined.member_id
        return True

    def start_generation(self, now_ms: int) -> None:
        """The members are known: choose their protocol, or be empty."""
        self.generation_id += 1
        self.owing_sync.clear()
        if self.members:
            self.protocol_name = self.choose_protocol()
            self.move_to(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.move_to(GroupState.EMPTY, now_ms)
        self.subscribed = self._subscribed_topics()

    def choose_protocol(self) -> str:
        """Each member votes for the first of its protocols that all know; most votes win, the earlier of equals."""
        common = self._common_protocols()
        votes = Counter(member.vote(common) for member in self.members.values())
        return votes.most_common(1)[0][0]

    def joined_members(self) -> list[JoinedMember]:
        """All members with their metadata for the chosen protocol: what the leader needs."""
        name = self.protocol_name or ""
        return [JoinedMember(m.member_id, m.group_instance_id, m.metadata(name)) for m in self.members.values()]

    def current_generation(self, member_id: str) -> JoinResult:
        """Return what a member is answered when it has joined; the leader also gets all members."""
        return JoinResult(
            member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id or "",
            members=self.joined_members() if self.is_leader(member_id) else (),
        )

    def _common_protocols(self) -> set[str]:
        names = Counter(name for m in self.members.values() for name in {name for name, _ in m.protocols})
        return {name for name, count in names.items() if count == len(self.members)}

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        if self.protocol_name is None:
            return frozenset()
        return subscribed_topics(m.metadata(self.protocol_name) for m in self.members.values())
