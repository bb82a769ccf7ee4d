"""A model of consumer groups beside the coordinator: who owns each partition, which offsets count, and how far the epochs have come.

It learns from the responses that members get, and inspects the coordinator only to learn who is a member at the moment. It never
changes anything. Every check raises AssertionError.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.group.causes import CauseKind, GroupChange
from kafkaproto.broker.group.consumer_group import ConsumerGroup
from kafkaproto.broker.group.consumer_requests import AWAY
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.runtime.events import Observer
from tests.support.broker.committed_offset import NOTHING, CommittedOffset

Place = tuple[bytes, int]
"""(topic id, partition index)."""


class Owner(Protocol):
    """The part of a member that this module reads. owned: partitions assigned and not revoked yet. epoch: the last epoch that it was given, or 0."""

    @property
    def name(self) -> str: ...

    @property
    def member_id(self) -> str: ...

    @property
    def instance_id(self) -> str | None: ...

    @property
    def is_classic(self) -> bool: ...

    @property
    def owned(self) -> set[Place]: ...

    @property
    def epoch(self) -> int: ...


class GroupTruth:
    """One group. protocol: "classic", "consumer" or "both". topics: the names that its members may subscribe to; they are never deleted.

    proven_epoch: the highest group epoch, or generation of a classic group, of which a response gave evidence. left: ids of members whose
    leaving was acknowledged.
    """

    def __init__(self, name: str, protocol: str, topics: Sequence[str]) -> None:
        self.name = name
        self.protocol = protocol
        self.topics = topics
        self.members: list[Owner] = []
        self.offsets: dict[Place, CommittedOffset] = {}
        self.proven_epoch = 0
        self._kept_epoch = 0
        """The generation of a classic group that every in-sync replica has, so that no coordinator may fall below it."""
        self._coordinated = -1, 0
        """The leader epoch of the last coordinator, and the log end offset to which it loaded the group."""
        self.replicated_since: int | None = None
        """The leader epoch of the coordinator, or None while not every in-sync replica has what this coordinator loaded of a classic group."""
        self.left: set[str] = set()
        self.conversions = 0
        """How often earlier evidence about the epoch ended: the group restarted at epoch 0, or a coordinator with an unreplicated generation stopped.

        A group without members restarts if it is forgotten or replaced by a group of the other protocol.
        """
        self.is_forgotten = False
        """Whether the coordinator may have forgotten the empty group, so that its offsets are hidden until it is created again (GN-63)."""
        self.times_forgotten = 0
        self._ids: set[str] = set()
        """The ids of the members at the last check."""
        self._was_classic = False

    def offset_of(self, place: Place) -> CommittedOffset:
        """Return what is known of the committed offset of a partition."""
        return self.offsets.setdefault(place, CommittedOffset())

    def epoch_reached(self, epoch: int, conversions: int) -> None:
        """Note that a response proves that the group has reached an epoch or generation.

        conversions: `self.conversions` when the request was sent.
        """
        if conversions == self.conversions:
            self.proven_epoch = max(self.proven_epoch, epoch)

    def was_forgotten(self) -> None:
        """Note that the coordinator forgot the empty group because of a rejected JoinGroup."""
        self.is_forgotten = True
        self.times_forgotten += 1
        self.conversions += 1
        self.proven_epoch = self._kept_epoch = 0

    def was_deleted(self) -> None:
        """Note that the coordinator deleted a classic group, which it may have created again before the next check (GC-64)."""
        self._check_that_no_offset_is_lost()
        self.conversions += 1
        self.proven_epoch = self._kept_epoch = 0

    def _check_that_no_offset_is_lost(self) -> None:
        lost = [offset.acknowledged for offset in self.offsets.values() if offset.acknowledged != NOTHING]
        assert not lost, f"{self.name} is gone with its committed offsets {lost}"

    def may_hide_offsets(self, times_forgotten: int) -> bool:
        """Return whether an OffsetFetch may have found no offsets. times_forgotten: `self.times_forgotten` when the request was sent."""
        return self.is_forgotten or self.times_forgotten != times_forgotten

    def check(self, cluster: Cluster) -> None:
        """Check owners and epochs, unless no broker coordinates the group at the moment."""
        coordinator = self._coordinator(cluster)
        if coordinator is None:
            return
        group = coordinator.groups.get_any(self.name)
        if group is None and coordinator.groups.forgotten.get(self.name) is not None:
            assert self.is_forgotten and cluster.semantics == "kafka", f"{self.name} was forgotten"
            return
        self.is_forgotten = False
        if group is None:
            self._check_that_no_offset_is_lost()
            # A group without members and offsets is deleted, and starts again at epoch 1.
            self.proven_epoch = self._kept_epoch = 0
            return
        self._check_owners(group.members)
        epoch = group.epoch if isinstance(group, ConsumerGroup) else group.generation_id
        is_reset = self.protocol == "both" and epoch < self.proven_epoch
        if is_reset and (not self._ids & set(group.members) or self._was_empty_classic_group(cluster, group)):
            self.conversions += 1
            self.proven_epoch = self._kept_epoch = 0
        self._ids = set(group.members)
        self._was_classic = not isinstance(group, ConsumerGroup)
        if not isinstance(group, ConsumerGroup):
            self._forget_what_only_the_last_coordinator_had(cluster, epoch)
        assert epoch >= self.proven_epoch, f"{self.name}: the epoch went back from {self.proven_epoch} to {epoch}"
        if isinstance(group, ConsumerGroup):
            self._check_members(group)

    def _forget_what_only_the_last_coordinator_had(self, cluster: Cluster, generation: int) -> None:
        """Lower the proven generation of a classic group after a move, if not every in-sync replica had it. generation: the present one.

        As in Kafka, a coordinator loads a group to the end of its log, so that it may show members a generation that only its own log has. It is safe
        as soon as the high watermark reaches the end of what was loaded; later generations are replicated before a response shows them.
        """
        leader, leader_epoch = cluster.controller.image.leader_of(OFFSETS_TOPIC, 0)
        log = cluster.nodes[leader].replicas.partitions[OFFSETS_TOPIC, 0].log
        if leader_epoch != self._coordinated[0]:
            self._coordinated = leader_epoch, log.log_end_offset
            possible = max(self._kept_epoch, min(self.proven_epoch, generation))
            self.conversions += possible < self.proven_epoch
            self.proven_epoch = possible
            self.replicated_since = None
        if log.high_watermark >= self._coordinated[1]:
            self._kept_epoch = self.proven_epoch
            self.replicated_since = leader_epoch

    def _was_empty_classic_group(self, cluster: Cluster, group: Any) -> bool:
        """Return whether a classic group has been replaced since the last check, although it may not be upgraded.

        Such a group was empty. A former member may have joined the new group with its old id.
        """
        policy = str(cluster.config.get(0, "group.consumer.migration.policy")).lower()
        return self._was_classic and isinstance(group, ConsumerGroup) and policy not in ("upgrade", "bidirectional")

    def _coordinator(self, cluster: Cluster) -> Any:
        leader, _ = cluster.controller.image.leader_of(OFFSETS_TOPIC, 0)
        if leader < 0 or not cluster.nodes[leader].running:
            return None
        coordinator = cluster.nodes[leader].groups
        return None if coordinator.ownership.refusal(self.name) else coordinator

    def _check_owners(self, known: Any) -> None:
        """Check that a partition has one owner. The coordinator has ended the ownership of members that it does not know."""
        owners: dict[Place, Owner] = {}
        for member in self.members:
            if member.member_id not in known or self._missed_a_generation(member):
                continue
            for place in member.owned:
                other = owners.setdefault(place, member)
                assert other is member, (
                    f"{self.name}: partition {place[0].hex()}-{place[1]} has two owners: {other.name} and {member.name}"
                )

    def _missed_a_generation(self, member: Owner) -> bool:
        """Return whether a member is a static one that did not join the newest generation: its partitions are assigned to others (GC-25)."""
        is_static = member.is_classic and member.instance_id is not None
        return is_static and member.epoch < self.proven_epoch

    def _check_members(self, group: ConsumerGroup) -> None:
        assert group.assignment_epoch <= group.epoch, f"{self.name}: assigned {group.assignment_epoch} of {group.epoch}"
        instances = [member.instance_id for member in group.members.values() if member.instance_id is not None]
        assert len(instances) == len(set(instances)), f"{self.name}: two members have one instance id: {instances}"
        returned = self.left & group.members.keys()
        assert not returned, f"{self.name}: members that left are back: {sorted(returned)}"
        for member in self.members:
            group_member = group.members.get(member.member_id)
            epoch = member.epoch if group_member is None else group_member.current.epoch
            assert epoch >= member.epoch or epoch == AWAY, (
                f"{self.name}: the epoch of {member.name} went back from {member.epoch} to {epoch}"
            )


class RemovedGroups(Observer):
    """An observer that notifies the model of a group when the coordinator forgets this group, or deletes it as a classic group."""

    def __init__(self, groups: Sequence[GroupTruth]) -> None:
        self._groups = groups

    def group_changed(self, broker_id: int, change: GroupChange, now_ms: int) -> None:
        kinds = {cause.kind for cause in change.causes}
        for group in self._groups:
            if group.name != change.group_id:
                continue
            if CauseKind.FORGOTTEN in kinds:
                group.was_forgotten()
            elif change.state == "Dead" and CauseKind.UNLOADED not in kinds and group.protocol == "classic":
                assert not change.members, f"{group.name} is gone with its members {change.members}"
                group.was_deleted()
