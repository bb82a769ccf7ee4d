"""What members of both group protocols have in common: how they find their coordinator, lose responses, pause, commit and fetch offsets."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from kafkaproto.broker.errors import KafkaError
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.simulation.client import Client, E
from tests.simulation.group_truth import GroupTruth, Place
from tests.simulation.line import Line
from tests.simulation.world import BROKERS, World
from tests.support.broker.committed_offset import NOTHING

MOVED_COORDINATOR = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS}
UNSURE_COMMIT = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.REQUEST_TIMED_OUT}
"""Errors after which a commit may count or not: it may have been written, but not replicated in time."""
PAUSES_MS = 1_500, 4_000, 9_000, 15_000


class Member(Client):
    """A process that is a member of a group. instance_id: None unless it is static. calm: whether it never pauses or loses a response.

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
        self.is_gone = False
        self.calm = False
        self._coordinator: int | None = None
        self._waiting: Line | None = None
        self._paused_until_ms = 0
        self._was_paused = False

    # ---- one operation -------------------------------------------------------------------------------------------------------

    def act(self) -> None:
        chance = self.world.chance
        if self.is_gone or self.world.now_ms < self._paused_until_ms or self._is_waiting():
            return
        if not self.calm and chance.random() < 0.02:
            self.pause()
            return
        was_paused, self._was_paused = self._was_paused, False
        kept = sorted(self.owned & self.positions.keys())
        if not self.is_member:
            self.join()
        elif was_paused and kept:
            self.commit(kept)  # the process does not know yet that it may have lost its partitions
        elif chance.random() < 0.35 and self.owned:
            self._commit_or_fetch()
        else:
            self.heartbeat()

    def pause(self) -> None:
        """Stop the process for a while; meanwhile the coordinator may remove the member."""
        self._was_paused = True
        self._paused_until_ms = self.world.now_ms + self.world.chance.choice(PAUSES_MS)
        self.world.say("fault", f"{self.name} pauses until {self._paused_until_ms}")

    def _is_waiting(self) -> bool:
        """Return whether a response is due. It may never come: the broker died, or the member gives up the connection."""
        line, lost = self._waiting, False
        if line is not None and line.expected:
            if line.is_open and not self.calm and self.world.chance.random() < 0.05:
                self.world.say("fault", f"{line.name} hangs up before the response")
                line.hang_up()
                self.world.cluster.run()
            if line.is_open:
                return True
            lost = True
        self._waiting = None
        if lost:
            self._coordinator = None
            self.response_lost()
        return False

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

    def response_lost(self) -> None:
        """React to a response that never comes."""

    @property
    def is_busy(self) -> bool:
        """Whether a response is due."""
        return self._waiting is not None and self._waiting.is_open and bool(self._waiting.expected)

    def crash(self) -> None:
        """End the process without leaving the group."""
        self.world.say("fault", f"{self.name} crashes")
        self.end()

    def end(self) -> None:
        """End the process."""
        self.is_gone = True
        self.owned.clear()
        self.positions.clear()
        for line in self.lines.values():
            if line.is_open:
                line.hang_up()
        self.world.cluster.run()

    def rest(self) -> None:
        """Stop all faults of this member."""
        self.calm = True
        self._paused_until_ms = 0

    def give_up_all(self) -> None:
        """Revoke all partitions."""
        self.owned.clear()
        self.positions.clear()

    # ---- requests ------------------------------------------------------------------------------------------------------------

    def send(self, request: Any, version: int, on_response: Callable[[Any], None]) -> bool:
        """Send a request to the coordinator. Returns False if there is none at the moment."""
        line = self._line_to_coordinator()
        if line is None or line.expected:
            return False
        self._waiting = line
        line.request(request, version, on_response)
        return True

    def _line_to_coordinator(self) -> Line | None:
        world = self.world
        if self._coordinator is None:
            try:
                self._coordinator = world.cluster.state.coordinator_of(self.group.name)
            except KafkaError:
                return None
            if not self.calm and world.chance.random() < 0.02:
                self._coordinator = world.chance.randrange(BROKERS)  # outdated metadata
        line = self.line(self._coordinator)
        if line is None:
            self._coordinator = None
        return line

    def looks_elsewhere(self, error: int) -> bool:
        """Return whether a response says that the coordinator is another one or not ready; then it is looked up again."""
        if error in MOVED_COORDINATOR:
            self._coordinator = None
        return error in MOVED_COORDINATOR

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
            self.instance_id if self.group.protocol == "classic" else None,
            topics=listed,
        )
        if not self.send(request, 9, on_response):
            for place, number in numbers.items():
                self.group.offset_of(place).refuse(number)

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
        is_consumer = self.group.protocol == "consumer"
        member_id, epoch = (self.member_id, self.epoch) if is_consumer else (None, -1)

        def on_response(answer: Any) -> None:
            [group] = answer.groups
            if group.error_code:
                if not self.looks_elsewhere(group.error_code):
                    self.fenced(group.error_code)
                return
            for topic in group.topics:
                for partition in topic.partitions:
                    if partition.error_code:
                        assert partition.error_code == E.UNSTABLE_OFFSET_COMMIT, partition.error_code
                        continue
                    place = topic_ids[topic.name], partition.partition_index
                    self.group.offset_of(place).check(partition.committed_offset)
                    if place in self.owned:
                        self.positions[place] = max(partition.committed_offset, NOTHING)

        group = OffsetFetchRequestGroup(self.group.name, member_id, epoch, listed)
        self.send(OffsetFetchRequest(groups=[group], require_stable=True), 9, on_response)
