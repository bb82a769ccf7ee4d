"""The history of a group finds members that own a partition twice, lose records, or continue at a wrong offset."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.groups.history import History

P, Q = ["t", 0], ["t", 1]
ASSIGNED_A: dict[str, Any] = {"member": "a", "event": "assigned", "partitions": [P, Q]}
REVOKED_A: dict[str, Any] = {"member": "a", "event": "revoked", "partitions": [P, Q]}
ASSIGNED_B: dict[str, Any] = {"member": "b", "event": "assigned", "partitions": [P]}
COMMITTED_A: dict[str, Any] = {"member": "a", "event": "committed", "offsets": [[*P, 2]]}
KILLED_A: dict[str, Any] = {"member": "a", "event": "killed"}


def records(member: str, *offsets: int) -> dict[str, Any]:
    return {"member": member, "event": "records", "records": [[*P, offset] for offset in offsets]}


def kept(member: str, offset: int) -> dict[str, Any]:
    return {"member": member, "event": "assigned", "partitions": [P], "positions": [[*P, offset]]}


@pytest.mark.parametrize(
    "events",
    [
        [ASSIGNED_A, records("a", 0, 1), COMMITTED_A, REVOKED_A, ASSIGNED_B, records("b", 2, 3)],
        [ASSIGNED_A, records("a", 0, 1), REVOKED_A, ASSIGNED_B, records("b", 0, 1)],
        [ASSIGNED_A, records("a", 0, 1), COMMITTED_A, records("a", 2), KILLED_A, ASSIGNED_B, records("b", 2)],
        [ASSIGNED_A, records("a", 0, 1), REVOKED_A, kept("a", 2), records("a", 2)],
        [ASSIGNED_A, records("a", 0, 1), REVOKED_A, ASSIGNED_A, COMMITTED_A, records("a", 0, 1, 2)],
        [ASSIGNED_A, records("a", 0, 1), REVOKED_A, ASSIGNED_A, COMMITTED_A, records("a", 2, 3)],
    ],
)
def test_group_history_checker_reports_no_fault_in_a_correct_history(
    events: list[dict[str, Any]],
) -> None:
    history = History()
    for event in events:
        history.apply(event)
    assert history.faults == []


@pytest.mark.parametrize(
    ("events", "fault"),
    [
        ([ASSIGNED_A, ASSIGNED_B], "t-0 was assigned to b while a owned it"),
        ([ASSIGNED_B, REVOKED_A], "t-0 was revoked from a, which did not own it"),
        ([ASSIGNED_A, REVOKED_A, records("a", 0)], "a reported t-0 offset 0, which it did not own"),
        ([ASSIGNED_A, records("a", 0, 2)], "a reported t-0 offset 2 instead of 1"),
        (
            [ASSIGNED_A, records("a", 0, 1), KILLED_A, ASSIGNED_B, records("b", 2)],
            "b reported t-0 offset 2 instead of 0",
        ),
        ([ASSIGNED_A, COMMITTED_A, REVOKED_A, ASSIGNED_B, records("b", 0)], "b reported t-0 offset 0 instead of 2"),
        ([ASSIGNED_A, records("a", 0), COMMITTED_A], "a committed t-0 offset 2, but records were reported only to 1"),
        ([ASSIGNED_A, records("a", 0, 1), COMMITTED_A, records("a", 2, 2)], "a reported t-0 offset 2 instead of 3"),
        (
            [ASSIGNED_A, records("a", 0, 1), REVOKED_A, ASSIGNED_A, COMMITTED_A, records("a", 0, 2)],
            "a reported t-0 offset 2 instead of 1",
        ),
        (
            [ASSIGNED_A, records("a", 0, 1), REVOKED_A, ASSIGNED_A, COMMITTED_A, records("a", 1)],
            "a reported t-0 offset 1 instead of 0",
        ),
        ([ASSIGNED_A, REVOKED_A, COMMITTED_A], "a committed t-0, which it did not own"),
        (
            [ASSIGNED_A, records("a", 0), KILLED_A, kept("b", 1)],
            "b continues t-0 at 1, but the last owner and offset were",
        ),
        ([{"member": "a", "event": "joined"}], "a reported an unknown event joined"),
    ],
)
def test_group_history_checker_describes_the_fault_in_an_incorrect_history(
    events: list[dict[str, Any]], fault: str
) -> None:
    history = History()
    for event in events:
        history.apply(event)
    assert any(reported.startswith(fault) for reported in history.faults), history.faults


def test_group_history_checker_lists_partitions_that_return_to_an_earlier_owner() -> None:
    history = History()
    for event in (ASSIGNED_A, REVOKED_A, ASSIGNED_B, {**REVOKED_A, "member": "b", "partitions": [P]}, ASSIGNED_A):
        history.apply(event)
    assert history.returned == [("a", ("t", 1))]


def test_group_history_lists_a_partition_lost_and_regained_by_a_member_only_as_lost() -> None:
    history = History()
    for event in (ASSIGNED_A, {**REVOKED_A, "event": "lost"}, ASSIGNED_A):
        history.apply(event)
    assert history.returned == []
    assert history.lost == [("a", ("t", 0)), ("a", ("t", 1))]
