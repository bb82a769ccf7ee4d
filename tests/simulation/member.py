"""What members of both group protocols have in common: when they join, send heartbeats, commit and fetch offsets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.simulation.client import E
from tests.simulation.group_truth import GroupTruth, Place
from tests.simulation.process import Process
from tests.simulation.world import World
from tests.support.broker.committed_offset import NOTHING

UNSURE_COMMIT = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.REQUEST_TIMED_OUT}
"""Errors after which a commit may count or not: it may have been written, but not replicated in time."""


class Member(Process):
    """A process that is a member of a group. instance_id: None unless it is static.

    owned: the partitions that it was assigned and has not revoked. positions: the offset that it committed or fetched last.
    """

    def __init__(
        self, world: World, name: str, group: GroupTruth, client_id: str | None, instance_id: str | None
    ) -> None:
        super().__init__(world, name, client_id)
        self.group = group
        self.instance_id = instance_id
        self.member_id = ""
        self.epoch = 0
        self.owned: set[Place] = set()
        self.positions: dict[Place, int] = {}
        self._was_paused = False
        self._conversions = 0
        """How often the group had been replaced when the last request was sent."""

    def find_coordinator(self, key: str) -> int:
        return self.world.cluster.state.coordinator_of(key)

    # ---- one operation -------------------------------------------------------------------------------------------------------

    def act(self) -> None:
        chance = self.world.chance
        if not self.is_idle:
            return
        if not self.calm and chance.random() < 0.02:
            self.pause()
            return
        was_paused, self._was_paused = self._was_paused, False
        committable = sorted(self.owned & self.positions.keys())
        if not self.is_member:
            self.join()
        elif was_paused and committable:
            self.commit(committable)  # the process does not know yet that it may have lost its partitions
        elif chance.random() < 0.35 and self.owned:
            self._commit_or_fetch()
        else:
            self.heartbeat()

    def pause(self) -> None:
        self._was_paused = True
        super().pause()

    is_classic: bool
    """Whether it uses the classic protocol."""

    @property
    @abstractmethod
    def is_member(self) -> bool:
        """Whether the member may send heartbeats; otherwise it must join."""

    @abstractmethod
    def join(self) -> None:
        """Send the next request of joining."""

    @abstractmethod
    def heartbeat(self) -> None:
        """Send a heartbeat."""

    @abstractmethod
    def leave(self) -> None:
        """Give up all partitions and leave the group."""

    @abstractmethod
    def fenced(self, error: int) -> None:
        """React to an error that says that this is not, or no longer, a member with this id and epoch."""

    def end(self) -> None:
        self.owned.clear()
        self.positions.clear()
        super().end()

    def give_up_all(self) -> None:
        """Revoke all partitions."""
        self.owned.clear()
        self.positions.clear()

    def send(self, key: str, request: Any, version: int, on_response: Callable[[Any], None]) -> bool:
        self._conversions = self.group.conversions
        return super().send(key, request, version, on_response)

    def epoch_reached(self, epoch: int) -> None:
        """Note that a response proves that the group has reached an epoch or generation."""
        self.group.epoch_reached(epoch, self._conversions)

    # ---- offsets -------------------------------------------------------------------------------------------------------------

    def _commit_or_fetch(self) -> None:
        unknown = sorted(self.owned - self.positions.keys())
        if unknown:
            self.fetch(unknown)
        else:
            places = sorted(self.owned)
            self.commit(self.world.chance.sample(places, self.world.chance.randint(1, len(places))))

    def _names(self, places: list[Place]) -> dict[str, list[int]]:
        names = {topic.topic_id: name for name, topic in self.world.image.topics.items()}
        by_topic: dict[str, list[int]] = {}
        for topic_id, index in places:
            by_topic.setdefault(names[topic_id], []).append(index)
        return by_topic

    def commit(self, places: list[Place], epoch: int | None = None) -> None:
        """Commit a later offset for some partitions. epoch: another generation or member epoch than the current one."""
        chance = self.world.chance
        offsets = {place: self.positions[place] + chance.randint(1, 5) for place in places}
        topic_ids = {name: topic.topic_id for name, topic in self.world.image.topics.items()}
        numbers = {place: self.group.offset_of(place).send(offset) for place, offset in offsets.items()}
        is_old = epoch is not None

        def on_response(answer: Any) -> None:
            for topic in answer.topics:
                for partition in topic.partitions:
                    place = topic_ids[topic.name], partition.partition_index
                    committed_offset = self.group.offset_of(place)
                    if partition.error_code == 0:
                        assert not is_old, f"{self.name}: a commit of epoch {epoch} was accepted after {self.epoch}"
                        committed_offset.acknowledge(numbers[place])
                        if place in self.owned:
                            self.positions[place] = offsets[place]
                    elif partition.error_code not in UNSURE_COMMIT:
                        committed_offset.refuse(numbers[place])
            errors = {partition.error_code for topic in answer.topics for partition in topic.partitions}
            self._committed(errors, is_old=is_old)

        listed = [
            OffsetCommitRequestTopic(
                name,
                partitions=[
                    OffsetCommitRequestPartition(index, committed_offset=offsets[topic_ids[name], index])
                    for index in indexes
                ],
            )
            for name, indexes in self._names(places).items()
        ]
        request = OffsetCommitRequest(
            self.group.name,
            self.epoch if epoch is None else epoch,
            self.member_id,
            self.instance_id if self.is_classic else None,
            topics=listed,
        )
        rejecting, end = self._rejecting_log()
        if not self.send(self.group.name, request, 9, on_response):
            for place, number in numbers.items():
                self.group.offset_of(place).refuse(number)
        assert rejecting is None or rejecting.log_end_offset == end, (
            f"GO-23: {self.name}: a commit was appended at {end}"
        )

    def _rejecting_log(self) -> tuple[ReplicaLog | None, int]:
        """Return the log to which the coordinator in Scala may append no commit now, because too few replicas are in sync, and its end (GO-23)."""
        leader = self.world.leader(OFFSETS_TOPIC, 0) if self.world.has_old_coordinator else None
        if leader is None or len(leader.isr) >= leader.effective_min_isr:
            return None, 0
        return leader.log, leader.log.log_end_offset

    def _committed(self, errors: set[int], *, is_old: bool) -> None:
        assert len(errors) == 1, f"{self.name}: one commit, but {errors}"
        [error] = errors
        if error == 0 or self.looks_elsewhere(error) or error == E.REQUEST_TIMED_OUT:
            return
        if not is_old:
            self.fenced(error)

    def fetch(self, places: list[Place]) -> None:
        """Fetch the committed offsets of partitions, to continue from them."""
        topic_ids = {name: topic.topic_id for name, topic in self.world.image.topics.items()}
        listed = [OffsetFetchRequestTopics(name, partition_indexes=ii) for name, ii in self._names(places).items()]
        member_id, epoch = (None, -1) if self.is_classic else (self.member_id, self.epoch)
        was_forgotten, times_forgotten = self.group.is_forgotten, self.group.times_forgotten
        is_stable = self.world.chance.random() < 0.5
        since = self.group.replicated_since

        def on_response(answer: Any) -> None:
            [group] = answer.groups
            if group.error_code:
                waits = is_stable and self.world.release == "3.9" and not self.world.has_old_coordinator
                is_timeout = waits and group.error_code == E.REQUEST_TIMED_OUT  # GO-29
                if not is_timeout and not self.looks_elsewhere(group.error_code):
                    self.fenced(group.error_code)
                return
            # The coordinator in Scala returns what it has loaded, although not every in-sync replica may have it yet.
            has_all = since is not None and since == self.group.replicated_since
            is_replicated = has_all or not self.world.has_old_coordinator
            for topic in group.topics:
                for partition in topic.partitions:
                    if partition.error_code:
                        assert partition.error_code == E.UNSTABLE_OFFSET_COMMIT, partition.error_code
                        continue
                    is_hidden = was_forgotten or self.group.may_hide_offsets(times_forgotten)
                    if partition.committed_offset == NOTHING and is_hidden:
                        continue
                    place = topic_ids[topic.name], partition.partition_index
                    self.group.offset_of(place).check(partition.committed_offset, is_replicated=is_replicated)
                    if place in self.owned:
                        self.positions[place] = max(partition.committed_offset, NOTHING)

        group = OffsetFetchRequestGroup(self.group.name, member_id, epoch, listed)
        self.send(self.group.name, OffsetFetchRequest(groups=[group], require_stable=is_stable), 9, on_response)
