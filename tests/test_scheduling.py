"""Workers of pytest-xdist share the files of tests that take minutes."""

from __future__ import annotations

import pytest

from tests.support.scheduling import scope_of

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
def test_tests_that_share_brokers_run_in_the_same_worker(left: str, right: str, is_one_worker: bool) -> None:
    assert (scope_of(left) == scope_of(right)) is is_one_worker
