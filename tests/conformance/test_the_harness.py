"""The harness itself: what it says of a broker that it did not start."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.conformance.subjects import settings_of

FILES = ["tests/conformance/test_fetch_sizes.py", "tests/conformance/test_closest_replica.py"]


@contextmanager
def brokers(**other: str) -> Iterator[str]:
    """Three brokers in a process of their own, with the default profile but for some settings; their addresses."""
    settings = settings_of("default") | {key.replace("_", "."): value for key, value in other.items()}
    given = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
    given += [part for i in range(3) for part in ("-c", f"{i}.broker.rack=r{i}")]
    command = [sys.executable, "-m", "broker", "--brokers", "3", "--semantics", "kafka", *given]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(3)]
    try:
        yield ",".join(re.findall(r"127\.0\.0\.1:\d+", " ".join(lines)))
    finally:
        process.kill()
        process.communicate()


def outcomes(addresses: str) -> tuple[dict[str, int], str]:
    """How many tests passed, were skipped, failed; and all that was printed."""
    command = [sys.executable, "-m", "pytest", *FILES, "--bootstrap", addresses, "-q", "-p", "no:xdist", "-rs"]
    printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    return {what: int(count) for count, what in re.findall(r"(\d+) (passed|skipped|failed)", printed)}, printed


def test_a_broker_with_another_setting_is_not_prepared_and_nothing_passes() -> None:
    with brokers(fetch_max_bytes="4096") as addresses:
        counts, printed = outcomes(addresses)
    assert set(counts) == {"skipped"}, printed
    assert "not prepared: needs fetch.max.bytes=2147483647" in printed


def test_a_prepared_broker_passes_all_but_what_needs_control() -> None:
    with brokers() as addresses:
        counts, printed = outcomes(addresses)
    assert set(counts) == {"passed", "skipped"} and counts["passed"] > 20, printed
    assert counts["skipped"] == 1 and "not prepared: needs control" in printed
