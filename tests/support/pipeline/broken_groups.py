"""Faults of a broker in groups of both protocols, and the traffic that shows them; `broken.FAULTS` contains them.

Members have a connection each to the coordinator of group g. Their requests are those of a client; nothing but the patched function is wrong.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kafkaproto.broker.group import changes, commits, transitions
from kafkaproto.broker.handlers import consumer_group_heartbeat as consumer_heartbeat_handler
from kafkaproto.broker.handlers import join_group as join_handler
from kafkaproto.broker.handlers import sync_group as sync_handler
from kafkaproto.broker.testing.memory import MemoryClient
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.pipeline.broken import FAULTS, TARGET, Patch, Scene, fault, wrapped
from tests.support.pipeline.group_traffic import assignment, subscription

JOIN_MS = 3_000
"""Time after which the first join phase of a group ends, `group.initial.rebalance.delay.ms`."""
TIMEOUT_MS = 60_000
REBALANCE_IN_PROGRESS = 27


def member(scene: Scene, client_id: str) -> MemoryClient:
    return scene.cluster.connect(scene.cluster.state.coordinator_of("g"), client_id)


class Classic:
    """A member of the classic group g."""

    def __init__(self, scene: Scene, client_id: str, instance_id: str | None = None) -> None:
        self.scene = scene
        self.client = member(scene, client_id)
        self.member_id = ""
        self.instance_id = instance_id

    def join(self) -> None:
        """Send JoinGroup. A dynamic member without a member id first sends another one, whose response has the id."""
        if not self.member_id and self.instance_id is None:
            self.member_id = self.client.ask(self._join(), 8).member_id
        self.client.send(self._join(), 8)

    def _join(self) -> JoinGroupRequest:
        protocols = [JoinGroupRequestProtocol("range", subscription("t", "other"))]
        return JoinGroupRequest("g", TIMEOUT_MS, TIMEOUT_MS, self.member_id, self.instance_id, "consumer", protocols)

    def sync(self, generation: int, **assigned: str) -> None:
        """Send SyncGroup. assigned: the one topic of each member, by member id, if this member is the leader."""
        listed = [SyncGroupRequestAssignment(name, assignment({topic: [0]})) for name, topic in assigned.items()]
        request = SyncGroupRequest("g", generation, self.member_id, self.instance_id, "consumer", "range", listed)
        self.client.send(request, 5)

    def heartbeat(self, generation: int) -> int:
        return int(self.client.ask(HeartbeatRequest("g", generation, self.member_id), 4).error_code)

    def leave(self) -> None:
        self.client.ask(LeaveGroupRequest("g", members=[MemberIdentity(self.member_id)]), 5)

    def commit(self, generation: int, version: int = 8) -> None:
        commit(self.scene, self.client, self.member_id, generation, version, self.instance_id)


def commit(
    scene: Scene, client: MemoryClient, member_id: str, epoch: int, version: int, instance_id: str | None = None
) -> None:
    """Commit an offset, which takes as long as its replication."""
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, 5)])
    client.send(OffsetCommitRequest("g", epoch, member_id, instance_id, topics=[topic]), version)
    scene.cluster.advance(10)


def two_members(scene: Scene) -> tuple[Classic, Classic]:
    """Return the members good, which leads, and target, in generation 2 with a topic each."""
    good, target = Classic(scene, "good"), Classic(scene, TARGET)
    good.join()
    scene.cluster.advance(JOIN_MS)
    good.sync(1, **{good.member_id: "t"})
    scene.cluster.advance(10)
    target.join()
    assert good.heartbeat(1) == REBALANCE_IN_PROGRESS
    good.join()
    scene.cluster.advance(10)
    target.sync(2)
    good.sync(2, **{good.member_id: "t", target.member_id: "other"})
    scene.cluster.advance(10)
    return good, target


# ---- what members do ---------------------------------------------------------------------------------------------------------


def joins_a_group(scene: Scene) -> None:
    good, target = two_members(scene)
    good.heartbeat(2)
    target.heartbeat(2)
    target.commit(2)


def leaves_a_group(scene: Scene) -> None:
    _, target = two_members(scene)
    target.leave()
    scene.cluster.advance(10)


def joins_a_group_again(scene: Scene) -> None:
    _, target = two_members(scene)
    target.join()
    scene.cluster.advance(10)


def commits_with_an_old_generation(scene: Scene) -> None:
    good, target = two_members(scene)
    good.commit(2)
    target.commit(1)


def leaves_and_commits(scene: Scene) -> None:
    target = Classic(scene, TARGET)
    target.join()
    scene.cluster.advance(JOIN_MS)
    target.sync(1, **{target.member_id: "t"})
    scene.cluster.advance(10)
    target.commit(1)
    target.leave()
    scene.cluster.advance(10)
    target.commit(1)


def restarts_and_commits(scene: Scene) -> None:
    """Let two processes of a static member join one after the other, and both commit."""
    target, restarted = Classic(scene, TARGET, "i"), Classic(scene, "restarted", "i")
    target.join()
    scene.cluster.advance(JOIN_MS)
    target.member_id = target.client.answers[-1].message.member_id
    target.sync(1, **{target.member_id: "t"})
    scene.cluster.advance(10)
    target.commit(1)
    restarted.join()
    scene.cluster.advance(10)
    restarted.member_id = restarted.client.answers[-1].message.member_id
    assert restarted.member_id != target.member_id
    restarted.commit(1)
    target.commit(1)


class Consumer:
    """A member of the consumer group g (KIP-848)."""

    def __init__(self, scene: Scene, client_id: str) -> None:
        self.scene = scene
        self.client = member(scene, client_id)
        self.member_id = client_id
        self.epoch = 0
        self.assigned: list[str] = []
        """The topics whose partitions were assigned to the member last."""

    def beat(self, *owned: str, epoch: int | None = None, joins: bool = False) -> Any:
        """Send a heartbeat. owned: the topics of which the member owns the only partition."""
        topics = self.scene.cluster.state.controller.image.topics
        places = [ConsumerGroupHeartbeatRequestTopicPartitions(topics[topic].topic_id, [0]) for topic in owned]
        request = ConsumerGroupHeartbeatRequest("g", self.member_id, self.epoch if epoch is None else epoch)
        request.topic_partitions = places
        if joins:
            request.rebalance_timeout_ms, request.subscribed_topic_names = TIMEOUT_MS, ["t", "other"]
        before = len(self.client.answers)
        self.client.send(request, 0)
        self.scene.cluster.advance(10)
        response = self.client.answers[before].message
        assert not response.error_code, response
        self.epoch = response.member_epoch
        if response.assignment is not None:
            names = {topic.topic_id: name for name, topic in topics.items()}
            self.assigned = [names[place.topic_id] for place in response.assignment.topic_partitions]
        return response


def joins_a_consumer_group(scene: Scene) -> None:
    good, target = Consumer(scene, "good"), Consumer(scene, TARGET)
    good.beat(joins=True)
    good.beat("t", "other")
    target.beat(joins=True)
    good.beat("t", "other")
    good.beat(*good.assigned)
    target.beat(*target.assigned)
    assert len(good.assigned) == len(target.assigned) == 1


def leaves_a_consumer_group_and_commits(scene: Scene) -> None:
    target = Consumer(scene, TARGET)
    target.beat(joins=True)
    epoch = target.epoch
    commit(scene, target.client, TARGET, epoch, 9)
    target.beat(epoch=-1)
    commit(scene, target.client, TARGET, epoch, 9)


def commits_with_an_old_epoch(scene: Scene) -> None:
    good, target = Consumer(scene, "good"), Consumer(scene, TARGET)
    target.beat(joins=True)
    epoch = target.epoch
    commit(scene, target.client, TARGET, epoch, 9)
    good.beat(joins=True)
    target.beat(target.assigned[0])
    target.beat(target.assigned[0])
    assert target.epoch > epoch
    commit(scene, target.client, TARGET, epoch, 9)


def heartbeats_in_a_consumer_group(scene: Scene) -> None:
    good, target = Consumer(scene, "good"), Consumer(scene, TARGET)
    target.beat(joins=True)
    target.beat("t", "other")
    good.beat(joins=True)
    target.beat("t", "other")
    for _ in range(3):
        target.beat(*target.assigned)


# ---- faults ------------------------------------------------------------------------------------------------------------------


@fault(joins_a_group_again, "21")
def generation_of_a_response_falls(patch: Patch) -> None:
    sent_generations: list[int] = []

    def response(original: Any, exchange: Any, result: Any) -> Any:
        falls = exchange.client_id == TARGET and 2 in sent_generations
        sent_generations.append(result.generation_id)
        return original(exchange, replace(result, generation_id=1) if falls else result)

    wrapped(patch, join_handler, "_response", response)


@fault(heartbeats_in_a_consumer_group, "21")
def member_epoch_of_a_response_falls(patch: Patch) -> None:
    sent_epochs: list[tuple[str, int]] = []

    def response(original: Any, result: Any) -> Any:
        falls = result.member_id == TARGET and (TARGET, 2) in sent_epochs
        sent_epochs.append((result.member_id, result.member_epoch))
        return original(replace(result, member_epoch=1) if falls else result)

    wrapped(patch, consumer_heartbeat_handler, "_response", response)


@fault(leaves_a_group, "21-moved")
def recorded_generation_falls(patch: Patch) -> None:
    def change_seen(original: Any, group: Any) -> Any:
        change = original(group)
        return change._replace(epoch=1) if change.state == "PreparingRebalance" and change.epoch == 2 else change

    wrapped(patch, changes, "_snapshot", change_seen)


@fault(joins_a_group, "22")
def assignment_of_another_member_returned(patch: Patch) -> None:
    def response(original: Any, result: Any) -> Any:
        is_of_target = result.assignment == assignment({"other": [0]})
        return original(replace(result, assignment=assignment({"t": [0]})) if is_of_target else result)

    wrapped(patch, sync_handler, "_response", response)


@fault(joins_a_consumer_group, "22")
def partition_assigned_before_it_is_revoked(patch: Patch) -> None:
    wrapped(
        patch,
        transitions,
        "reconcile",
        lambda reconcile, before, goal, owned: reconcile(before, goal._replace(owner_epoch=lambda *_: -1), owned),
    )


@fault(commits_with_an_old_generation, "23")
def commit_of_an_old_generation_accepted(patch: Patch) -> None:
    patch.setattr(commits, "_refusal", lambda *_: 0)


@fault(leaves_and_commits, "23")
def commit_after_leaving_accepted(patch: Patch) -> None:
    patch.setattr(commits, "_refusal", lambda *_: 0)


@fault(leaves_a_consumer_group_and_commits, "23")
def commit_after_leaving_a_consumer_group_accepted(patch: Patch) -> None:
    patch.setattr(commits, "_refusal_of_consumer", lambda *_, **__: 0)


@fault(restarts_and_commits, "23")
def commit_of_a_replaced_static_member_accepted(patch: Patch) -> None:
    def commit(original: Any, self: Any, group: str, generation: int, member: str, *rest: Any, **named: Any) -> None:
        [present] = self._groups.get_any(group).members
        original(self, group, generation, present, *rest, **named)

    wrapped(patch, commits.Commits, "commit", commit)


@fault(commits_with_an_old_epoch, "23")
def commit_of_an_old_member_epoch_accepted(patch: Patch) -> None:
    patch.setattr(commits, "_refusal_of_consumer", lambda *_, **__: 0)


NAMES = tuple(name for name, injected in FAULTS.items() if injected.breaks.__module__ == __name__)
