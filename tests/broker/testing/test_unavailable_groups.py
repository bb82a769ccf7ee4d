"""The test API of groups while their coordinator is loading them, or is stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.conformance.groups import Group, commit
from kafkaproto.conformance.scene import wait_until
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.testing import TestCluster, cluster
from tests.support.broker.subject import subject_of

LOAD_MS = 600_000
CALLS: dict[str, Callable[[TestCluster, str], Any]] = {
    "group": lambda c, group_id: c.group(group_id),
    "committed": lambda c, group_id: c.committed(group_id),
    "lag": lambda c, group_id: c.lag(group_id),
    "pending_offsets": lambda c, group_id: c.pending_offsets(group_id),
    "rebalances": lambda c, group_id: c.rebalances(group_id),
    "expire_member": lambda c, group_id: c.expire_member(group_id, "m"),
    "fence_member": lambda c, group_id: c.fence_member(group_id, "m"),
    "move_coordinator": lambda c, group_id: c.move_coordinator(group_id, 0),
}


def commit_offset(c: TestCluster) -> str:
    """Commit offset 5 of partition 0 of `orders`, and return the id of the group, which has no members."""
    group = Group(subject_of(c))
    assert commit(group, {"orders": {0: (5, "")}}) == {("orders", 0): 0}
    return group.id


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_group_methods_raise_a_loading_error_while_the_coordinator_loads(release: str) -> None:
    config = {"kafkaproto.group.load.ms": LOAD_MS}
    topics = {"orders": {"partitions": 1, "replication_factor": 2}}
    with cluster(2, release=release, topics=topics, config=config, clock="jump") as c:
        subject, request = subject_of(c), FindCoordinatorRequest("any")
        wait_until(subject, lambda: subject.ask_once(request, 3).error_code == 0, "the topic exists")
        c.clock.advance(LOAD_MS)
        group_id = commit_offset(c)
        coordinator = c.group(group_id).coordinator
        assert coordinator is not None
        c.broker(coordinator).stop()
        for name, call in CALLS.items():
            with pytest.raises(KafkaError, match=rf"broker \d is still loading the group '{group_id}'") as raised:
                call(c, group_id)
            assert raised.value.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, name
        assert c.groups() == {}
        for state in (None, "Dead"):
            with pytest.raises(
                TimeoutError, match=rf"group {group_id} is still being loaded by broker \d, and did not"
            ):
                c.wait_for_group(group_id, state=state, timeout_s=0.05)
        c.clock.advance(LOAD_MS)
        assert c.committed(group_id) == c.group(group_id).committed == {("orders", 0): 5}
        assert c.pending_offsets(group_id) == {} and c.lag(group_id) == {("orders", 0): 0}


def test_group_methods_name_the_partition_of_the_group_if_no_running_broker_leads_it() -> None:
    with cluster(topics={"orders": 1}, config={"offsets.topic.num.partitions": 1}) as c:
        assert c.committed("none") == {} and c.pending_offsets("none") == {}
        group_id = commit_offset(c)
        c.broker(0).stop()
        for name, call in CALLS.items():
            with pytest.raises(KafkaError, match=r"no coordinator, because .*__consumer_offsets-0") as raised:
                call(c, group_id)
            assert raised.value.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE, name
        with pytest.raises(TimeoutError, match=rf"group {group_id} has no coordinator, because .*, and did not"):
            c.wait_for_group(group_id, timeout_s=0.05)
        c.broker(0).start()
        assert c.committed(group_id) == {("orders", 0): 5} and c.committed("none") == {}
        with pytest.raises(ValueError, match="the id of an existing group"):
            c.group("none")
