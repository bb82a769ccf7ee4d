"""A group coordinator with a manual clock, and members that record every response."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from kafkaproto.broker.group.coordinator import GroupCoordinator
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.group.results import JoinRequest, JoinResult, LeavingMember, SyncRequest, SyncResult
from kafkaproto.broker.group.settings import GroupSettings
from kafkaproto.broker.runtime.timers import Timers

SESSION_MS, REBALANCE_MS, DELAY_MS = 10_000, 60_000, 3_000


def subscription(*topics: str) -> bytes:
    names = b"".join(struct.pack(">h", len(t.encode())) + t.encode() for t in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


class Answers(list[Any]):
    """All responses to one request. `answer` returns the only response, and fails unless exactly one has arrived."""

    @property
    def answer(self) -> Any:
        assert len(self) == 1, f"{len(self)} answers"
        return self[0]


class Bench:
    def __init__(self, **settings: int) -> None:
        self.timers = Timers()
        self.now_ms = 1_000_000
        self.coordinator = GroupCoordinator(GroupSettings(**settings), self.timers, Random(7))

    def advance(self, delta_ms: int) -> None:
        """Advance the clock by `delta_ms`. The clock stops at each deadline, so that each timer runs at its exact time."""
        until_ms = self.now_ms + delta_ms
        while (at_ms := self.timers.next_deadline_ms()) is not None and at_ms <= until_ms:
            self.now_ms = at_ms
            self.timers.run_due(at_ms)
        self.now_ms = until_ms

    def _reply_to(self, answers: Answers) -> Callable[[Any, int], None]:
        def reply(result: Any, at_ms: int) -> None:
            assert at_ms == self.now_ms
            answers.append(result)

        return reply

    def join(
        self,
        member_id: str = "",
        protocols: tuple[tuple[str, bytes], ...] = (("range", b"m"),),
        *,
        instance: str | None = None,
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        kind: str = "consumer",
        group: str = "g",
        require_id: bool = False,
        skip: bool = False,
        reply: Callable[[JoinResult, int], None] | None = None,
    ) -> Answers:
        responses = Answers()
        request = JoinRequest(
            group,
            member_id,
            session_ms,
            rebalance_ms,
            kind,
            protocols,
            "client",
            "/1.2.3.4",
            instance,
            require_id,
            skip,
        )
        self.coordinator.join(request, self.now_ms, reply or self._reply_to(responses))
        return responses

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        instance: str | None = None,
        kind: str | None = None,
        name: str | None = None,
        group: str = "g",
        reply: Callable[[SyncResult, int], None] | None = None,
    ) -> Answers:
        responses = Answers()
        assignment_pairs = tuple((assignments or {}).items())
        request = SyncRequest(group, generation, member_id, instance, kind, name, assignment_pairs)
        self.coordinator.sync(request, self.now_ms, reply or self._reply_to(responses))
        return responses

    def heartbeat(self, member_id: str, generation: int, instance: str | None = None, group: str = "g") -> int:
        return int(self.coordinator.heartbeat(group, generation, member_id, instance, self.now_ms))

    def commit(
        self,
        group: str,
        generation: int,
        member_id: str,
        instance: str | None,
        offsets: Mapping[PartitionKey, CommittedOffset],
    ) -> dict[PartitionKey, int]:
        """Commit offsets. A coordinator without a log responds at once."""
        responses = Answers()
        self.coordinator.commits.commit(
            group, generation, member_id, instance, offsets, self.now_ms, self._reply_to(responses)
        )
        results: dict[PartitionKey, int] = responses.answer
        return results

    def leave(self, *members: LeavingMember, group: str = "g") -> list[int]:
        responses = Answers()
        self.coordinator.leave(group, members, self.now_ms, self._reply_to(responses))
        result = responses.answer
        assert result.error_code == 0
        return [int(code) for _, code in result.members]

    @property
    def state(self) -> str:
        return self.coordinator.describe("g").state

    def stable(self, count: int, **join: Any) -> list[str]:
        """Form a stable group of `count` members and return their ids, the leader first. Each assignment is the member's id."""
        joins = [self.join(**join) for _ in range(count)]
        self.advance(DELAY_MS * (count + 1))
        ids = [j.answer.member_id for j in joins]
        self.settle(ids, joins[0].answer.generation_id)
        return ids

    def settle(self, ids: list[str], generation: int) -> None:
        for member_id in ids[1:]:
            self.sync(member_id, generation)
        self.sync(ids[0], generation, {i: i.encode() for i in ids})
        assert self.state == "Stable"
