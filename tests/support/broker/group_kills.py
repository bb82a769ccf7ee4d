"""Members of a classic group and of a KIP-848 group, or of two classic groups, that work while their broker is killed again and again.

Each member is a thread with its own connection: it joins, commits offsets, and leaves now and then, so that each kill hits commits and
rebalances. After each restart the members continue with their ids, generations and epochs, and every response is compared with what
earlier processes acknowledged. Every check raises AssertionError.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any, NamedTuple

from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)
from kafkaproto.messages.create_topics import CreatableReplicaAssignment, CreatableTopic, CreateTopicsRequest
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.messages.heartbeat import HeartbeatRequest
from kafkaproto.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kafkaproto.messages.leave_group import LeaveGroupRequest, MemberIdentity
from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
from kafkaproto.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from kafkaproto.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.support.broker.committed_offset import CommittedOffset
from tests.support.broker.group_bench import subscription
from tests.support.broker.kills import LIFE_SECONDS, BrokerProcesses, Client

E = ErrorCode
TOPIC = "t"
PARTITIONS = 6
MEMBERS = 2
"""The number of members of each group."""
LOADING = {E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE, E.COORDINATOR_LOAD_IN_PROGRESS}
OPTIONS = {
    "group.initial.rebalance.delay.ms": "0",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "1",
}


class Coordinator(NamedTuple):
    """A release of the broker that is killed, and the setting that selects its group coordinator. protocols: of the groups, separated by a comma."""

    release: str
    protocols: str

    @property
    def is_old(self) -> bool:
        """Return whether this is Kafka's group coordinator in Scala, which has only classic groups."""
        return "consumer" not in self.protocols


COORDINATORS = {
    "release 3.9 with the coordinator in Scala": Coordinator("3.9", "classic"),
    "release 3.9 with the coordinator in Java": Coordinator("3.9", "classic,consumer"),
    "release 4.2": Coordinator("4.2", "classic,consumer"),
}


@dataclass
class Killed:
    """The counts of one run. continued: how often a restarted broker still knew a member. commits: the number of acknowledged commits."""

    kills: int = 0
    commits: int = 0
    rebalances: int = 0
    continued: int = 0


class Group:
    """The state of a group, as known from responses. proven: the highest generation or member epoch that an earlier broker process returned."""

    def __init__(self, name: str, counts: Killed) -> None:
        self.name = name
        self.seen = counts
        self.lock = Lock()
        self.offsets = [CommittedOffset() for _ in range(PARTITIONS)]
        self.proven = 0
        self._highest = 0

    def reach(self, epoch: int) -> None:
        """Record the generation or epoch of a member that joined. Raises AssertionError if it is below `proven`."""
        with self.lock:
            assert epoch >= self.proven, f"{self.name}: the epoch went back from {self.proven} to {epoch}"
            self._note(epoch)

    def note(self, epoch: int) -> None:
        """Record the epoch of a member, which may lag behind the group while the member revokes partitions."""
        with self.lock:
            self._note(epoch)

    def _note(self, epoch: int) -> None:
        self.seen.rebalances += epoch > self._highest
        self._highest = max(self._highest, epoch)

    def restarted(self) -> None:
        """Record that the broker was killed: the next broker process must not return a lower generation or epoch to a member that joins."""
        self.proven = self._highest


