"""Clients that rarely lose their coordinator for good: a test accepts this error once, and then requires that a new client continues."""

from __future__ import annotations

import pytest

from tests.support.transactions.scene import continue_unless_lost


@pytest.mark.parametrize(("losses", "expected_runs"), [(0, 1), (1, 2)])
def test_scenario_is_repeated_only_with_the_clients_that_lost_their_coordinator(
    losses: int, expected_runs: int
) -> None:
    runs: list[list[str]] = []

    def scenario(libraries: list[str]) -> list[str]:
        runs.append(libraries)
        return ["franz-go"] if len(runs) <= losses else []

    continue_unless_lost(scenario, ["java", "franz-go"])
    assert runs == [["java", "franz-go"], ["franz-go"]][:expected_runs]


def test_scenario_fails_if_a_client_loses_its_coordinator_in_both_runs() -> None:
    with pytest.raises(AssertionError, match="franz-go failed twice with 'unknown broker"):
        continue_unless_lost(lambda libraries: libraries, ["franz-go"])
