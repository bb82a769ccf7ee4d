"""One classic consumer group: its members, its leader, its protocol and its state.

This module only holds the current state. `rebalance` and `coordinator` set its timers and respond to its requests. Corresponds to Kafka's
`GroupMetadata` and `MemberMetadata`.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field
from enum import Enum
from operator import attrgetter

from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.broker.group.records import StoredGroup
from kafkaproto.broker.group.results import ALWAYS, JoinedMember, JoinReply, JoinResult, Protocols, SyncReply
from kafkaproto.broker.group.subscription import CONSUMER_PROTOCOL, have_impossible_size, subscribed_topics
from kafkaproto.broker.runtime.timers import Timer
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import hash_order, java_order, scala_order, scala_table_order
from kafkaproto.partitioner import java_hash_bits


class GroupState(Enum):
    """The states of a group under Kafka's names, as ListGroups and DescribeGroups show them."""

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
    """One member of a classic group.

    group_instance_id: the `group.instance.id` of a static member; None for a dynamic one. is_new: whether the member has not received the response to
    its first join, so that it cannot send heartbeats. assignment: the encoded assignment that the group leader sent for the member. join_reply,
    sync_reply: the function that sends the response to the member's waiting JoinGroup or SyncGroup, None if there is no such request. hash_bits: the
    `hashCode()` of the member id in Java, as an unsigned number. It is stored because each generation needs it.
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
    hash_bits: int = field(init=False)

    def __post_init__(self) -> None:
        self.hash_bits = java_hash_bits(self.member_id)

    @property
    def is_waiting(self) -> bool:
        """Return whether the member waits for the response to a JoinGroup or SyncGroup. Clients send no heartbeats during that time."""
        return self.join_reply is not None or self.sync_reply is not None

    def metadata(self, protocol_name: str) -> bytes:
        return next((data for name, data in self.protocols if name == protocol_name), b"")

    def vote(self, candidates: set[str]) -> str | None:
        return next((name for name, _ in self.protocols if name in candidates), None)


@dataclass(slots=True, eq=False)
class Group:
    """One classic group. Members are in the order in which they joined or were loaded. The first member that joins an empty group is its leader."""

    group_id: str
    state_since_ms: int
    state: GroupState = GroupState.EMPTY
    generation_id: int = 0
    is_new_coordinator: bool = True
    """Whether the broker emulates Kafka's group coordinator in Java (default from 4.0 on)."""
    created_at: int = ALWAYS
    """The end offset of the group's partition of `__consumer_offsets` when the group was created, or `ALWAYS` (-1).

    Requests such as DescribeGroups see the group when the high watermark of that partition is above this offset. `ALWAYS` means that these requests
    always see the group.
    """
    protocol_type: str | None = None
    protocol_name: str | None = None
    leader_id: str | None = None
    subscribed: frozenset[str] | None = None
    """The topics to which members of this generation subscribe.

    None if the group does not use the consumer protocol, or if a subscription cannot be decoded.
    """
    members: dict[str, Member] = field(default_factory=dict)
    most_members: int = 0
    """The largest number of members that the group had before a member was removed. It determines the order of `in_table_order`."""
    table: deque[Member] | None = field(default=None, init=False)
    """The members in the order of Kafka's hash table. It may contain members that were removed later. None if it must be computed again."""
    static_ids: dict[str, str] = field(default_factory=dict)
    """Maps group instance ids to member ids."""
    pending: dict[str, Timer] = field(default_factory=dict)
    """Maps each member id that was given to a new member to a timer. The new member must join again with this id before the timer fires."""
    owing_sync: dict[str, None] = field(default_factory=dict)
    """The ids of members that have received the JoinGroup response of this generation and have not sent SyncGroup yet, as the keys of a dict."""
    new_member_added: bool = False
    """Whether a member joined while the rebalance of a previously empty group was delayed, so that the rebalance may be delayed further."""
    initial_join: bool = False
    """Whether a previously empty group rebalances: its join phase lasts at least `group.initial.rebalance.delay.ms`, even if all members joined."""
    join_timer: Timer | None = None
    sync_timer: Timer | None = None
    offsets: PartitionTable[CommittedOffset] = field(default_factory=PartitionTable)
    staged: dict[PartitionKey, CommittedOffset] = field(default_factory=dict)
    """Maps a partition to the newest offset that was committed outside transactions and is not replicated yet.

    With Kafka's group coordinator in Java it is empty: there, such an offset is a committed offset already.
    """
    pending_offsets: PendingOffsets = field(default_factory=PendingOffsets)
    """The offsets that producers committed in transactions that are still open."""

    def is_in(self, *states: GroupState) -> bool:
        return self.state in states

    def move_to(self, state: GroupState, now_ms: int) -> None:
        if self.state not in _MAY_FOLLOW[state]:
            raise AssertionError(
                f"group {self.group_id}: the state cannot change from {self.state.value} to {state.value}; please report this bug"
            )
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
        """Return 0 if the group has a member with this member id and instance id, otherwise an error code (KIP-345).

        instance_id: None in requests that do not name one; then only the member id is checked. The error code is FENCED_INSTANCE_ID (82) if another
        member has the instance id, otherwise UNKNOWN_MEMBER_ID (25).
        """
        if instance_id is not None:
            current_id = self.static_ids.get(instance_id)
            if current_id is None:
                return ErrorCode.UNKNOWN_MEMBER_ID
            if current_id != member_id:
                return ErrorCode.FENCED_INSTANCE_ID
        return ErrorCode.NONE if member_id in self.members else ErrorCode.UNKNOWN_MEMBER_ID

    def other_generation(self, generation_id: int) -> int:
        """Return an error code: ILLEGAL_GENERATION (22) if `generation_id` differs from the current generation; otherwise 0."""
        return ErrorCode.NONE if generation_id == self.generation_id else ErrorCode.ILLEGAL_GENERATION

    def accepts(self, member_id: str, max_size: int) -> bool:
        """Return whether a member may join a group of at most `max_size` members (`group.max.size`).

        a. An empty group accepts every member.
        b. During the join phase, the group accepts a member that already has a waiting JoinGroup request. It accepts any other member while fewer
           than `max_size` JoinGroup requests wait.
        c. Otherwise the group accepts its current members, and a new one while it has fewer than `max_size` members.
        """
        if self.is_in(GroupState.EMPTY, GroupState.DEAD):
            return True
        member = self.members.get(member_id)
        if self.state is GroupState.PREPARING_REBALANCE:
            # Members whose join is parked stay. If the limit was lowered, those of the others that join last are rejected.
            return (member is not None and member.join_reply is not None) or self.waiting_join_count < max_size
        return member is not None or len(self.members) < max_size

    def supports(self, protocol_type: str, protocols: Protocols) -> bool:
        """Return whether a new member with this protocol type and these protocols can join.

        An Empty group accepts every new member that names a protocol type and a protocol. Otherwise the protocol type must equal that of the group,
        and the new member must offer a protocol that all members support.
        """
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(protocols)
        if self.protocol_type != protocol_type:
            return False
        if not self.members:
            return bool(protocols)
        supported_by_all = self._common_protocols()
        return any(name in supported_by_all for name, _ in protocols)

    def reads(self, topic: str) -> bool:
        """Return whether members subscribe to `topic`. True for every topic if the group has members whose topics are unknown (GC-61)."""
        return bool(self.members) and (self.subscribed is None or topic in self.subscribed)

    def add(self, member: Member, protocol_type: str) -> None:
        if not self.members:
            self.protocol_type = protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self.members[member.member_id] = member
        self.table = None
        if member.group_instance_id is not None:
            self.static_ids[member.group_instance_id] = member.member_id

    def remove(self, member_id: str) -> None:
        self.most_members = max(self.most_members, len(self.members))
        member = self.members.pop(member_id, None)
        if member is not None and member.group_instance_id is not None:
            del self.static_ids[member.group_instance_id]
        if self.leader_id == member_id:
            self.leader_id = _first_in_table(self)
        self.owing_sync.pop(member_id, None)

    def rename(self, member: Member, new_id: str) -> None:
        """Give a new member id to a static member whose process was restarted. The member becomes the last of the members, as in Kafka."""
        old_id = member.member_id
        del self.members[old_id]
        self.members[new_id] = member
        self.owing_sync = {new_id if key == old_id else key: None for key in self.owing_sync}
        member.member_id, member.hash_bits = new_id, java_hash_bits(new_id)
        self.table = None
        assert member.group_instance_id is not None
        self.static_ids[member.group_instance_id] = new_id
        if self.leader_id == old_id:
            self.leader_id = new_id

    def elect_joined_leader(self) -> bool:
        """Keep the leader if it has joined again; otherwise the first member that has joined, in the order of Kafka's table, becomes leader.

        Returns False if no member has joined.
        """
        leader = self.members.get(self.leader_id or "")
        if leader is not None and leader.join_reply is not None:
            return True
        joined_member = next((m for m in in_table_order(self) if m.join_reply is not None), None)
        if joined_member is None:
            return False
        self.leader_id = joined_member.member_id
        return True

    def start_generation(self, now_ms: int) -> bool:
        """Start the next generation with the joined members, and choose its protocol. Without members the group becomes empty.

        Returns False if no protocol can be chosen, or if a subscription contains a length that is negative or exceeds the data. As in Kafka, the join
        phase continues in these cases (GC-27, GC-65).
        """
        self.generation_id += 1
        self.owing_sync.clear()
        if self.members:
            chosen_protocol = self.choose_protocol()
            if chosen_protocol is None:
                return False
            self.protocol_name = chosen_protocol
            metadatas = [member.metadata(chosen_protocol) for member in self.members.values()]
            if self.protocol_type == CONSUMER_PROTOCOL and have_impossible_size(metadatas):
                return False
            self.move_to(GroupState.COMPLETING_REBALANCE, now_ms)
        else:
            self.protocol_name = None
            self.move_to(GroupState.EMPTY, now_ms)
        self.subscribed = self._subscribed_topics()
        return True

    def become_stable(self, generation_id: int) -> None:
        """Make a group that was converted from the new protocol (KIP-848) stable, with `generation_id` as its generation (GN-61)."""
        self.generation_id = generation_id
        self.protocol_name = self.choose_protocol()
        self.state = GroupState.STABLE
        self.subscribed = self._subscribed_topics()

    def choose_protocol(self) -> str | None:
        """Return the protocol with the most votes of the members; None without members, or if a member offers no protocol that all support.

        Each member votes for the first of its protocols that all members support. As in Kafka, only offers are counted: all members support a
        protocol if the number of offers equals the number of members, even if one member offers the protocol twice (GC-27). Among protocols with
        equally many votes, the one that comes first in Kafka's hash table wins. This is a Java table if the broker emulates the group coordinator in
        Java (the default from 4.0 on), otherwise a Scala table.
        """
        supported_by_all = self._common_protocols()
        voted = [member.vote(supported_by_all) for member in self.members.values()]
        votes = Counter(name for name in voted if name is not None)
        if not votes or None in voted:
            return None
        in_order = hash_order(votes) if self.is_new_coordinator else scala_order(votes)
        return max(in_order, key=votes.__getitem__)

    def keeps_protocol_with(self, member: Member, protocols: Protocols) -> bool:
        """Return whether the chosen protocol stays the same if `member` offers `protocols` instead of its present protocols."""
        protocols_before, member.protocols = member.protocols, protocols
        try:
            return self.choose_protocol() == self.protocol_name
        finally:
            member.protocols = protocols_before

    def restore(self, stored: StoredGroup, now_ms: int) -> None:
        """Fill the group from a stored generation. It becomes Stable if the generation has members, otherwise Empty (GO-11)."""
        self.protocol_type = stored.protocol_type or None
        self.generation_id = stored.generation_id
        self.protocol_name = stored.protocol_name
        self.leader_id = stored.leader_id
        self.state_since_ms = now_ms if stored.state_since_ms < 0 else stored.state_since_ms
        for entry in stored.members:
            self.members[entry.member_id] = Member(
                entry.member_id,
                entry.group_instance_id,
                entry.client_id,
                entry.client_host,
                entry.session_timeout_ms,
                entry.rebalance_timeout_ms,
                ((stored.protocol_name or "", entry.subscription),),
                is_new=False,
                assignment=entry.assignment,
            )
            if entry.group_instance_id is not None:
                self.static_ids[entry.group_instance_id] = entry.member_id
        self.state = GroupState.STABLE if self.members else GroupState.EMPTY
        self.subscribed = self._subscribed_topics()

    def joined_members(self) -> list[JoinedMember]:
        """Return all members with their metadata for the chosen protocol, as the leader gets them."""
        name = self.protocol_name or ""
        return [JoinedMember(m.member_id, m.group_instance_id, m.metadata(name)) for m in in_table_order(self)]

    def current_generation(self, member_id: str) -> JoinResult:
        """Return the JoinGroup result that puts the member `member_id` into the current generation. The leader's result lists all members, too."""
        return JoinResult(
            member_id,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name,
            leader_id=self.leader_id or "",
            members=self.joined_members() if self.is_leader(member_id) else (),
        )

    def _common_protocols(self) -> set[str]:
        names = Counter(name for m in self.members.values() for name, _ in m.protocols)
        return {name for name, count in names.items() if count == len(self.members)}

    def _subscribed_topics(self) -> frozenset[str] | None:
        if self.protocol_type != CONSUMER_PROTOCOL:
            return None
        if self.protocol_name is None:
            return frozenset()
        return subscribed_topics(m.metadata(self.protocol_name) for m in self.members.values())


def in_table_order(group: Group) -> list[Member]:
    """Return the members in the order of Kafka's hash table: the `HashMap` of Java or of Scala, the language of the emulated coordinator (GC-28)."""
    return [member for member in _table(group) if member.member_id in group.members]


def _first_in_table(group: Group) -> str | None:
    """Return the id of the first member in Kafka's hash table, None without members. Drops removed members from the start of `group.table`."""
    table = _table(group)
    while table and table[0].member_id not in group.members:
        table.popleft()
    return table[0].member_id if table else None


def _table(group: Group) -> deque[Member]:
    """Return `group.table`, which is computed again if it is None. It may contain removed members: a removal does not change the order."""
    if group.table is None:
        order = java_order if group.is_new_coordinator else scala_table_order
        group.table = deque(order(group.members.values(), attrgetter("hash_bits"), most=group.most_members))
    return group.table
