"""Comparison with the real broker: a difference found three times out of three is reduced to the steps that cause it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from kafkaproto.conformance.subject import Subject
from tests.differential.assignments import AssignmentPlayer
from tests.differential.classic_groups import ClassicPlayer
from tests.differential.conversations import ASSIGNMENTS, CLASSIC_GROUPS, GROUPS, SETTINGS, TRANSACTIONS, Conversation
from tests.differential.groups import GroupPlayer
from tests.differential.playing import Answers, play
from tests.differential.request_sequences import RequestSequence, Step
from tests.differential.settings import SettingsPlayer
from tests.differential.transactions import TransactionPlayer

TIMES = 3


class Player(Protocol):
    """A conversation on one subject."""

    def answered(self, step: Step) -> Any: ...


Played = RequestSequence | Conversation
PLAYERS: dict[str, Callable[[Subject], Player]] = {
    TRANSACTIONS: TransactionPlayer,
    GROUPS: GroupPlayer,
    CLASSIC_GROUPS: ClassicPlayer,
    ASSIGNMENTS: AssignmentPlayer,
    SETTINGS: SettingsPlayer,
}
"""Maps what conversations are about to their player."""


class Difference(NamedTuple):
    """The first step whose responses differ."""

    index: int
    step: Step
    ours: Any
    real: Any

    def __str__(self) -> str:
        return f"step {self.index} {self.step}\n  ours: {self.ours}\n  real: {self.real}"


@dataclass(frozen=True)
class Unstable:
    """A difference that did not occur in every repetition and therefore depends on time; it must be listed with its reason."""

    request_sequence: Played
    difference: Difference


@dataclass(frozen=True)
class Differing:
    """A difference that occurs in every repetition, reduced to the steps that cause it."""

    request_sequence: Played
    difference: Difference


class Pair:
    """The broker and the real Kafka broker that are compared."""

    def __init__(self, ours: Subject, real: Subject) -> None:
        self.ours, self.real = ours, real

    def difference(self, request_sequence: Played) -> Difference | None:
        """Play a request sequence on both brokers and return the first difference, or None."""
        ours, real = responses(self.ours, request_sequence), responses(self.real, request_sequence)
        return first_difference(request_sequence, ours, real)

    def compare(self, request_sequence: Played) -> Differing | Unstable | None:
        first = self.difference(request_sequence)
        if first is None:
            return None
        for _ in range(TIMES - 1):
            if self.difference(request_sequence) is None:
                return Unstable(request_sequence, first)
        return self._shrunk(request_sequence, first)

    def _shrunk(self, request_sequence: Played, difference: Difference) -> Differing:
        """Remove all steps after the difference and every other step that the difference does not need."""
        request_sequence = replace(request_sequence, steps=request_sequence.steps[: difference.index + 1])
        at = len(request_sequence.steps) - 2
        while at >= 0:
            smaller = replace(request_sequence, steps=request_sequence.steps[:at] + request_sequence.steps[at + 1 :])
            smaller_difference = self.difference(smaller)
            if smaller_difference is not None:
                request_sequence, difference = (
                    replace(smaller, steps=smaller.steps[: smaller_difference.index + 1]),
                    smaller_difference,
                )
            at = min(at, len(request_sequence.steps) - 1) - 1
        return Differing(request_sequence, difference)


def responses(subject: Subject, played: Played) -> Answers:
    """Return the response to each step of a request sequence or conversation."""
    if isinstance(played, RequestSequence):
        return play(subject, played)
    player = PLAYERS[played.about](subject)
    try:
        return [player.answered(step) for step in played.steps]
    finally:
        subject.close_connections()


def first_difference(request_sequence: Played, ours: Answers, real: Answers) -> Difference | None:
    for index, (step, a, b) in enumerate(zip(request_sequence.steps, ours, real, strict=True)):
        if a != b:
            return Difference(index, step, a, b)
    return None