class Member(ABC):
    """A member of a group, which keeps its state when the broker is killed. epoch: its generation or member epoch, 0 before the first join."""

    def __init__(self, group: Group, number: int, random: Random) -> None:
        self.group = group
        self.number = number
        self.random = random
        self.member_id = ""
        self.epoch = 0
        self.owned: set[int] = set()
        self.positions: dict[int, int] = {}
        self.client: Client

    def run(self, address: str, topic_id: bytes) -> None:
        """Work until the broker is killed."""
        try:
            self.client = Client(address)
        except OSError:
            return
        self.topic_id = topic_id
        try:
            self.resume()
            while True:
                self.step()
        except (OSError, EOFError):
            return
        finally:
            self.client.socket.close()

    def step(self) -> None:
        draw = self.random.random()
        if not self.epoch:
            self.join()
        elif draw < 0.6 and self.owned:
            self.commit()
        elif draw < 0.95:
            self.heartbeat()
        else:
            self.leave()

    @abstractmethod
    def resume(self) -> None:
        """After a restart, check that the broker still knows this member."""

    @abstractmethod
    def join(self) -> None:
        """Send the next request of joining."""

    @abstractmethod
    def heartbeat(self) -> None:
        """Send a heartbeat."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the group."""

    def reset(self) -> None:
        """Forget the partitions and the epoch."""
        self.owned.clear()
        self.positions.clear()
        self.epoch = 0

    def commit(self) -> None:
        """Commit a later offset for each partition, after fetching those that this member does not know."""
        unknown = sorted(self.owned - self.positions.keys())
        if unknown:
            self.fetch(unknown)
        offsets = {i: self.positions[i] + self.random.randint(1, 5) for i in self.owned if i in self.positions}
        if not offsets:
            return
        partitions = [OffsetCommitRequestPartition(i, committed_offset=offset) for i, offset in offsets.items()]
        request = OffsetCommitRequest(
            self.group.name, self.epoch, self.member_id, topics=[OffsetCommitRequestTopic(TOPIC, partitions=partitions)]
        )
        with self.group.lock:
            numbers = {i: self.group.offsets[i].send(offset) for i, offset in offsets.items()}
        [topic] = self.client.ask(request, 9).topics
        errors = {partition.error_code for partition in topic.partitions}
        with self.group.lock:
            for partition in topic.partitions:
                i = partition.partition_index
                if partition.error_code == 0:
                    self.group.offsets[i].acknowledge(numbers[i])
                    self.positions[i] = offsets[i]
                    self.group.seen.commits += 1
                else:
                    self.group.offsets[i].refuse(numbers[i])
        self.refused(errors - {0} - LOADING)

    @abstractmethod
    def refused(self, errors: set[int]) -> None:
        """React to errors of a commit or fetch; an empty set means that there was none."""

    def fetch(self, indexes: list[int]) -> None:
        """Fetch committed offsets and compare them with the acknowledged ones."""
        topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=indexes)]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(self.group.name, None, -1, topics)], require_stable=True
        )
        [group_response] = self.client.ask(request, 9).groups
        if group_response.error_code:
            assert group_response.error_code in LOADING, group_response
            return
        with self.group.lock:
            for partition in group_response.topics[0].partitions:
                if partition.error_code == 0:
                    self.group.offsets[partition.partition_index].check(partition.committed_offset)
                    self.positions[partition.partition_index] = partition.committed_offset


