"""Members that join, sync, beat, leave and time out at random: what must hold in every group at every instant."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaproto.broker.group.results import DescribedMember, LeavingMember
from tests.support.broker.group_bench import Answers, Bench

PROTOCOLS = ((("range", b"1"), ("rr", b"1")), (("rr", b"2"), ("range", b"2")), (("range", b"3"),))


class Parked(NamedTuple):
    """A JoinGroup or SyncGroup without a response yet. kind: join or sync. member_id: the id of the member that sent it."""

    kind: str
    member_id: str
    answers: Answers


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(group_max_size=4, offsets_retention_check_interval_ms=10**9)
        self.parked: list[Parked] = []
        self.described: set[str] = set()
        """The ids of all members that the group has had."""
        self.forgotten: list[Answers] = []
        """The responses to requests that the coordinator must never answer. Each must stay empty."""
        self.ids: list[str] = []
        self.generation = 0
        self.leaders: dict[int, str] = {}

    def _watch(self, kind: str, answers: Answers, member_id: str = "") -> None:
        """Watch the response to a request. If the request is parked, it replaces an earlier parked one of the same member (GC-24)."""
        ids = {member.member_id for member in self._members()}
        new_ids, self.described = ids - self.described, self.described | ids
        if not answers:
            if not member_id:
                [member_id] = new_ids
            self._forget(lambda earlier: earlier[:2] == (kind, member_id))
        self.parked.append(Parked(kind, member_id, answers))

    def _forget(self, is_forgotten: Callable[[Parked], bool]) -> None:
        """Expect that the unanswered requests for which `is_forgotten` returns true never get a response."""
        forgotten = [request for request in self.parked if not request.answers and is_forgotten(request)]
        self.forgotten += [request.answers for request in forgotten]
        self.parked = [request for request in self.parked if not any(request is each for each in forgotten)]

    def _collect(self) -> None:
        """Read the new responses and check them: one per request, one leader per generation, and increasing generations."""
        waiting = []
        for request in self.parked:
            assert len(request.answers) <= 1, "answered twice"
            if not request.answers:
                waiting.append(request)
            elif request.kind == "join":
                self._joined(request.answers[0])
        self.parked = waiting
        members = {member.member_id for member in self._members()}
        self._forget(lambda request: request.kind == "sync" and request.member_id not in members)  # GC-49
        assert not any(self.forgotten), "a forgotten request got a response"

    def _joined(self, result: Any) -> None:
        if result.member_id and result.member_id not in self.ids:
            self.ids.append(result.member_id)
        if result.error_code == 0 and result.members:
            assert result.leader_id == result.member_id
            assert result.member_id in {m.member_id for m in result.members}
            first_leader = self.leaders.setdefault(result.generation_id, result.member_id)
            assert first_leader == result.member_id, "two leaders"
        if result.error_code == 0:
            assert result.generation_id >= self.generation, "the generation decreased"
            self.generation = result.generation_id

    @rule(protocols=st.sampled_from(PROTOCOLS), require_id=st.booleans(), session_ms=st.sampled_from([6_000, 30_000]))
    def join_new(self, protocols: tuple[tuple[str, bytes], ...], require_id: bool, session_ms: int) -> None:
        self._watch("join", self.bench.join("", protocols, require_id=require_id, session_ms=session_ms))

    @rule(protocols=st.sampled_from(PROTOCOLS), instance=st.sampled_from(["i", "j"]))
    def join_static(self, protocols: tuple[tuple[str, bytes], ...], instance: str) -> None:
        """Join as a static member, or as a new process of an existing one."""
        self._watch("join", self.bench.join("", protocols, instance=instance))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), protocols=st.sampled_from(PROTOCOLS))
    def join_again(self, data: st.DataObject, protocols: tuple[tuple[str, bytes], ...]) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        self._watch("join", self.bench.join(member_id, protocols, rebalance_ms=20_000), member_id)

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), back=st.sampled_from([0, 0, 0, 1]))
    def sync(self, data: st.DataObject, back: int) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        self._watch(
            "sync", self.bench.sync(member_id, self.generation - back, dict.fromkeys(self.ids, b"a")), member_id
        )

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        code = self.bench.heartbeat(data.draw(st.sampled_from(self.ids)), self.generation)
        assert code in (0, 22, 25, 27)

    @precondition(lambda self: self.ids)
    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        self.bench.leave(LeavingMember(data.draw(st.sampled_from(self.ids))))

    @rule(delta_ms=st.sampled_from([1, 500, 3_000, 6_000, 20_000, 61_000]))
    def wait(self, delta_ms: int) -> None:
        self.bench.advance(delta_ms)

    @rule()
    def all_members_come_back_and_sync(self) -> None:
        """Let all members rejoin and sync, after which the group must be stable with all members."""
        members = [member.member_id for member in self._members()]
        joins: dict[str, Answers] = {}
        for member_id in members * 2:  # at first some members have other protocols than before, and all must rejoin
            joins[member_id] = self.bench.join(member_id, PROTOCOLS[0])
            self._watch("join", joins[member_id], member_id)
        for _ in range(70):  # members that got an id but do not join time out
            if all(joins.values()):
                break
            self.bench.advance(1_000)
        joined = {i: responses.answer for i, responses in joins.items() if responses.answer.error_code == 0}
        leaders = {response.leader_id for response in joined.values()}
        for member_id in sorted(joined, key=lambda i: i in leaders):
            self._watch("sync", self.bench.sync(member_id, joined[member_id].generation_id, {}), member_id)
        assert {member.member_id for member in self._members()} == set(joined)
        assert not joined or (self.bench.state == "Stable" and len(leaders) == 1)

    @rule()
    def all_fall_silent(self) -> None:
        """Let all sessions expire, after which the group has no members, no parked requests and no timers."""
        self.bench.advance(200_000)
        self._collect()
        assert not self.parked and not self._members()
        assert self.bench.state in ("Empty", "Dead")
        # While the group exists, the timer that expires offsets remains.
        assert len(self.bench.timers) == len(self.bench.coordinator.list_groups())

    def _members(self) -> Sequence[DescribedMember]:
        return self.bench.coordinator.describe("g").members

    @invariant()
    def responses_are_valid(self) -> None:
        self._collect()

    @invariant()
    def the_group_is_sound(self) -> None:
        state, members = self.bench.state, self._members()
        ids = [member.member_id for member in members]
        instances = [member.group_instance_id for member in members if member.group_instance_id]
        assert len(set(ids)) == len(ids) and len(set(instances)) == len(instances)
        assert bool(members) or state in ("Empty", "Dead", "PreparingRebalance")
        assert not members or state not in ("Empty", "Dead")
        joins, syncs = ([request.kind for request in self.parked].count(kind) for kind in ("join", "sync"))
        # Members that have not rejoined yet may exceed the limit: the last ones are rejected.
        assert joins <= 4 and (state == "PreparingRebalance" or len(members) <= 4)
        assert joins == 0 or state == "PreparingRebalance"
        assert syncs == 0 or state == "CompletingRebalance"
        assert joins + syncs <= len(members)

    def teardown(self) -> None:
        self.bench.coordinator.stop(self.bench.now_ms)
        self._collect()
        assert not self.parked and len(self.bench.timers) == 0


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
