"""One consumer group of the new protocol (KIP-848): its members, epochs, target assignment and the owners of its partitions.

This module only holds the current state. `consumer_coordinator` sets the timers and writes the records. Corresponds to Kafka's `ConsumerGroup` and
`ConsumerGroupMember`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from kafkaproto.broker.group.assignment import NOTHING, Assignment, Place
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.partition_table import PartitionTable
from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.broker.group.reconciliation import NO_EPOCH, Current, MemberState
from kafkaproto.broker.group.results import ALWAYS, Protocols
from kafkaproto.broker.group.subscribed_topics import SubscribedTopic
from kafkaproto.broker.runtime.timers import Timer
from kafkaproto.error_codes import ErrorCode
from kafkaproto.hash_order import timeline_order
from kafkaproto.partitioner import java_hash_bits


class ConsumerGroupState(Enum):
    """The states of a group under Kafka's names (GN-20)."""

    EMPTY = "Empty"
    ASSIGNING = "Assigning"
    RECONCILING = "Reconciling"
    STABLE = "Stable"
    DEAD = "Dead"


class ClassicProtocol(NamedTuple):
    """The values from the last JoinGroup request of a member that uses the classic protocol (GN-56).

    protocols: (name, metadata) pairs in the member's order of preference.
    """

    session_timeout_ms: int
    protocols: Protocols


class ResolvedRegex(NamedTuple):
    """The names of the existing topics that a regular expression matched at the time `resolved_ms` (GN-51)."""

    topics: frozenset[str]
    resolved_ms: int


class ReplacedMember(NamedTuple):
    """A static member that another member replaces in the current request.

    When Kafka computes target assignments, or the records of a downgrade, its hash tables still have the replaced member (GN-45, GN-61). member_id:
    the id of the replaced member. successor_id: the id of the member that replaces it. member_ids: the ids of all members before the replacement, in
    the order in which they joined.
    """

    member_id: str
    successor_id: str
    member_ids: tuple[str, ...]


TIMERS = ("session_timer", "rebalance_timer", "join_timer", "sync_timer")
"""The names of the fields of `ConsumerMember` that hold timers."""


@dataclass(slots=True, eq=False)
class ConsumerMember:
    """One member of a consumer group.

    instance_id: the `group.instance.id` of a static member; None for a dynamic one. topic_names, topic_regex: the topic names and the regular
    expression that the member subscribes to; "" for no expression. assignor: the name of the assignor that the member prefers; None for no
    preference. current: its epoch and partitions. classic: the session timeout and the protocols in the last JoinGroup of a member that uses the
    classic protocol; None for the new protocol (KIP-848). session_timer: fires when the member sends no heartbeat for too long. rebalance_timer:
    fires when the member does not revoke partitions in time. join_timer, sync_timer: fire when a member of the classic protocol does not join or sync
    in time (GN-59).
    """

    member_id: str
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    topic_names: frozenset[str] = frozenset()
    topic_regex: str = ""
    assignor: str | None = None
    current: Current = field(default_factory=Current)
    classic: ClassicProtocol | None = None
    session_timer: Timer | None = None
    rebalance_timer: Timer | None = None
    join_timer: Timer | None = None
    sync_timer: Timer | None = None

    @property
    def protocol_name(self) -> str:
        """Return the protocol name that JoinGroup returns to a member of the classic protocol: the first protocol that it offered."""
        assert self.classic is not None
        return self.classic.protocols[0][0]


