"""The instructions of a request do not grow with the number of idle members of its group or of open transactions (needs valgrind).

ListTransactions and DescribeProducers are not tested: they return every transactional id of the coordinator and every producer of a partition, so
their work is proportional to the number.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks.ab import instructions, sides
from tests.support.broker import heartbeat_rows, transaction_rows

ROOT = Path(__file__).resolve().parent.parent
REQUESTS = 20
HEARTBEATS = heartbeat_rows.FEW, heartbeat_rows.MANY
TRANSACTIONS = transaction_rows.FEW, transaction_rows.MANY
MOST = 1.5
"""The instructions beside many members or transactions, divided by those beside few, are at most this."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def side(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sides.Side]:
    """Compile the modules of this checkout in a folder of their own, apart from those of a comparison that may be running."""
    if instructions.valgrind() is None:
        pytest.fail(instructions.MISSING)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sides, "CACHE", tmp_path_factory.mktemp("cache"))
        side = sides.Side(sides.NOW, ROOT, Path(sys.executable))
        sides.compile_modules(side)
        yield side


@pytest.fixture(scope="module")
def heartbeats(side: sides.Side) -> dict[str, instructions.Count]:
    rows = [heartbeat_rows.row(api, n) for api in heartbeat_rows.PREPARED for n in HEARTBEATS]
    return count(side, heartbeat_rows.__file__, rows)


@pytest.fixture(scope="module")
def transactions(side: sides.Side) -> dict[str, instructions.Count]:
    rows = [transaction_rows.row(request, n) for request in transaction_rows.PREPARED for n in TRANSACTIONS]
    return count(side, transaction_rows.__file__, rows)


def count(side: sides.Side, script: str, rows: Sequence[str]) -> dict[str, instructions.Count]:
    """Return the instructions per request of each row of a script, all counted in one run, because its imports take most of the time."""
    run = instructions.callgrind(side, script, "--requests", str(REQUESTS), *rows)
    return instructions.request_counts(side, rows, REQUESTS, run)


@pytest.mark.parametrize("api", heartbeat_rows.PREPARED)
def test_instructions_per_heartbeat_grow_by_at_most_half_from_10_to_1000_members(
    heartbeats: dict[str, instructions.Count], api: str
) -> None:
    compare(*(heartbeats[heartbeat_rows.row(api, n)] for n in HEARTBEATS))


@pytest.mark.parametrize("request_name", transaction_rows.PREPARED)
def test_instructions_per_request_grow_by_at_most_half_from_10_to_1000_transactions(
    transactions: dict[str, instructions.Count], request_name: str
) -> None:
    compare(*(transactions[transaction_rows.row(request_name, n)] for n in TRANSACTIONS))


def compare(few: instructions.Count, many: instructions.Count) -> None:
    """Compare the instructions of a request beside few and beside many members or transactions."""
    assert few.instructions and many.instructions, few.why or many.why
    assert many.instructions <= MOST * few.instructions, f"{many.instructions:.0f} instead of {few.instructions:.0f}"