class ClassicMember(Member):
    """A member of the classic group, with eager rebalancing. is_leaving: whether a LeaveGroup got no response.

    left: the ids with which it has left since its last assignment. The broker stores only generations, so that a member that left is back after a
    restart, and every rebalance would wait for it until its timeout.
    """

    is_leaving = False

    def __init__(self, group: Group, number: int, random: Random) -> None:
        super().__init__(group, number, random)
        self.left: list[str] = []

    def resume(self) -> None:
        """Check after a restart that a member with an assignment is still in the group, in its generation or a later one."""
        self._leave(self.left)
        if self.is_leaving or not self.epoch:
            self.is_leaving = False
            return
        while (error := self._beat()) in LOADING:
            pass
        expected = {0, E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION}
        assert error in expected, f"member {self.number} of generation {self.epoch} got {error} after a restart"
        self.group.seen.continued += 1
        self._react(error)

    def join(self) -> None:
        protocols = [JoinGroupRequestProtocol("range", subscription(TOPIC))]
        request = JoinGroupRequest(self.group.name, 30_000, 20_000, self.member_id, None, "consumer", protocols)
        joined = self.client.ask(request, 9)
        if joined.error_code:
            expected = {E.MEMBER_ID_REQUIRED, E.UNKNOWN_MEMBER_ID, E.REBALANCE_IN_PROGRESS, *LOADING}
            assert joined.error_code in expected, joined
            if joined.error_code in (E.MEMBER_ID_REQUIRED, E.UNKNOWN_MEMBER_ID):
                self.member_id = joined.member_id if joined.error_code == E.MEMBER_ID_REQUIRED else ""
            return
        member_ids = [member.member_id for member in joined.members]
        indexes = list(range(PARTITIONS))
        self.random.shuffle(indexes)
        assignments = [
            SyncGroupRequestAssignment(member_id, json.dumps(indexes[i :: len(member_ids)]).encode())
            for i, member_id in enumerate(member_ids)
        ]
        sync = SyncGroupRequest(
            self.group.name, joined.generation_id, joined.member_id, None, "consumer", "range", assignments
        )
        synced = self.client.ask(sync, 5)
        if synced.error_code:
            assert synced.error_code in {E.REBALANCE_IN_PROGRESS, E.UNKNOWN_MEMBER_ID, E.ILLEGAL_GENERATION}, synced
            return
        self.member_id, self.epoch = joined.member_id, joined.generation_id
        self.left.clear()
        self.group.reach(self.epoch)
        self.owned = set(json.loads(synced.assignment or b"[]"))

    def heartbeat(self) -> None:
        self._react(self._beat())

    def _beat(self) -> int:
        return int(self.client.ask(HeartbeatRequest(self.group.name, self.epoch, self.member_id), 4).error_code)

    def _react(self, error: int) -> None:
        if error == E.UNKNOWN_MEMBER_ID:
            self.member_id = ""
        if error not in (0, *LOADING):
            assert error in {E.REBALANCE_IN_PROGRESS, E.ILLEGAL_GENERATION, E.UNKNOWN_MEMBER_ID}, error
            self.reset()

    def refused(self, errors: set[int]) -> None:
        for error in errors:
            self._react(error)

    def leave(self) -> None:
        self.is_leaving = True
        self.reset()
        self._leave([self.member_id])
        self.left.append(self.member_id)
        self.member_id = ""
        self.is_leaving = False

    def _leave(self, member_ids: list[str]) -> None:
        """Remove members from the group. It may have removed them before."""
        request = LeaveGroupRequest(self.group.name, members=[MemberIdentity(member_id) for member_id in member_ids])
        for member_response in self.client.ask(request, 4).members if member_ids else ():
            assert member_response.error_code in (0, E.UNKNOWN_MEMBER_ID), member_response


class ConsumerMember(Member):
    """A member of the KIP-848 group. is_sure: whether its last heartbeat got a response."""

    is_sure = True
    generation = 0

    def resume(self) -> None:
        """Check that the broker accepts the epoch of this member, or fences it if the response to its last heartbeat was lost (GN-12)."""
        if not self.epoch:
            return
        was_sure, epoch = self.is_sure, self.epoch
        while (error := self._beat(epoch, is_full=True)) in LOADING:
            pass
        allowed = {0} if was_sure else {0, E.FENCED_MEMBER_EPOCH}
        assert error in allowed, f"member {self.number} of epoch {epoch} got {error} after a restart"
        self.group.seen.continued += error == 0

    def join(self) -> None:
        if not self.member_id:
            self.generation += 1
            self.member_id = f"member-{self.number}-{self.generation}"
        self._beat(0, is_full=True)

    def heartbeat(self) -> None:
        self._beat(self.epoch, is_full=self.random.random() < 0.2)

    def leave(self) -> None:
        member_id, self.member_id = self.member_id, ""
        self.reset()
        response = self.client.ask(ConsumerGroupHeartbeatRequest(self.group.name, member_id, -1), 0)
        assert response.error_code in (0, *LOADING), response

    def refused(self, errors: set[int]) -> None:
        assert errors <= {E.UNKNOWN_MEMBER_ID, E.STALE_MEMBER_EPOCH}, errors
        if E.UNKNOWN_MEMBER_ID in errors:
            self.reset()

    def _beat(self, epoch: int, *, is_full: bool) -> int:
        request = ConsumerGroupHeartbeatRequest(self.group.name, self.member_id, epoch)
        request.topic_partitions = (
            [ConsumerGroupHeartbeatRequestTopicPartitions(self.topic_id, sorted(self.owned))] if self.owned else []
        )
        if is_full:
            request.rebalance_timeout_ms, request.subscribed_topic_names = 20_000, [TOPIC]
        self.is_sure = False
        response = self.client.ask(request, 0)
        self.is_sure = True
        error = int(response.error_code)
        if error in LOADING:
            return error
        if error:
            assert error in {E.UNKNOWN_MEMBER_ID, E.FENCED_MEMBER_EPOCH, E.GROUP_ID_NOT_FOUND}, response
            self.member_id = ""
            self.reset()
            return error
        assert response.member_epoch >= self.epoch, f"epoch {self.epoch} became {response.member_epoch}"
        self.epoch = response.member_epoch
        if epoch == 0:
            self.group.reach(self.epoch)
        else:
            self.group.note(self.epoch)
        if response.assignment is not None:
            assigned = {i for topic in response.assignment.topic_partitions for i in topic.partitions}
            for index in self.owned - assigned:
                self.positions.pop(index, None)
            self.owned = assigned
        return error


