"""Clusters that tests share, and of which each test may stop brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.elect_leaders import ElectLeadersRequest

ELECTION_NOT_NEEDED = 84


@pytest.fixture
def stage(running: Subject) -> Iterator[Subject]:
    yield running
    running.close_connections()
    running.restore()
    # Otherwise, one broker would soon lead all partitions of the internal topics.
    wait_until(running, lambda: elect_preferred(running), "preferred leaders lead")


def elect_preferred(subject: Subject) -> bool:
    """Elect the preferred leaders of all partitions, and return whether they lead."""
    response = subject.ask_once(ElectLeadersRequest(0, None, 10_000), 2)
    errors = {p.error_code for result in response.replica_election_results for p in result.partition_result}
    return errors <= {0, ELECTION_NOT_NEEDED}
