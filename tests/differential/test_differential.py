"""The broker and a real Kafka broker return equal responses, field by field, to random request sequences."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.differential.__main__ import both, generated
from tests.differential.comparing import Difference, Differing, Pair, Unstable, first_difference
from tests.differential.conversations import (
    ASSIGNMENTS,
    CLASSIC_GROUPS,
    GROUPS,
    PLAYED,
    SETTINGS,
    TRANSACTIONS,
    Conversation,
    conversation,
)
from tests.differential.found import CONVERSATIONS_ONCE_DIFFERENT, ONCE_DIFFERENT
from tests.differential.playing import plain
from tests.differential.request_sequences import LOG, RequestSequence, request_sequence
from tests.differential.unstable import UNSTABLE
from tests.support.wire import produce

SECONDS = 60.0
FEWEST = 36
CONVERSATIONS = 20

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    with both() as running:
        yield running


@pytest.mark.parametrize("name", ONCE_DIFFERENT)
def test_request_sequences_that_revealed_old_bugs_get_the_responses_of_real_kafka(pair: Pair, name: str) -> None:
    difference = pair.difference(ONCE_DIFFERENT[name])
    assert difference is None, f"\n{difference}"


def test_random_request_sequences_get_the_same_responses_as_from_real_kafka(pair: Pair) -> None:
    end = time.monotonic() + SECONDS
    played = 0
    while time.monotonic() < end or played < FEWEST:
        result = pair.compare(request_sequence(played))
        assert not isinstance(result, Differing), f"seed {played}:\n{result.request_sequence}\n{result.difference}"
        listed = (LOG, "3.9", played) in UNSTABLE
        assert not isinstance(result, Unstable) or listed, f"seed {played} is unstable: {result.difference}"
        played += 1


@pytest.fixture(
    scope="module",
    params=[
        (LOG, "4.2"),
        (TRANSACTIONS, "3.9"),
        (TRANSACTIONS, "4.2"),
        (CLASSIC_GROUPS, "3.9"),
        (GROUPS, "3.9"),
        (GROUPS, "4.2"),
        (ASSIGNMENTS, "3.9"),
        (ASSIGNMENTS, "4.2"),
        (SETTINGS, "3.9"),
        (SETTINGS, "4.2"),
    ],
    ids="-".join,
)
def talk(request: pytest.FixtureRequest) -> Iterator[tuple[Pair, str, str]]:
    """Run this broker and a real Kafka of a release. Returns them with the subject of their conversations and the release."""
    about, release = request.param
    with both(about, release) as running:
        yield running, about, release


def test_group_and_transaction_requests_that_revealed_old_bugs_get_kafkas_responses(
    talk: tuple[Pair, str, str],
) -> None:
    running, about, release = talk
    conversations = {
        n: c for n, c in CONVERSATIONS_ONCE_DIFFERENT.items() if c.about in PLAYED[about] and c.release == release
    }
    assert conversations
    for name, played in conversations.items():
        difference = running.difference(played)
        assert difference is None, f"{name}:\n{difference}"


def test_random_group_and_transaction_requests_get_the_responses_of_real_kafka(talk: tuple[Pair, str, str]) -> None:
    running, about, release = talk
    for seed in range(CONVERSATIONS):
        result = running.compare(generated(about, seed, release))
        assert not isinstance(result, Differing), f"seed {seed}:\n{result.request_sequence}\n{result.difference}"
        listed = (about, release, seed) in UNSTABLE
        assert not isinstance(result, Unstable) or listed, f"seed {seed} is unstable: {result.difference}"


def test_equal_seeds_generate_equal_group_and_transaction_requests() -> None:
    for about in (TRANSACTIONS, GROUPS, CLASSIC_GROUPS, ASSIGNMENTS, SETTINGS):
        played = conversation(about, 7, "4.2")
        assert conversation(about, 7, "4.2") == played != conversation(about, 8, "4.2")
        assert eval(str(played), {"Conversation": Conversation}) == played


class OneFaultyBroker(Pair):
    """A pair in which one broker makes errors in one kind of step, which the comparison must find and reduce."""

    def __init__(self, errs: str) -> None:
        self.errs = errs

    def difference(self, request_sequence: RequestSequence) -> Difference | None:
        right = [kind for kind, _ in request_sequence.steps]
        return first_difference(request_sequence, ["wrong" if kind == self.errs else kind for kind in right], right)


def test_failing_request_sequence_is_reduced_to_the_request_that_causes_the_failure() -> None:
    whole = next(
        c for c in map(request_sequence, range(50)) if {"fetch", "metadata", "produce"} <= {k for k, _ in c.steps}
    )
    difference = OneFaultyBroker("metadata").compare(whole)
    assert isinstance(difference, Differing)
    assert [kind for kind, _ in difference.request_sequence.steps] == ["metadata"]
    assert eval(str(difference.request_sequence), {"RequestSequence": RequestSequence}) == difference.request_sequence


def test_equal_seeds_generate_equal_request_sequences() -> None:
    assert request_sequence(7) == request_sequence(7) != request_sequence(8)


def test_produce_request_converted_to_a_dict_contains_its_acks_and_records() -> None:
    described = plain(produce("t", b""), {})
    assert described["acks"] == 1 and described["topic_data"][0]["partition_data"][0]["records"] == []
