"""Ours against the real broker: what differs three times out of three is shrunk to the steps that it takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from kafkaproto.conformance.subject import Subject
from tests.differential.conversations import Conversation, Step
from tests.differential.playing import Answers, play

TIMES = 3


class Difference(NamedTuple):
    """The first step whose answers differ."""

    index: int
    step: Step
    ours: Any
    real: Any

    def __str__(self) -> str:
        return f"step {self.index} {self.step}\n  ours: {self.ours}\n  real: {self.real}"


@dataclass(frozen=True)
class Unstable:
    """It differed, and then it did not: a matter of time, to be listed with its reason."""

    conversation: Conversation
    difference: Difference


@dataclass(frozen=True)
class Found:
    """It differs every time; shrunk."""

    conversation: Conversation
    difference: Difference


class Pair:
    """The two that are compared."""

    def __init__(self, ours: Subject, real: Subject) -> None:
        self.ours, self.real = ours, real

    def difference(self, conversation: Conversation) -> Difference | None:
        """The first difference of one play, None if there is none."""
        ours, real = play(self.ours, conversation), play(self.real, conversation)
        return first_difference(conversation, ours, real)

    def compare(self, conversation: Conversation) -> Found | Unstable | None:
        first = self.difference(conversation)
        if first is None:
            return None
        for _ in range(TIMES - 1):
            if self.difference(conversation) is None:
                return Unstable(conversation, first)
        return self._shrunk(conversation, first)

    def _shrunk(self, conversation: Conversation, difference: Difference) -> Found:
        """Without the steps behind the difference, then without each other one that it does not take."""
        conversation = replace(conversation, steps=conversation.steps[: difference.index + 1])
        at = len(conversation.steps) - 2
        while at >= 0:
            smaller = replace(conversation, steps=conversation.steps[:at] + conversation.steps[at + 1 :])
            found = self.difference(smaller)
            if found is not None:
                conversation, difference = replace(smaller, steps=smaller.steps[: found.index + 1]), found
            at = min(at, len(conversation.steps) - 1) - 1
        return Found(conversation, difference)


def first_difference(conversation: Conversation, ours: Answers, real: Answers) -> Difference | None:
    for index, (step, a, b) in enumerate(zip(conversation.steps, ours, real, strict=True)):
        if a != b:
            return Difference(index, step, a, b)
    return None
