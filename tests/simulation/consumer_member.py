"""A member of a consumer group of the new protocol (KIP-848) that joins, revokes late, repeats lost heartbeats and leaves."""

from __future__ import annotations

from typing import Any

from kafkaproto.broker.group.consumer_requests import AWAY, JOINING, LEAVING
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from tests.simulation.client import E
from tests.simulation.group_truth import GroupTruth, Place
from tests.simulation.member import Member
from tests.simulation.world import World

FENCED = {E.FENCED_MEMBER_EPOCH, E.UNKNOWN_MEMBER_ID, E.GROUP_ID_NOT_FOUND}


class ConsumerMember(Member):
    """A member. names: the topics that it subscribes to. to_revoke: partitions that it still has and must give up."""

    is_classic = False

    def __init__(
        self, world: World, name: str, group: GroupTruth, client_id: str | None, instance_id: str | None
    ) -> None:
        super().__init__(world, name, group, client_id, instance_id)
        self.version = 0 if world.release == "3.9" else 1
        self.names = self._some_names()
        self.to_revoke: set[Place] = set()
        self._rebalance_timeout_ms = world.chance.choice([3_000, 10_000])
        self._repeats_all = True
        self._epoch_before = 0
        self._new_id()

    def _new_id(self) -> None:
        creates = self.version > 0 or self.world.chance.random() < 0.5
        self.member_id = f"{self.world.chance.getrandbits(64):016x}" if creates else ""

    def _some_names(self) -> list[str]:
        chance, topics = self.world.chance, list(self.group.topics)
        return topics if chance.random() < 0.7 else sorted(chance.sample(topics, chance.randint(1, len(topics))))

    @property
    def is_member(self) -> bool:
        return self.epoch > 0

    def join(self) -> None:
        self._repeats_all = True
        self._beat(JOINING)

    def heartbeat(self) -> None:
        chance = self.world.chance
        if self.to_revoke and (self.calm or chance.random() < 0.6):
            self.owned -= self.to_revoke
            for place in self.to_revoke:
                self.positions.pop(place, None)
            self.to_revoke.clear()
        committable = sorted(self.owned & self.positions.keys())
        if not self.calm and committable and 0 < self._epoch_before < self.epoch and chance.random() < 0.1:
            self.commit(committable, self._epoch_before)
            return
        if not self.calm and chance.random() < 0.05:
            self.names, self._repeats_all = self._some_names(), True
        self._beat(self.epoch)

    def leave(self) -> None:
        self.give_up_all()
        if not self.is_member:
            self.end()
            return
        epoch = AWAY if self.instance_id is not None and self.world.chance.random() < 0.6 else LEAVING
        proven, member_id, group = self.group.proven_epoch, self.member_id, self.group

        def on_response(answer: Any) -> None:
            if answer.error_code == 0:
                assert answer.member_epoch == epoch, f"{self.name}: left with epoch {answer.member_epoch}"
                if epoch == LEAVING:
                    group.left.add(member_id)
                    was_deleted = group.proven_epoch < proven
                    if group.protocol == "consumer" and not was_deleted:
                        group.epoch_reached(proven + 1, group.conversions)
            # The process ends whatever the response is.
            self.is_gone = True

        self.epoch = 0
        request = ConsumerGroupHeartbeatRequest(group.name, member_id, epoch, self.instance_id)
        if not self.send(self.group.name, request, self.version, on_response):
            self.end()

    def response_lost(self) -> None:
        self._repeats_all = True

    def fenced(self, error: int) -> None:
        if error == E.STALE_MEMBER_EPOCH:
            return  # the next heartbeat gets the current epoch
        # a commit to a group that was deleted meanwhile gets ILLEGAL_GENERATION before 4.0 (GO-17)
        self._expect(error, {*FENCED, E.FENCED_INSTANCE_ID, E.ILLEGAL_GENERATION})
        self._start_again(error)

    def _expect(self, error: int, allowed: set[E]) -> None:
        assert error in allowed, f"{self.name}: error {error}"

    def _start_again(self, error: int) -> None:
        joins = self.epoch == 0
        self.give_up_all()
        self.to_revoke.clear()
        self.epoch = self._epoch_before = 0
        if error == E.FENCED_INSTANCE_ID:
            self.end()
        elif joins:
            self._new_id()  # before 4.2, a member cannot join again with its id while the coordinator knows it (GN-13)

    def give_up_all(self) -> None:
        super().give_up_all()
        self.to_revoke.clear()

    def _beat(self, epoch: int) -> None:
        is_full = self._repeats_all
        request = ConsumerGroupHeartbeatRequest(self.group.name, self.member_id, epoch, self.instance_id)
        if is_full:
            request.rebalance_timeout_ms = self._rebalance_timeout_ms
            request.subscribed_topic_names = list(self.names)
        if is_full or self.world.chance.random() < 0.7:
            by_topic: dict[bytes, list[int]] = {}
            for topic_id, index in sorted(self.owned):
                by_topic.setdefault(topic_id, []).append(index)
            request.topic_partitions = [
                ConsumerGroupHeartbeatRequestTopicPartitions(topic_id, indexes)
                for topic_id, indexes in by_topic.items()
            ]
        if self.send(self.group.name, request, self.version, self._received) and is_full:
            self._repeats_all = False

    def _received(self, answer: Any) -> None:
        error = answer.error_code
        if error == 0:
            self._moved(answer)
        elif self.looks_elsewhere(error):
            self._repeats_all = True
        elif error == E.UNRELEASED_INSTANCE_ID:
            assert self.instance_id is not None, f"{self.name}: has no instance id"
        else:
            self._expect(error, {*FENCED, E.FENCED_INSTANCE_ID, *self._too_large()})
            self._start_again(error)

    def _too_large(self) -> set[E]:
        """Return the error for a heartbeat that converts a classic group, if the records of all members do not fit in a segment (GO-23).

        The segments have 2,000 bytes before 4.0. A bug of the broker has the same error, but is logged, which ends the simulation.
        """
        return {E.UNKNOWN_SERVER_ERROR} if self.world.release == "3.9" else set()

    def _moved(self, answer: Any) -> None:
        """Take over the epoch and the assignment of a response."""
        assert answer.member_id in (self.member_id, "") or not self.member_id, f"{self.name}: id {answer.member_id}"
        assert answer.member_epoch >= self.epoch, f"{self.name}: epoch {self.epoch} became {answer.member_epoch}"
        self.member_id = answer.member_id
        if answer.member_epoch > self.epoch:
            self._epoch_before, self.epoch = self.epoch, answer.member_epoch
        self.epoch_reached(self.epoch)
        if answer.assignment is not None:
            assigned = {(t.topic_id, index) for t in answer.assignment.topic_partitions for index in t.partitions}
            self.to_revoke = self.owned - assigned
            self.owned |= assigned
