"""Ours and the real broker answer the same, field by field, in as many conversations as a minute allows."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.differential.__main__ import both
from tests.differential.comparing import Difference, Found, Pair, Unstable, first_difference
from tests.differential.conversations import Conversation, conversation
from tests.differential.found import FOUND
from tests.differential.playing import plain
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
def test_what_was_mended_stays_so(pair: Pair, name: str) -> None:
    difference = pair.difference(FOUND[name])
    assert difference is None, f"\n{difference}"


def test_conversations_are_answered_as_the_real_broker_answers_them(pair: Pair) -> None:
    end = time.monotonic() + SECONDS
    played = 0
    while time.monotonic() < end or played < FEWEST:
        result = pair.compare(conversation(played))
        assert not isinstance(result, Found), f"seed {played}:\n{result.conversation}\n{result.difference}"
        assert not isinstance(result, Unstable) or played in UNSTABLE, f"seed {played} is unstable: {result.difference}"
        played += 1


class TwoTalks(Pair):
    """A pair of whom one errs in one kind of step, to see that it is found and shrunk."""

    def __init__(self, errs: str) -> None:
        self.errs = errs

    def difference(self, conversation: Conversation) -> Difference | None:
        right = [kind for kind, _ in conversation.steps]
        return first_difference(conversation, ["wrong" if kind == self.errs else kind for kind in right], right)


def test_a_difference_is_shrunk_to_the_steps_that_it_takes() -> None:
    whole = next(c for c in map(conversation, range(50)) if {"fetch", "metadata", "produce"} <= {k for k, _ in c.steps})
    found = TwoTalks("metadata").compare(whole)
    assert isinstance(found, Found)
    assert [kind for kind, _ in found.conversation.steps] == ["metadata"]
    assert eval(str(found.conversation), {"Conversation": Conversation}) == found.conversation


def test_the_same_seed_is_the_same_conversation() -> None:
    assert conversation(7) == conversation(7) != conversation(8)


def test_what_is_compared_has_every_field_but_those_left_out() -> None:
    told = plain(produce("t", b""))
    assert told["acks"] == 1 and told["topic_data"][0]["partition_data"][0]["records"] == []
