"""Simulation of clients, followers and faults with many seeds: logs, quotas, groups and transactions keep their invariants (X-1 to X-10)."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context

import pytest

from tests.simulation.injected_bugs import BUGS, caught_by_simulation, first_seeds
from tests.simulation.run import OPERATIONS, Broken, simulate
from tests.simulation.world import World

CPU_SECONDS = 30.0
FEWEST = 40


@pytest.mark.rule("X-1", "X-2", "X-3", "X-4", "X-5", "X-6", "X-7", "X-8", "X-9", "X-10")
@pytest.mark.parametrize("seed", range(4))
def test_simulation_with_seeds_0_to_3_violates_no_invariant_after_any_step(seed: int) -> None:
    assert simulate(seed).operations >= OPERATIONS


def test_about_half_of_the_kafka_3_9_simulations_use_the_old_group_coordinator() -> None:
    releases: Counter[tuple[str, bool]] = Counter()
    for seed in range(100):
        world = World(seed)
        releases[world.release, world.has_old_coordinator] += 1
        has_new = {node.groups.is_new_coordinator for node in world.cluster.state.nodes}
        world.close()
        assert has_new == {not world.has_old_coordinator}
    assert releases.keys() == {("3.9", True), ("3.9", False), ("4.1", False), ("4.2", False)}
    assert abs(releases["3.9", True] - releases["3.9", False]) < 20


@pytest.mark.slow
@pytest.mark.rule("X-1", "X-2", "X-3", "X-4", "X-5", "X-6", "X-7", "X-8", "X-9", "X-10")
@pytest.mark.timeout(600)
def test_simulation_of_many_random_seeds_violates_no_invariant_after_any_step() -> None:
    start_s = time.process_time()
    limited_ms = 0
    throttles: Counter[str] = Counter()
    for seed in count():
        if seed >= FEWEST and time.process_time() - start_s > CPU_SECONDS:
            break
        outcome = simulate(seed)
        assert outcome.operations >= OPERATIONS
        limited_ms += outcome.limited_ms
        throttles += outcome.throttles
    assert limited_ms > FEWEST * 20_000
    assert min(throttles[quota] for quota in ("Produce", "Fetch", "Request", "ControllerMutation")) > FEWEST


def test_simulation_seed_replays_identically_in_another_process() -> None:
    """Hashes of strings differ between processes; the simulated events may not."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as others:
        assert others.submit(simulate, 5, 120).result() == simulate(5, 120) != simulate(6, 120)


@pytest.mark.parametrize("name", BUGS)
def test_each_injected_bug_replaces_a_function_that_exists_in_the_broker(name: str) -> None:
    """Fails at once after a function was renamed; the next test needs minutes."""
    assert callable(getattr(BUGS[name].owner, BUGS[name].name))


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", BUGS)
def test_simulation_detects_each_bug_injected_into_the_broker(name: str) -> None:
    assert caught_by_simulation(BUGS[name], try_first=first_seeds().get(name, 0)) is not None


def test_failing_simulation_seed_prints_its_requests_and_the_replay_command() -> None:
    with BUGS["duplicate sequence appended again"].injected(), pytest.raises(Broken) as caught:
        simulate(0)
    message = str(caught.value)
    assert "ProduceRequest(" in message and "ProduceResponse(" in message
    assert "a duplicate of" in message and message.endswith("python -m tests.simulation 0")
