"""Regular expressions that match whole texts, in a time that grows linearly with the length of the text.

Kafka 4.x compiles the regular expressions of clients with RE2J. Python's `re` has another syntax, and takes exponential time for some patterns.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kafkaproto.broker.regular_expressions.classes import NEWLINE, WORD_CHARACTERS
from kafkaproto.broker.regular_expressions.parser import parse
from kafkaproto.broker.regular_expressions.program import Check, Edge, Jump, Program, Read

MOST_CACHED_POSITIONS: Final = 1_000_000
"""The maximum total number of instruction indexes in the cached states of one pattern. When there are more, the cache is cleared."""


def compile_pattern(text: str, longest: int) -> Pattern:
    """Return the compiled pattern of a regular expression in the syntax of RE2J 1.8.

    longest: the maximum length in characters of the texts to match. The limit keeps the pattern small. A longer text may get a wrong result.
    Raises ExpressionError if RE2J rejects the expression. Unlike Kafka, this function also rejects an expression whose repetitions make it larger
    than 100,000 instructions (`MOST_INSTRUCTIONS`).
    """
    return Pattern(parse(text, longest))


class _State(NamedTuple):
    """The state of a match after the characters read so far.

    positions: indexes of the instructions to continue with. at_start: whether no character has been read. after_word, after_newline: whether the last
    character is a word character or a newline.
    """

    positions: frozenset[int]
    at_start: bool
    after_word: bool
    after_newline: bool


_START: Final = _State(frozenset({0}), at_start=True, after_word=False, after_newline=False)


class Pattern:
    """A compiled regular expression. A match follows all possible paths at once, and the pattern caches the states that it has computed."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._next_states: dict[tuple[_State, str], _State] = {}
        self._cached_positions = 0

    def matches(self, text: str) -> bool:
        """Return whether the pattern matches the whole text."""
        state = _START
        for character in text:
            if not state.positions:
                return False
            next_state = self._next_states.get((state, character))
            if next_state is None:
                next_state = self._step(state, character)
                self._remember(state, character, next_state)
            state = next_state
        return len(self._program) in self._reachable(state, None)

    def _step(self, state: _State, character: str) -> _State:
        """Return the state of the match after one more character has been read."""
        positions = set()
        for position in self._reachable(state, character):
            if position < len(self._program):
                instruction = self._program[position]
                if isinstance(instruction, Read) and character in instruction.characters:
                    positions.add(position + 1)
        return _State(
            frozenset(positions),
            at_start=False,
            after_word=character in WORD_CHARACTERS,
            after_newline=character == NEWLINE,
        )

    def _reachable(self, state: _State, next_character: str | None) -> set[int]:
        """Return the indexes of instructions that can be reached without reading a character.

        The result contains the index after the last instruction if the pattern matches the characters read so far. state: the state of the match
        after these characters. next_character: the character that follows, None at the end of the text.
        """
        boundary = state.after_word != (next_character in WORD_CHARACTERS)
        holds = {
            Edge.START: state.at_start,
            Edge.END: next_character is None,
            Edge.LINE_START: state.at_start or state.after_newline,
            Edge.LINE_END: next_character in (None, NEWLINE),
            Edge.WORD_BOUNDARY: boundary,
            Edge.NO_WORD_BOUNDARY: not boundary,
        }
        reached_positions = set(state.positions)
        unvisited = list(reached_positions)
        while unvisited:
            position = unvisited.pop()
            if position == len(self._program):
                continue
            match self._program[position]:
                case Jump(distances):
                    next_positions = [position + distance for distance in distances]
                case Check(edge) if holds[edge]:
                    next_positions = [position + 1]
                case _:
                    continue
            unvisited += [p for p in next_positions if p not in reached_positions]
            reached_positions.update(next_positions)
        return reached_positions

    def _remember(self, state: _State, character: str, next_state: _State) -> None:
        self._cached_positions += 1 + len(state.positions) + len(next_state.positions)
        if self._cached_positions > MOST_CACHED_POSITIONS:
            self._next_states.clear()
            self._cached_positions = 0
        self._next_states[state, character] = next_state
