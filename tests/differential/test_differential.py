"""The broker and a real Kafka broker return equal responses, field by field, to random request sequences."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.differential.__main__ import both
from tests.differential.comparing import Difference, Found, Pair, Unstable, first_difference
from tests.differential.found import FOUND
from tests.differential.playing import plain
from tests.differential.request_sequences import RequestSequence, request_sequence
from tests.differential.unstable import UNSTABLE
from tests.support.wire import produce

SECONDS = 60.0
FEWEST = 36

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with both() as running:
        yield running


@pytest.mark.parametrize("name", FOUND)
def test_fixed_differences_from_the_real_kafka_do_not_come_back(pair: Pair, name: str) -> None:
    difference = pair.difference(FOUND[name])
    assert difference is None, f"\n{difference}"


def test_random_request_sequences_are_answered_as_by_the_real_kafka(pair: Pair) -> None:
    end = time.monotonic() + SECONDS
    played = 0
    while time.monotonic() < end or played < FEWEST:
        result = pair.compare(request_sequence(played))
        assert not isinstance(result, Found), f"seed {played}:\n{result.request_sequence}\n{result.difference}"
        assert not isinstance(result, Unstable) or played in UNSTABLE, f"seed {played} is unstable: {result.difference}"
        played += 1


class OneFaultyBroker(Pair):
    """A pair in which one broker makes errors in one kind of step, which the comparison must find and reduce."""

    def __init__(self, errs: str) -> None:
        self.errs = errs

    def difference(self, request_sequence: RequestSequence) -> Difference | None:
        right = [kind for kind, _ in request_sequence.steps]
        return first_difference(request_sequence, ["wrong" if kind == self.errs else kind for kind in right], right)


def test_difference_from_the_real_kafka_is_reduced_to_the_steps_that_cause_it() -> None:
    whole = next(
        c for c in map(request_sequence, range(50)) if {"fetch", "metadata", "produce"} <= {k for k, _ in c.steps}
    )
    difference = OneFaultyBroker("metadata").compare(whole)
    assert isinstance(difference, Found)
    assert [kind for kind, _ in difference.request_sequence.steps] == ["metadata"]
    assert eval(str(difference.request_sequence), {"RequestSequence": RequestSequence}) == difference.request_sequence


def test_equal_seeds_generate_equal_request_sequences() -> None:
    assert request_sequence(7) == request_sequence(7) != request_sequence(8)


def test_comparison_with_the_real_kafka_includes_all_fields_but_listed_exceptions() -> None:
    described = plain(produce("t", b""))
    assert described["acks"] == 1 and described["topic_data"][0]["partition_data"][0]["records"] == []
