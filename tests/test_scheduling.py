"""Workers of pytest-xdist share the files of tests that take minutes."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.scheduling import Scheduling, scope_of

_SUITE = "tests/conformance/test_suite.py::test_in_sync.py::test_isr_shrinks"
_TRANSACTIONS = "tests/clients/transactions/test_transactions.py::test_transaction_is_aborted"


@pytest.mark.parametrize(
    ("left", "right", "is_one_worker"),
    [
        ("tests/test_names.py::test_a", "tests/test_names.py::test_b[1]", True),
        ("tests/test_names.py::test_a", "tests/test_sizes.py::test_a", False),
        (f"{_SUITE}[real]", f"{_SUITE}[real-0]", True),
        (f"{_SUITE}[real]", f"{_SUITE}[real-newer]", False),
        (f"{_SUITE}[real]", f"{_SUITE}[ours-kafka]", False),
        (f"{_SUITE}[real-newer]", f"{_SUITE}[real-newer-uniform]", True),
        (f"{_SUITE}[ours-kafka-manual]", f"{_SUITE}[ours-kip-manual-0]", True),
        (f"{_SUITE}[ours-kafka]", f"{_SUITE}[ours-kafka-manual]", False),
        (f"{_TRANSACTIONS}[java-3.9.1-kafka-4.2.0]", f"{_TRANSACTIONS}[confluent-kafka-kafka-4.2.0]", True),
        (f"{_TRANSACTIONS}[java-3.9.1-kafka-3.9.1]", f"{_TRANSACTIONS}[java-3.9.1-kafka-4.2.0]", False),
        (f"{_TRANSACTIONS}[aiokafka-kafka-3.9.1]", f"{_TRANSACTIONS}[aiokafka-ours-3.9]", False),
    ],
)
def test_tests_that_share_brokers_run_in_the_same_pytest_worker(left: str, right: str, is_one_worker: bool) -> None:
    assert (scope_of(left) == scope_of(right)) is is_one_worker


class Worker:
    """A worker of pytest-xdist that records the tests it gets. name: its name in messages."""

    def __init__(self, name: str) -> None:
        self.gateway = SimpleNamespace(id=name)
        self.indexes: list[int] = []
        self.shutting_down = False

    def send_runtest_some(self, indexes: list[int]) -> None:
        self.indexes += indexes

    def shutdown(self) -> None:
        self.shutting_down = True


def distribute(nodeids: list[str], count: int) -> list[list[str]]:
    """Run all tests on `count` workers that take the same time for each test. Returns the tests that each worker got, in order."""
    options: Any = SimpleNamespace(
        getvalue=lambda name: ["popen"] * count, option=SimpleNamespace(loadscopereorder=True)
    )
    scheduling = Scheduling(options)
    workers = [Worker(f"gw{index}") for index in range(count)]
    for worker in workers:
        scheduling.add_node(worker)
        scheduling.add_node_collection(worker, nodeids)
    scheduling.schedule()
    for number in range(len(nodeids)):
        for worker in workers:
            if number < len(worker.indexes):
                scheduling.mark_test_complete(worker, worker.indexes[number])
    assert not scheduling.has_pending and all(worker.shutting_down for worker in workers)
    return [[nodeids[index] for index in worker.indexes] for worker in workers]


@pytest.mark.parametrize("count", [2, 3, 4])
def test_pytest_workers_3_and_4_share_the_tests_that_wait_for_timeouts(count: int) -> None:
    waiting = [f"{_SUITE}[{subject}-{number}]" for subject in ("real", "real-newer") for number in range(5)]
    busy = [f"tests/test_{letter}.py::test_{number}" for letter in "abcd" for number in range(5)]
    nodeids = [*busy, *waiting]
    shares = distribute(nodeids, count)
    assert sorted(itertools.chain(*shares)) == sorted(nodeids)
    assert list(itertools.chain(*shares[2:])) == (waiting if count > 2 else [])


def test_pytest_worker_3_but_not_4_runs_other_tests_after_the_last_timeout_test() -> None:
    waiting = [f"{_SUITE}[{subject}-{number}]" for subject in ("real", "real-newer") for number in range(5)]
    busy = [f"tests/test_{letter}.py::test_{number}" for letter in "abcdefgh" for number in range(5)]
    shares = distribute([*busy, *waiting], 4)
    assert set(shares[2]) & set(busy)
    assert not set(shares[3]) & set(busy)
