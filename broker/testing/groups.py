"""Consumer groups for tests: views of groups, removal of members, moves of coordinators, and conditions that a test can wait for."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.consumer_group import ConsumerGroupState
from kafkaproto.broker.group.group import GroupState
from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.observe.rebalances import RebalanceSeen
from kafkaproto.broker.testing import records
from kafkaproto.broker.testing.arguments import check_choice, check_int, check_text, counted
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.brokers import checked_broker
from kafkaproto.broker.testing.group_views import (
    GroupSeen,
    PartitionKey,
    check_group,
    check_member,
    group_ids,
    group_seen,
    known_committed,
    missing_group,
)
from kafkaproto.broker.testing.records import StoredRecord, leader_of
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker
from kafkaproto.error_codes import ErrorCode

__tracebackhide__ = is_hidden

_STATES = tuple(dict.fromkeys(state.value for states in (GroupState, ConsumerGroupState) for state in states))
_WITHOUT_MEMBERS = (GroupState.EMPTY.value, GroupState.DEAD.value)
_WITH_MEMBERS = (
    GroupState.COMPLETING_REBALANCE.value,
    GroupState.STABLE.value,
    ConsumerGroupState.ASSIGNING.value,
    ConsumerGroupState.RECONCILING.value,
)


class GroupMethods(Base):
    """A base class of test clusters, with the methods that read and change consumer groups of both protocols."""

    def groups(self) -> dict[str, GroupSeen]:
        """Return the groups by id, also those that have only committed offsets.

        Groups whose coordinator is stopped or still loads them are left out.
        """
        return self._run(lambda: {group_id: group_seen(self.state, group_id) for group_id in group_ids(self.state)})

    def group(self, group_id: str) -> GroupSeen:
        """Return a group: state, coordinator, epochs, members with their partitions, committed offsets and lag.

        Raises ValueError, which names the existing groups, if there is no such group, and KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) while its
        coordinator is loading it, or COORDINATOR_NOT_AVAILABLE (15) if no running broker coordinates it.
        """

        def find() -> GroupSeen:
            check_group(self.state, group_id)
            return group_seen(self.state, group_id)

        with without_frames_of_the_broker(ValueError):
            return self._run(find)

    def rebalances(self, group_id: str) -> list[RebalanceSeen]:
        """Return the last 100 rebalances of a group, oldest first, each with its causes. A deleted group keeps its rebalances.

        Raises ValueError, which names the existing groups, for a group that has never existed. For a group without rebalances, raises KafkaError as
        `group` does.
        """

        check_text("group_id", group_id, "readers")

        def find() -> list[RebalanceSeen]:
            if group_id not in self.state.rebalances:
                check_group(self.state, group_id)
            return self.state.rebalances.of_group(group_id)

        with without_frames_of_the_broker(ValueError):
            return self._read(find)

    def expire_member(self, group_id: str, member_id: str) -> None:
        """Remove a member from a group, as though its session timed out. A client that still runs joins again.

        Raises ValueError, which names the existing groups or members, if there is no such group or member, and KafkaError as `group` does.
        """

        def act() -> None:
            coordinator = check_member(self.state, group_id, member_id)
            coordinator.expire_member(group_id, member_id, self.state.actions.now_ms)

        with without_frames_of_the_broker(ValueError):
            self._run(act)

    def fence_member(self, group_id: str, member_id: str) -> None:
        """Fence a member of a KIP-848 group, or a static member of a classic group.

        A member of a KIP-848 group is removed, and its next heartbeat gets FENCED_MEMBER_EPOCH (110). If the coordinator moves before that heartbeat,
        the member gets UNKNOWN_MEMBER_ID (25), because the next coordinator does not know of removed members.

        In a classic group, the coordinator acts as though a second process had joined with the member's `group.instance.id`. There is no such
        process, so no request of the new member follows. The next request of the fenced member gets FENCED_INSTANCE_ID (82).

        Raises ValueError if there is no such group or member, or if the member is a dynamic one of a classic group, and KafkaError as `group` does.
        """

        def act() -> None:
            coordinator = check_member(self.state, group_id, member_id)
            members = {member.member_id: member for member in group_seen(self.state, group_id).members}
            member = members[member_id]
            if member.member_epoch is None and member.group_instance_id is None:
                raise ValueError(
                    f"member_id must be a static member of classic group {group_id!r} (got the dynamic member {member_id!r}); "
                    "set group.instance.id in the client, or call expire_member"
                )
            coordinator.fence_member(group_id, member_id, self.state.actions.now_ms)

        with without_frames_of_the_broker(ValueError):
            self._run(act)

    def _lead_group(self, group_id: str, broker_id: int) -> None:
        """Make a broker the coordinator of a group: the leader of the group's partition of `__consumer_offsets`.

        Raises ValueError if there is no such group, or if the broker cannot become the leader, and KafkaError as `group` does.
        """

        def act() -> None:
            check_group(self.state, group_id)
            lead_group(self.state, group_id, checked_broker(self, broker_id))

        with without_frames_of_the_broker(ValueError):
            self._run(act)

    def committed(self, group_id: str) -> dict[PartitionKey, int]:
        """Return the committed offsets of a group by (topic, partition), empty for an unknown group. Raises KafkaError as `group` does."""
        check_text("group_id", group_id, "readers")
        return self._run(lambda: known_committed(self.state, group_id))

    def lag(self, group_id: str) -> dict[PartitionKey, int]:
        """Return how far the committed offset of each (topic, partition) is behind the high watermark, in offsets.

        Partitions without a committed offset, or with a negative one, are left out. Raises KafkaError GROUP_ID_NOT_FOUND (69) if the group has no
        committed offsets, another KafkaError if a partition has been deleted or has no leader, and KafkaError as `group` does.
        """
        check_text("group_id", group_id, "readers")

        def find() -> dict[PartitionKey, int]:
            offsets = known_committed(self.state, group_id)
            if not offsets:
                existing_groups = ", ".join(sorted(group_ids(self.state))) or "none"
                text = f"Group {group_id} has no committed offsets. Existing groups: {existing_groups}."
                raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, text)
            return {
                key: max(0, leader_of(self.state, *key).log.high_watermark - offset)
                for key, offset in offsets.items()
                if offset >= 0
            }

        return self._run(find)


class Wait(NamedTuple):
    """A condition that a test waits for.

    reached: a function that takes the cluster and returns the result of the wait, or None while the condition is false. describe: a function that
    takes the cluster and returns its present state as text, for the error message after a timeout.
    """

    reached: Callable[[Cluster], object]
    describe: Callable[[Cluster], str]


def for_group(group_id: str, members: int | None, state: str | None) -> Wait:
    """Return a condition that is true when a group has `members` members and the state `state`; None accepts any value.

    Raises TypeError or ValueError for arguments of a wrong type, an unknown state, and impossible combinations, such as 2 members and "Empty".
    """
    check_text("group_id", group_id, "readers")
    if members is not None:
        check_int("members", members, 0, example=2)
    if state is not None:
        check_choice("state", state, _STATES, "Stable")
    if members and state in _WITHOUT_MEMBERS:
        raise ValueError(f"members must be 0 for a group that is {state} (got {members}); leave members or state out")
    if members == 0 and state in _WITH_MEMBERS:
        raise ValueError(f"members must be at least 1 for a group that is {state} (got 0); leave members or state out")

    def reached(cluster: Cluster) -> GroupSeen | None:
        view = group_seen(cluster, group_id)
        fits = members in (None, len(view.members)) and state in (None, view.state)
        exists = view.state != "Dead" or (state == "Dead" and missing_group(cluster, group_id) is None)
        return view if fits and exists else None

    def describe(cluster: Cluster) -> str:
        view = group_seen(cluster, group_id)
        goal = " and ".join(
            text
            for text in (
                None if members is None else counted(members, "member"),
                None if state is None else f"state {state}",
            )
            if text
        )
        now = missing_group(cluster, group_id) or f"is {view.state} with {counted(len(view.members), 'member')}"
        return f"group {group_id} {now}, and did not reach {goal or 'any state'}"

    return Wait(reached, describe)


def lead_group(cluster: Cluster, group_id: str, broker_id: int) -> None:
    """Elect a broker as the leader of a group's partition of `__consumer_offsets`. Does nothing if the broker leads this partition already.

    Raises ValueError, which names the in-sync replicas, if the broker has no in-sync replica of the partition or is stopped.
    """
    ownership = cluster.nodes[broker_id].groups.ownership
    if cluster.coordinator_of(group_id, ownership.partition_count) == broker_id:
        return
    index = ownership.partition_of(group_id)
    partition = cluster.controller.image.partition(OFFSETS_TOPIC, index)
    in_sync = [] if partition is None else list(partition.isr)
    if broker_id not in in_sync or not cluster.nodes[broker_id].running:
        raise ValueError(
            f"broker_id must be a running broker with an in-sync replica of {OFFSETS_TOPIC}-{index}, the partition of group "
            f"{group_id!r} (got {broker_id}; in sync are {in_sync}); choose one of them, start broker {broker_id}, or raise "
            "offsets.topic.replication.factor"
        )
    cluster.controller.elect(OFFSETS_TOPIC, index, broker_id)


def for_coordinator(group_id: str, broker_id: int) -> Wait:
    """Return a condition that is true when a broker coordinates a group and has loaded it."""

    def reached(cluster: Cluster) -> GroupSeen | None:
        view = group_seen(cluster, group_id)
        return view if view.coordinator == broker_id else None

    def describe(cluster: Cluster) -> str:
        coordinator = group_seen(cluster, group_id).coordinator
        now = "not loaded by any broker" if coordinator is None else f"coordinated by broker {coordinator}"
        return f"group {group_id} is {now}, and broker {broker_id} did not load it"

    return Wait(reached, describe)


def _offsets_in(cluster: Cluster, topic: str, partition: int | None) -> int:
    """Return how many offsets the leader's log has between log start and log end: an upper bound for the number of records.

    partition: None for the sum over all partitions of the topic.
    """
    count = len(cluster.controller.image.topics[topic].partitions)
    indexes = range(count) if partition is None else [partition]
    logs = [leader_of(cluster, topic, index).log for index in indexes]
    return sum(log.log_end_offset - log.log_start_offset for log in logs)


def for_records(topic: str, count: int, partition: int | None) -> Wait:
    """Return a condition that is true when a topic, or one of its partitions, has at least `count` records.

    partition: None for the whole topic. Raises TypeError for an argument of a wrong type, ValueError for an empty name or a negative number.
    """
    check_text("topic", topic, "orders")
    check_int("count", count, 0, example=3)
    if partition is not None:
        check_int("partition", partition, 0, example=0)

    def records_of(cluster: Cluster) -> list[StoredRecord]:
        exists = topic in cluster.controller.image.topics
        return records.stored(cluster, topic, partition) if exists else []

    def reached(cluster: Cluster) -> list[StoredRecord] | None:
        if topic not in cluster.controller.image.topics or _offsets_in(cluster, topic, partition) < count:
            return None
        stored_records = records_of(cluster)
        return stored_records if len(stored_records) >= count else None

    def describe(cluster: Cluster) -> str:
        place = topic if partition is None else f"{topic}-{partition}"
        return f"{place} has {counted(len(records_of(cluster)), 'record')}, and did not reach {count}"

    return Wait(reached, describe)