def prepare(address: str) -> bytes:
    """Create the topic if this is the first process, wait for the coordinator, and return the topic's id."""
    client = Client(address)
    assignments = [CreatableReplicaAssignment(i, [0]) for i in range(PARTITIONS)]
    created = client.ask(CreateTopicsRequest([CreatableTopic(TOPIC, -1, -1, assignments)], 10_000), 5).topics[0]
    assert created.error_code in (0, E.TOPIC_ALREADY_EXISTS), created
    while client.ask(FindCoordinatorRequest("classic"), 3).error_code:
        pass
    [topic] = client.ask(MetadataRequest([MetadataRequestTopic(name=TOPIC)]), 12).topics
    client.socket.close()
    return bytes(topic.topic_id)


def check_offsets(address: str, groups: list[Group]) -> None:
    """Compare all committed offsets with the acknowledged ones."""
    client = Client(address)
    for group in groups:
        topics = [OffsetFetchRequestTopics(TOPIC, partition_indexes=list(range(PARTITIONS)))]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group.name, None, -1, topics)], require_stable=True
        )
        while (response := client.ask(request, 9).groups[0]).error_code in LOADING:
            pass
        assert response.error_code == 0, response
        for partition in response.topics[0].partitions:
            group.offsets[partition.partition_index].check(partition.committed_offset)
    client.socket.close()


def run(
    processes: BrokerProcesses, folder: Path, kills: int, seed: int, *, coordinator: Coordinator, continued: int = 0
) -> Killed:
    """Kill a broker while members of two groups work, and check each restarted broker. Returns the counts.

    kills: how often, at least. continued: how many members must have continued before the last kill. Whether a member can continue depends on the
    moment of a kill, so that more kills may be necessary, at most three times `kills`.
    """
    random, counts = Random(seed), Killed()
    groups = [Group("classic", counts), Group("classic-2" if coordinator.is_old else "consumer", counts)]
    members: list[Member] = [ClassicMember(groups[0], i, Random(seed + i)) for i in range(MEMBERS)]
    kind = ClassicMember if coordinator.is_old else ConsumerMember
    members += [kind(groups[1], i, Random(seed - 1 - i)) for i in range(MEMBERS)]
    options = ["--port", "0", "--brokers", "1", "--data-dir", str(folder / "data"), "--release", coordinator.release]
    settings = {**OPTIONS, "group.coordinator.rebalance.protocols": coordinator.protocols}
    options += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    while True:
        with processes.start(options, 1) as process, ThreadPoolExecutor(len(members)) as threads:
            [address] = process.addresses
            topic_id = prepare(address)
            check_offsets(address, groups)
            if counts.kills >= kills and (counts.continued >= continued or counts.kills == 3 * kills):
                break
            process.kill_after(random.uniform(*LIFE_SECONDS))
            work: list[Any] = [threads.submit(member.run, address, topic_id) for member in members]
            for future in work:
                future.result()
        for group in groups:
            group.restarted()
        counts.kills += 1
    return counts
