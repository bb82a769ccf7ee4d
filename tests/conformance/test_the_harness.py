"""The harness itself: what it says of a broker that it did not start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.support.conformance.subjects import settings_of

FILES = ["tests/conformance/test_fetch_sizes.py", "tests/conformance/test_closest_replica.py"]


@contextmanager
def brokers(count: int = 3, rack: str = "r", **other: str) -> Iterator[str]:
    """Brokers in a process of their own, with the default profile but for some settings; the address of one of them."""
    settings = settings_of("default") | {key.replace("_", "."): value for key, value in other.items()}
    given = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    given += [part for i in range(count) for part in ("-c", f"{i}.broker.rack={rack}{i}")]
    command = [sys.executable, "-m", "broker", "--brokers", str(count), "--port", "0", "--semantics", "kafka", *given]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(count)]
    try:
        yield lines[-1].strip()
    finally:
        process.kill()
        process.communicate()


def outcomes(address: str) -> tuple[dict[str, int], str]:
    """How many tests passed, were skipped, failed; and all that was printed."""
    command = [sys.executable, "-m", "pytest", *FILES, "--bootstrap", address, "-q", "-p", "no:xdist", "-rs"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {what: int(count) for count, what in re.findall(r"(\d+) (passed|skipped|failed)", printed)}, printed


@pytest.mark.slow
def test_a_broker_with_another_setting_is_not_prepared_and_nothing_passes() -> None:
    with brokers(fetch_max_bytes="4096") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"skipped"}, printed
    assert "not prepared: needs fetch.max.bytes=2147483647" in printed


@pytest.mark.slow
def test_a_prepared_broker_passes_all_but_what_needs_control() -> None:
    with brokers() as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"passed", "skipped"} and counts["passed"] > 20, printed
    assert counts["skipped"] == 1 and "not prepared: needs control" in printed


@pytest.mark.slow
def test_a_cluster_of_other_brokers_or_racks_is_not_prepared_and_nothing_fails() -> None:
    with brokers(count=1) as address:
        counts, printed = outcomes(address)
    assert (
        set(counts) == {"skipped"}
        and "not prepared: needs three brokers with the ids 0, 1 and 2; there are [0]" in printed
    )
    with brokers(rack="other-") as address:
        counts, printed = outcomes(address)
    assert set(counts) == {"skipped"} and "not prepared: needs broker.rack=r0 of broker 0" in printed, printed
