"""Two clusters of one process share nothing: connection numbers, rules and replays are separate."""

from __future__ import annotations

import pytest

from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.wire import metadata


def run() -> list[str]:
    """Run a short scenario and return the journal of the cluster with all ids."""
    cluster = VirtualCluster(2)
    first, second = cluster.connect(), cluster.connect(1)
    rule = cluster.state.forced_throttles.add(ForcedThrottle(50, api="Metadata", times=1))
    first.ask(metadata(), 9)
    second.ask(metadata(), 9)
    cluster.advance(100)
    assert (first.connection.connection_id, second.connection.connection_id, rule.rule_id) == (1, 2, 1)
    journal = cluster.state.journal
    return [*map(repr, journal.requests()), *map(repr, journal.throttles()), *map(repr, journal.events())]


def test_connection_ids_and_forced_throttle_ids_start_at_1_in_each_cluster() -> None:
    assert run() == run()


def test_forced_throttle_rules_get_ids_in_the_order_in_which_they_are_added() -> None:
    throttles = VirtualCluster().state.forced_throttles
    later, earlier = ForcedThrottle(1), ForcedThrottle(2)
    assert (later.rule_id, earlier.rule_id) == (0, 0)
    assert [throttles.add(rule).rule_id for rule in (earlier, later)] == [1, 2]


def test_forced_throttle_rule_of_one_cluster_cannot_be_added_to_a_second_cluster() -> None:
    rule = VirtualCluster().state.forced_throttles.add(ForcedThrottle(1))
    with pytest.raises(ValueError, match="forced throttle 1 was already added to a cluster"):
        VirtualCluster().state.forced_throttles.add(rule)