@dataclass(slots=True, eq=False)
class ConsumerGroup:
    """One consumer group of the new protocol (KIP-848).

    epoch: grows with each change of subscriptions or topics. assignment_epoch: the epoch for which the target assignment was computed.
    """

    group_id: str
    epoch: int = 0
    assignment_epoch: int = 0
    created_at: int = ALWAYS
    """The end offset of the group's partition of `__consumer_offsets` when the group was created, or `ALWAYS` (-1).

    Requests that only read, such as ConsumerGroupDescribe, behave as if the group did not exist until the high watermark of that partition is above
    this offset. `ALWAYS` means that these requests always see the group.
    """
    members: dict[str, ConsumerMember] = field(default_factory=dict)
    static_ids: dict[str, str] = field(default_factory=dict)
    """Maps group instance ids to member ids."""
    targets: dict[str, Assignment] = field(default_factory=dict)
    """Maps member ids to target assignments; members without partitions may be missing."""
    subscribers: Counter[str] = field(default_factory=Counter)
    """The number of members that subscribe to each topic name. Names that only a regular expression matches are not counted."""
    regex_subscribers: Counter[str] = field(default_factory=Counter)
    """The number of members that subscribe to each regular expression."""
    regexes: dict[str, ResolvedRegex] = field(default_factory=dict)
    """Maps each regular expression that has been resolved (matched with the existing topics) to the result."""
    regexes_resolved_ms: int | None = None
    """The time in ms at which the regular expressions were last matched with the existing topics; None if they were never matched."""
    regexes_saw: frozenset[str] | None = None
    """The names of all topics that existed when the regular expressions were last matched; None until they are matched after loading the group."""
    regex_timer: Timer | None = None
    """The timer that matches the regular expressions with the existing topics; None if it is not set."""
    topics: dict[str, SubscribedTopic] = field(default_factory=dict)
    """The subscribed topics that existed when the current epoch started.

    Empty if the group was loaded from the records of Kafka 4.1 or later, which contain only a hash of the topics.
    """
    metadata_hash: int = 0
    """The hash of `topics` that is stored with the group's epoch, from Kafka 4.1 on. 0 before 4.1: those releases store the topics (GO-8)."""
    has_topics_record: bool = False
    """Whether the offsets topic contains a record that lists the group's topics. From 4.1 on, brokers store a hash instead and delete this record."""
    seen_topics: Mapping[str, object] | None = None
    """The topics of the cluster, by name, at the group's last check for changed topics; None before the first check.

        The cluster replaces this mapping, and the object of the topic in it, whenever a topic changes. So the operator `is` finds changed topics
        (GN-17).
    """
    owners: dict[Place, int] = field(default_factory=dict)
    """Maps each owned partition, as (topic id, partition index), to the member epoch of its owner (GN-21).

    The owner is the member that has the partition, or that must still revoke it.
    """
    releasing: Mapping[Place, int] = field(default_factory=dict)
    """Maps each partition that a member gives up in the current request to the member epoch with which this member owned it (GN-32).

    A member gives up its partitions when it takes over the instance id of another member. While the broker handles that request, no other member can
    get the given-up partitions.
    """
    replaced: ReplacedMember | None = None
    """The member whose instance id another member takes over in the current request; None in any other request."""
    fenced: set[str] = field(default_factory=set)
    """The ids of removed (fenced) members. Their requests get FENCED_MEMBER_EPOCH instead of UNKNOWN_MEMBER_ID until these members join again."""
    most_members: int = 0
    """The largest number of members just before a removal of a member. It helps to find the size of Kafka's hash table of members (GN-45)."""
    unreconciled: set[str] = field(default_factory=set)
    """The ids of the members that have not reached their target assignment. The group is Stable only if there are no such members."""
    offsets: PartitionTable[CommittedOffset] = field(default_factory=PartitionTable)
    staged: dict[PartitionKey, CommittedOffset] = field(default_factory=dict)
    """Always empty, because Kafka's group coordinator in Scala has only classic groups. `Group.staged` says what it is."""
    pending_offsets: PendingOffsets = field(default_factory=PendingOffsets)
    """The offsets that producers committed in transactions that are still open."""

    @property
    def state(self) -> ConsumerGroupState:
        """Return the state of the group as ListGroups and ConsumerGroupDescribe show it (GN-20)."""
        if not self.members:
            return ConsumerGroupState.EMPTY
        if self.epoch > self.assignment_epoch:
            return ConsumerGroupState.ASSIGNING
        return ConsumerGroupState.RECONCILING if self.unreconciled else ConsumerGroupState.STABLE

    def successor(self) -> ConsumerGroup:
        """Return a new group with the same id and without members. The caller puts it in the place of this group, which was removed from memory.

        The new group shares the committed offsets and the pending offsets with this group.
        """
        return ConsumerGroup(
            self.group_id,
            offsets=self.offsets,
            pending_offsets=self.pending_offsets,
        )

    def find(self, member_id: str, instance_id: str | None) -> ConsumerMember | ErrorCode:
        """Return the member with this instance id or, if `instance_id` is None, with this member id. Returns an error code if there is none.

        The code is FENCED_INSTANCE_ID (82) if `member_id` is not empty and another member has the instance id, otherwise UNKNOWN_MEMBER_ID (25).
        """
        holder = None if instance_id is None else self.members.get(self.static_ids.get(instance_id, ""))
        member = self.members.get(member_id) if member_id and instance_id is None else holder
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        return member if member_id in ("", member.member_id) else ErrorCode.FENCED_INSTANCE_ID

    def reads(self, topic: str) -> bool:
        """Return whether a member subscribes to `topic`, by name or by regular expression."""
        return self.subscribers[topic] > 0 or any(topic in resolved.topics for resolved in self.regexes.values())

    def subscribed_topics(self) -> set[str]:
        """Return the topics that members subscribe to, by name or by a regular expression that has been matched with the existing topics."""
        return set(self.subscribers).union(*(resolved.topics for resolved in self.regexes.values()))

    def topics_of(self, member: ConsumerMember) -> frozenset[str]:
        """Return the topics that one member subscribes to. A new regular expression adds no topics until the broker resolves it (GN-52).

        To resolve an expression is to match it with the existing topics.
        """
        resolved = self.regexes.get(member.topic_regex)
        return member.topic_names if resolved is None else member.topic_names | resolved.topics

    def supports_classic(self, protocols: Protocols) -> bool:
        """Return whether at least one of `protocols` is supported by all members that use the classic protocol."""
        names = [{name for name, _ in m.classic.protocols} for m in self.members.values() if m.classic is not None]
        return any(all(name in names_of_member for names_of_member in names) for name, _ in protocols)

    def awaits_release(self, member: ConsumerMember) -> bool:
        """Return whether another member still owns a partition of this member's target assignment."""
        return any(
            index not in member.current.assigned.get(topic_id, ()) and self.owner_epoch(topic_id, index) != NO_EPOCH
            for topic_id, indexes in self.target_of(member.member_id).items()
            for index in indexes
        )

    def target_of(self, member_id: str) -> Assignment:
        """Return the target assignment of a member; empty if it has none."""
        return self.targets.get(member_id, NOTHING)

    def owner_epoch(self, topic_id: bytes, index: int) -> int:
        """Return the member epoch of the member that has a partition or must still revoke it; -1 if there is no such member."""
        place = topic_id, index
        return self.owners.get(place, self.releasing.get(place, NO_EPOCH))

    def assigned_counts(self) -> dict[bytes, int]:
        """Return a dict that maps each topic id in the target assignment to the number of its assigned partitions."""
        counts: Counter[bytes] = Counter()
        for target in self.targets.values():
            counts.update({topic_id: len(indexes) for topic_id, indexes in target.items()})
        return dict(counts)

    def in_table_order(self) -> list[ConsumerMember]:
        """Return the members in the order of Kafka's `TimelineHashMap` of members (GN-64). A new member has the place of the replaced one."""
        most = max(self.most_members, len(self.members)) + 1  # a member's second record needs room for one more
        if self.replaced is None:
            return [self.members[member_id] for member_id in timeline_order(self.members, java_hash_bits, most)]
        successors = {self.replaced.member_id: self.replaced.successor_id}
        in_order = timeline_order(self.replaced.member_ids, java_hash_bits, most)
        return [self.members[successors.get(member_id, member_id)] for member_id in in_order]

    # ---- changes -------------------------------------------------------------------------------------------------------------

    def put(self, member: ConsumerMember) -> None:
        """Add a member, or replace the member with the same id. The added member owns the partitions that it has or must still revoke."""
        member_before = self.members.get(member.member_id)
        if member_before is not None:
            self._forget(member_before)
        self.members[member.member_id] = member
        self.fenced.discard(member.member_id)
        if member.instance_id is not None:
            self.static_ids[member.instance_id] = member.member_id
        self._subscribe(member)
        self._own(member)
        self._note_progress(member)

    def remove(self, member_id: str) -> None:
        """Remove a member and its target assignment. Its partitions then have no owner."""
        self.most_members = max(self.most_members, len(self.members))
        member = self.members.pop(member_id)
        self._forget(member)
        if member.instance_id is not None and self.static_ids.get(member.instance_id) == member_id:
            del self.static_ids[member.instance_id]
        self.targets.pop(member_id, None)
        self.unreconciled.discard(member_id)

    def move(self, member: ConsumerMember, current: Current) -> None:
        """Replace the current state of a member: its epoch, the partitions that it may read, and those that it must still revoke.

        Partitions that the member keeps get its new epoch. Partitions that it no longer has lose their owner.
        """
        self._disown(member)
        member.current = current
        self._own(member)
        self._note_progress(member)

    def set_target(self, targets: Mapping[str, Assignment], epoch: int) -> None:
        """Set the target assignments of all members, and the epoch of these assignments. targets: maps member ids to assignments."""
        self.targets = dict(targets)
        self.assignment_epoch = epoch
        self.unreconciled = {member.member_id for member in self.members.values() if not self._is_reconciled(member)}

    def subscribe(self, member: ConsumerMember, topic_names: Iterable[str], topic_regex: str) -> None:
        """Set the topic names and the regular expression that a member subscribes to. topic_regex: empty for no expression."""
        self._unsubscribe(member)
        member.topic_names, member.topic_regex = frozenset(topic_names), topic_regex
        self._subscribe(member)

    def _note_progress(self, member: ConsumerMember) -> None:
        if self._is_reconciled(member):
            self.unreconciled.discard(member.member_id)
        else:
            self.unreconciled.add(member.member_id)

    def _is_reconciled(self, member: ConsumerMember) -> bool:
        return member.current.state is MemberState.STABLE and member.current.epoch == self.assignment_epoch

    def _forget(self, member: ConsumerMember) -> None:
        self._unsubscribe(member)
        self._disown(member)

    def _subscribe(self, member: ConsumerMember) -> None:
        self.subscribers.update(member.topic_names)
        if member.topic_regex:
            self.regex_subscribers[member.topic_regex] += 1

    def _unsubscribe(self, member: ConsumerMember) -> None:
        self.subscribers.subtract(member.topic_names)
        for name in member.topic_names:
            if not self.subscribers[name]:
                del self.subscribers[name]
        if member.topic_regex:
            self.regex_subscribers[member.topic_regex] -= 1
            if not self.regex_subscribers[member.topic_regex]:
                del self.regex_subscribers[member.topic_regex]

    def owned_by(self, member: ConsumerMember) -> dict[Place, int]:
        """Return the partitions that a member has or must still revoke, as (topic id, partition index), each mapped to the member's current epoch."""
        current = member.current
        return {
            (topic_id, index): current.epoch
            for places in (current.assigned, current.pending)
            for topic_id, indexes in places.items()
            for index in indexes
        }

    def _own(self, member: ConsumerMember) -> None:
        self.owners.update(self.owned_by(member))

    def _disown(self, member: ConsumerMember) -> None:
        for place, epoch in self.owned_by(member).items():
            if self.owners.get(place) == epoch:
                del self.owners[place]
