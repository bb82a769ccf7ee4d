"""Members that join, sync, beat, leave and time out at random: what must hold in every group at every instant."""

from __future__ import annotations

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kafkaproto.broker.group.results import LeavingMember
from tests.support.broker.group_bench import Answers, Bench

PROTOCOLS = ((("range", b"1"), ("rr", b"1")), (("rr", b"2"), ("range", b"2")), (("range", b"3"),))


class GroupMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.bench = Bench(group_max_size=4, offsets_retention_check_interval_ms=10**9)
        self.parked: list[tuple[str, Answers]] = []
        self.ids: list[str] = []
        self.generation = 0
        self.leaders: dict[int, str] = {}

    def _watch(self, kind: str, answers: Answers) -> None:
        self.parked.append((kind, answers))

    def _collect(self) -> None:
        """Read what has come: each answer once, one leader a generation, and the generation only grows."""
        waiting = []
        for kind, answers in self.parked:
            assert len(answers) <= 1, "answered twice"
            if not answers:
                waiting.append((kind, answers))
            elif kind == "join":
                self._joined(answers[0])
        self.parked = waiting

    def _joined(self, result: Any) -> None:
        if result.member_id and result.member_id not in self.ids:
            self.ids.append(result.member_id)
        if result.error_code == 0 and result.members:
            assert result.leader_id == result.member_id
            assert result.member_id in {m.member_id for m in result.members}
            known = self.leaders.setdefault(result.generation_id, result.member_id)
            assert known == result.member_id, "two leaders"

    @rule(protocols=st.sampled_from(PROTOCOLS), require_id=st.booleans(), session_ms=st.sampled_from([6_000, 30_000]))
    def join_new(self, protocols: tuple[tuple[str, bytes], ...], require_id: bool, session_ms: int) -> None:
        self._watch("join", self.bench.join("", protocols, require_id=require_id, session_ms=session_ms))

    @rule(protocols=st.sampled_from(PROTOCOLS), instance=st.sampled_from(["i", "j"]))
    def join_static(self, protocols: tuple[tuple[str, bytes], ...], instance: str) -> None:
        """A static member, or a new process of one that is there."""
        self._watch("join", self.bench.join("", protocols, instance=instance))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), protocols=st.sampled_from(PROTOCOLS))
    def join_again(self, data: st.DataObject, protocols: tuple[tuple[str, bytes], ...]) -> None:
        self._watch("join", self.bench.join(data.draw(st.sampled_from(self.ids)), protocols, rebalance_ms=20_000))

    @precondition(lambda self: self.ids)
    @rule(data=st.data(), back=st.sampled_from([0, 0, 0, 1]))
    def sync(self, data: st.DataObject, back: int) -> None:
        member_id = data.draw(st.sampled_from(self.ids))
        self._watch("sync", self.bench.sync(member_id, self.generation - back, dict.fromkeys(self.ids, b"a")))

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
        """A group is never stuck: when everybody does what it should, it becomes stable with all of them."""
        group = self._group()
        if group is None or not group.members or group.pending:
            return
        for member in list(group.members.values()):
            self._watch("join", self.bench.join(member.member_id, member.protocols))
        if group.initial_join:
            self.bench.advance(60_000)
        for member_id in [i for i in group.members if i != group.leader_id] + [group.leader_id or ""]:
            self._watch("sync", self.bench.sync(member_id, group.generation_id, {}))
        assert not group.members or group.state.value == "Stable"

    def _group(self) -> Any:
        return self.bench.coordinator._groups.get("g")

    @invariant()
    def answers_are_right(self) -> None:
        self._collect()

    @invariant()
    def the_group_is_sound(self) -> None:
        group = self._group()
        if group is None:
            assert not self.parked
            return
        assert group.generation_id >= self.generation, "the generation went back"
        self.generation = group.generation_id
        assert (group.leader_id in group.members) if group.members else group.leader_id is None
        assert {m.group_instance_id: i for i, m in group.members.items() if m.group_instance_id} == group.static_ids
        assert set(group.owing_sync) <= set(group.members)
        joins = sum(m.join_reply is not None for m in group.members.values())
        syncs = sum(m.sync_reply is not None for m in group.members.values())
        # Members that have not joined again yet may be too many: whoever comes last stays out.
        assert joins <= 4 and (group.state.value == "PreparingRebalance" or len(group.members) <= 4)
        # Whoever has no answer yet is waited for, and nobody else.
        assert [kind for kind, _ in self.parked].count("join") == joins
        assert [kind for kind, _ in self.parked].count("sync") == syncs
        self._state_fits(group, joins, syncs)

    def _state_fits(self, group: Any, joins: int, syncs: int) -> None:
        state = group.state.value
        assert (group.join_timer is not None) == (state == "PreparingRebalance")
        assert (group.sync_timer is not None) == bool(group.owing_sync)
        assert joins == 0 or state == "PreparingRebalance"
        assert syncs == 0 or state == "CompletingRebalance"
        assert group.members or state in ("Empty", "PreparingRebalance")
        alive = sum(m.session_timer is not None for m in group.members.values())
        waiting = sum(m.session_timer is None and m.is_waiting for m in group.members.values())
        assert alive + waiting == len(group.members), "a member that nobody would miss"
        set_timers = alive + len(group.pending) + (group.join_timer is not None) + (group.sync_timer is not None)
        # And one that looks for old offsets.
        assert len(self.bench.timers) == set_timers + 1
        if state == "Empty":
            assert set_timers == len(group.pending)

    def teardown(self) -> None:
        self.bench.coordinator.close(self.bench.now_ms)
        self._collect()
        assert not self.parked and len(self.bench.timers) == 0


TestGroupMachine = GroupMachine.TestCase
TestGroupMachine.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
