"""The rules of groups report faults that resemble correct behaviour, and no correct behaviour. Each case is a run of a few rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.pipeline.trace.audit.groups import RULES
from tests.support.pipeline.judging import broken_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

Row = dict[str, Any]
NS = 1000
T0, T1 = {"t": [0]}, {"t": [1]}
BOTH = {"t": [0, 1]}


def joined(member: str, generation: int, leader: str | None = "a", **more: Any) -> Row:
    return {"api": "JoinGroup", "member_id": member, "returned_epoch": generation, "leader": leader, **more}


def synced(member: str, generation: int, assigned: Any = None, **more: Any) -> Row:
    epochs = {"requested_epoch": generation, "returned_epoch": generation}
    return {"api": "SyncGroup", "member_id": member, "assigned": assigned, **epochs, **more}


def beat(member: str, requested: int, returned: int | None, assigned: Any = None, **more: Any) -> Row:
    epochs = {"requested_epoch": requested, "returned_epoch": returned}
    return {"api": "ConsumerGroupHeartbeat", "member_id": member, "assigned": assigned, **epochs, **more}


def heartbeat(member: str, generation: int, error: int = 0) -> Row:
    return {"api": "Heartbeat", "member_id": member, "requested_epoch": generation, "error": error}


def leave_group(member: str | None, **more: Any) -> Row:
    return {"api": "LeaveGroup", "member_id": member, **more}


def commit(member: str, epoch: int, partition: int = 0, error: int = 0, **more: Any) -> Row:
    return {"api": "OffsetCommit", "member_id": member, "requested_epoch": epoch, "topic": "t", "partition": partition,
            "offset": 1, "error": error, **more}  # fmt: skip


DELETED = {"api": "DeleteGroups"}

CASES: dict[str, tuple[list[Row], dict[str, int]]] = {
    # ---- generations and epochs
    "a deleted group begins again": ([joined("a", 4), synced("a", 4), DELETED, joined("a", 1), joined("a", 2)], {}),
    "an empty group expires, and its new members begin again": (
        [joined("a", 4), synced("a", 4), leave_group("a"), joined("b", 1, "b"), joined("b", 2, "b")],
        {},
    ),
    "a generation that no member synced is lost with its coordinator": (
        [joined("a", 1), synced("a", 1), joined("a", 2), joined("a", 3), joined("a", 2, broker=1)],
        {},
    ),
    "a generation that was synced is lost with its coordinator": (
        [joined("a", 1), joined("a", 3), synced("a", 3), joined("a", 2, broker=1)],
        {"21": 1},
    ),
    "a generation falls to 1 while its leader stays": (
        [joined("a", 1), joined("a", 3), joined("b", 1), synced("b", 1), joined("a", 1)],
        {"21": 2},
    ),
    "classic members of a consumer group have epochs of their own": (
        [beat("c", 0, 1), joined("a", 3, None), joined("b", 2, None), joined("a", 3, None)],
        {},
    ),
    "a consumer group begins again": ([beat("a", 0, 5), beat("a", -1, -1), beat("b", 0, 1), beat("c", 0, 2)], {}),
    "a member that joins gets an epoch that has passed": ([beat("a", 0, 1), beat("a", 1, 5), beat("b", 0, 4)], {"21": 1}),
    "a heartbeat lowers the epoch of its member": ([beat("a", 0, 1), beat("a", 1, 3), beat("a", 3, 2)], {"21": 1}),
    "a member whose response was lost repeats its epoch": ([beat("a", 0, 1), beat("a", 1, 2), beat("a", 1, 2)], {}),
    # ---- owners
    "two members of one generation": ([synced("a", 1, T0), synced("b", 1, T1), synced("b", 2, T0)], {}),
    "two members of one generation with one partition": ([synced("a", 1, BOTH), synced("b", 1, T1)], {"22": 1}),
    "a static member returns under a new id": (
        [synced("a", 1, T0, instance_id="i"), synced("b", 1, T0, instance_id="i")],
        {},
    ),
    "workers of Connect share names in their assignments": (
        [joined("a", 1, protocol_type="connect"), synced("a", 1, T0), synced("b", 1, T0)],
        {},
    ),
    "generation 1 of a group that was deleted": ([joined("a", 1), synced("a", 1, T0), DELETED, synced("b", 1, T0)], {}),
    "a member whose session ended loses its partition": (
        [beat("a", 0, 1, T0), beat("b", 0, 2, T0), beat("a", 1, None, error=25), beat("a", 0, 3, {}), beat("a", 3, 3)],
        {},
    ),
    "a member keeps a partition that another one gets": (
        [beat("a", 0, 1, T0), beat("b", 0, 2, T0), beat("a", 1, 1, {}), beat("a", 1, 2, owned={})],
        {"22": 1},
    ),
    "a member revokes a partition before another one gets it": (
        [beat("a", 0, 1, BOTH), beat("b", 0, 2, {}), beat("a", 1, 1, T0), beat("a", 1, 2, owned=T0), beat("b", 2, 2, T1), beat("a", 2, 2)],
        {},
    ),
    "a member is told to revoke a partition, and another one gets it too early": (
        [beat("a", 0, 1, BOTH), beat("b", 0, 2, {}), beat("a", 1, 1, T0), beat("b", 2, 2, T1), beat("a", 1, 2, owned=T0)],
        {"22": 1},
    ),
    "a partition of a member that left": ([beat("a", 0, 1, T0), beat("a", -1, -1), beat("b", 0, 2, T0), beat("a", 0, 3, {})], {}),
    # ---- commits
    "a member commits in its generation": ([joined("a", 2), synced("a", 2), commit("a", 2)], {}),
    "a commit of a generation that has passed is refused": (
        [joined("a", 1), synced("a", 1), joined("a", 2), synced("a", 2), commit("a", 1, error=22)],
        {},
    ),
    "a commit of a generation that has passed is accepted": (
        [joined("a", 1), synced("a", 1), joined("a", 2), synced("a", 2), commit("a", 1)],
        {"23": 1},
    ),
    "a member that left commits": ([joined("a", 1), synced("a", 1), leave_group("a"), commit("a", 1)], {"23": 1}),
    "a member that left joins again and commits": (
        [beat("a", 0, 1, T0), beat("a", -1, -1), beat("a", 0, 3, T0), commit("a", 3)],
        {},
    ),
    "a member that the coordinator does not know commits": (
        [joined("a", 1), synced("a", 1), heartbeat("a", 1, 25), commit("a", 1)],
        {"23": 1},
    ),
    "a static member whose place is taken commits": (
        [joined("a", 1, instance_id="i"), synced("a", 1), joined("b", 1, instance_id="i"), commit("a", 1)],
        {"23": 1},
    ),
    "a static member that an admin removed by its instance commits": (
        [joined("a", 1, instance_id="i"), synced("a", 1), leave_group(None, instance_id="i"), commit("a", 1)],
        {"23": 1},
    ),
    "an epoch that has passed, for a partition that the member still has": (
        [beat("a", 0, 1, T0), beat("a", 1, 2), commit("a", 1)],
        {"23": 1},
    ),
    "the present epoch, for a partition that the member lost": (
        [beat("a", 0, 1, BOTH), beat("a", 1, 2, T0, owned=T0), commit("a", 2, partition=1)],
        {},
    ),
    "an epoch that has passed, for a partition that the member lost": (
        [beat("a", 0, 1, BOTH), beat("a", 1, 2, T0, owned=T0), commit("a", 1, partition=1)],
        {"23": 1},
    ),
    "a commit in a transaction of a member that left": (
        [joined("a", 1), synced("a", 1), leave_group("a"), commit("a", 1, api="TxnOffsetCommit")],
        {"23": 1},
    ),
}  # fmt: skip


def rows_of(run: str, steps: list[Row]) -> Iterator[tuple[str, Row]]:
    """Yield (table, row) of requests that follow each other."""
    for seq, step in enumerate(steps, 1):
        times = {"begun_ns": seq * NS, "ready_ns": seq * NS + 1}
        row = {"run": run, "seq": seq, "position": 0, "broker": 0, "group_id": "g", "error": 0, **times} | step
        for name in ("assigned", "owned"):
            if row.get(name) is not None:
                row[name] = json.dumps(row[name])
        yield "group_offsets" if "offset" in step else "groups", row


@pytest.fixture(scope="module")
def broken(spark: Any) -> dict[str, dict[str, int]]:
    """Return the number of broken rows of each rule by case, without rules that hold."""
    return broken_rows(spark, RULES, {run: rows_of(run, steps) for run, (steps, _) in CASES.items()})


@pytest.mark.parametrize("case", CASES)
def test_group_audit_rules_are_broken_by_faults_but_not_by_similar_correct_behaviour(
    broken: dict[str, dict[str, int]], case: str
) -> None:
    assert broken[case] == CASES[case][1]
