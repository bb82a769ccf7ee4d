"""Consumer groups of the new protocol with members that join, revoke late, lose responses, leave and fall silent, in any order.

At every moment a partition has at most one reader, and a group whose members send heartbeats becomes stable with all partitions assigned.
"""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaproto.broker.group.consumer_requests import ConsumerHeartbeat, ConsumerHeartbeatResult
from kafkaproto.broker.group.coordinator import GroupCoordinator
from kafkaproto.broker.group.settings import ConsumerGroupSettings, GroupSettings
from kafkaproto.broker.group.subscribed_topics import ClusterTopics
from kafkaproto.broker.runtime.timers import Timers

FENCED, UNKNOWN = 110, 25
REBALANCE_TIMEOUT_MS, SESSION_MS = 30_000, 45_000
Place = tuple[bytes, int]


def topic(name: str, partitions: int) -> SimpleNamespace:
    return SimpleNamespace(topic_id=name.encode() * 16, partitions=[SimpleNamespace(replicas=(0,))] * partitions)


class Reader:
    """A client. owned: the partitions that it reads. to_revoke: those that it still reads and must give up."""

    def __init__(self, member_id: str, names: tuple[str, ...]) -> None:
        self.member_id = member_id
        self.names = names
        self.epoch = 0
        self.owned: set[Place] = set()
        self.to_revoke: set[Place] = set()
        self.lost_a_response = False
        """Whether the next heartbeat repeats everything, as Kafka's client does after a lost response."""

    def restart(self) -> None:
        self.epoch, self.owned, self.to_revoke, self.lost_a_response = 0, set(), set(), False

    def receive(self, result: ConsumerHeartbeatResult) -> None:
        self.lost_a_response = False
        if result.error_code:
            assert result.error_code in (FENCED, UNKNOWN), result
            self.restart()
            return
        self.epoch = result.member_epoch
        if result.assignment is not None:
            assigned = {(topic_id, index) for topic_id, indexes in result.assignment.items() for index in indexes}
            self.to_revoke = self.owned - assigned
            self.owned |= assigned


class ConsumerGroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.now_ms = 0
        self.timers = Timers()
        self.topics: dict[str, Any] = {name: topic(name, count) for name, count in (("T", 6), ("U", 3))}
        consumers = ConsumerGroupSettings(is_on=True, is_release_4=True, is_release_4_1=True, is_release_4_2=True)
        self.coordinator = GroupCoordinator(
            GroupSettings(),
            self.timers,
            Random(1),
            consumers=consumers,
            topics=ClusterTopics(lambda: self.topics, lambda broker_id: None, consumers),
        )
        self.readers: dict[str, Reader] = {}

    def _send(self, reader: Reader, *, epoch: int | None = None, reports: bool = True) -> ConsumerHeartbeatResult:
        joins = reader.epoch == 0 and epoch is None
        is_full = joins or (reader.lost_a_response and epoch is None)
        owned: dict[bytes, frozenset[int]] | None = None
        if reports or is_full:
            owned = {t: frozenset(i for topic_id, i in reader.owned if topic_id == t) for t, _ in reader.owned}
        results: list[ConsumerHeartbeatResult] = []
        request = ConsumerHeartbeat(
            "g",
            reader.member_id,
            reader.epoch if epoch is None else epoch,
            "client",
            "/h",
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS if is_full else -1,
            topic_names=reader.names if is_full else None,
            owned=owned,
        )
        self.coordinator.consumers.heartbeat(request, self.now_ms, lambda result, _: results.append(result))
        [result] = results
        return result

    @rule(name=st.sampled_from("abcd"), topics=st.sampled_from([("T",), ("U",), ("T", "U")]))
    def join(self, name: str, topics: tuple[str, ...]) -> None:
        if name not in self.readers:
            self.readers[name] = Reader(name, topics)

    @rule(name=st.sampled_from("abcd"), reports=st.booleans())
    def beat(self, name: str, reports: bool) -> None:
        if name in self.readers:
            self.readers[name].receive(self._send(self.readers[name], reports=reports))

    @rule(name=st.sampled_from("abcd"))
    def lose_a_response(self, name: str) -> None:
        """The coordinator handles a heartbeat, but the client never gets the response."""
        if name in self.readers and self.readers[name].epoch:
            self._send(self.readers[name])
            self.readers[name].lost_a_response = True

    @rule(name=st.sampled_from("abcd"))
    def revoke(self, name: str) -> None:
        if name in self.readers:
            reader = self.readers[name]
            reader.owned -= reader.to_revoke
            reader.to_revoke = set()

    @rule(name=st.sampled_from("abcd"))
    def leave(self, name: str) -> None:
        reader = self.readers.pop(name, None)
        if reader is not None and reader.epoch:
            self._send(reader, epoch=-1, reports=False)

    @rule(count=st.integers(1, 8))
    def change_partitions(self, count: int) -> None:
        grown = max(count, len(self.topics["T"].partitions))
        self.topics = {**self.topics, "T": topic("T", grown)}

    @rule(ms=st.sampled_from([1_000, 10_000]))
    def wait(self, ms: int) -> None:
        """Time passes; clients that the coordinator gave up have stopped reading, because their own session timeout is shorter."""
        self.now_ms += ms
        self.timers.run_due(self.now_ms)
        group = self.coordinator.groups.get_consumer("g")
        members = {} if group is None else group.members
        for reader in self.readers.values():
            if reader.epoch and reader.member_id not in members:
                reader.restart()

    @precondition(lambda self: self.readers)
    @rule()
    def everybody_beats_until_the_group_is_stable(self) -> None:
        for _ in range(12):
            for reader in self.readers.values():
                reader.owned -= reader.to_revoke
                reader.to_revoke = set()
                reader.receive(self._send(reader))
        description = self.coordinator.consumers.describe("g")
        assert description.state == "Stable", description
        names = {name for reader in self.readers.values() for name in reader.names}
        expected = {(self.topics[n].topic_id, i) for n in names for i in range(len(self.topics[n].partitions))}
        assert {place for reader in self.readers.values() for place in reader.owned} == expected

    @invariant()
    def every_partition_has_at_most_one_reader(self) -> None:
        owned = [place for reader in self.readers.values() for place in reader.owned]
        assert len(owned) == len(set(owned)), {name: sorted(r.owned) for name, r in self.readers.items()}

    @invariant()
    def the_epochs_are_in_order(self) -> None:
        group = self.coordinator.groups.get_consumer("g")
        if group is None:
            return
        assert group.assignment_epoch <= group.epoch
        assert all(member.current.epoch <= group.assignment_epoch for member in group.members.values())
        owners = {
            (t, i)
            for m in group.members.values()
            for part in (m.current.assigned, m.current.pending)
            for t, ii in part.items()
            for i in ii
        }
        assert set(group.owners) == owners


TestConsumerGroupMachine = ConsumerGroupMachine.TestCase
TestConsumerGroupMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
