"""Programs of regular expressions: lists of instructions, built by the parser from smaller programs and executed by `Pattern`."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from typing import Final, NamedTuple

from kafkaproto.broker.regular_expressions.classes import Characters

MOST_INSTRUCTIONS: Final = 100_000
"""The maximum number of instructions of a program. RE2J has no such limit, so that nested repetitions may exhaust the memory of a Kafka broker."""


class ExpressionError(Exception):
    """Raised for an expression that RE2J rejects, with RE2J's description of the error as its text, and for one that is too large."""


class Edge(Enum):
    """A condition on a position in the text, before, between or after characters, such as a word boundary."""

    START = auto()
    END = auto()
    LINE_START = auto()
    LINE_END = auto()
    WORD_BOUNDARY = auto()
    NO_WORD_BOUNDARY = auto()


class Read(NamedTuple):
    """Instruction: read one character, which must be in `characters`, and continue with the next instruction."""

    characters: Characters


class Jump(NamedTuple):
    """Instruction: continue at each of the relative positions `distances`, without reading a character. Several positions are alternatives."""

    distances: tuple[int, ...]


class Check(NamedTuple):
    """Instruction: continue with the next instruction if the condition `edge` is true at the current position in the text."""

    edge: Edge


Instruction = Read | Jump | Check
Program = list[Instruction]
"""A list of instructions. Jumps are relative, so that programs can be copied and joined.

The text read so far matches if execution can continue at the end of the list, after the last instruction.
"""


def in_order(programs: Sequence[Program]) -> Program:
    """Return a program that matches if the given programs match one after the other. Raises ExpressionError if the result is too large."""
    _check_size(sum(map(len, programs)))
    return [instruction for program in programs for instruction in program]


def any_of(programs: Sequence[Program]) -> Program:
    """Return a program that matches if one of the given programs matches. Raises ExpressionError if the result is too large."""
    if len(programs) == 1:
        return programs[0]
    size = sum(len(program) + 1 for program in programs)
    _check_size(size + 1)
    begins: list[int] = []
    steps: Program = []
    for program in programs:
        begins.append(1 + len(steps))
        steps += program
        steps.append(Jump((size - len(steps),)))
    return [Jump(tuple(begins)), *steps]


def repeated(program: Program, least: int, most: int | None, longest: int) -> Program:
    """Return a program that matches `least` to `most` repetitions of another program; `most` is None if there is no maximum.

    longest: the maximum length in characters of the texts to match. Counts above `longest` + 1 are lowered to that number. This does not change the
    matches: of `longest` + 1 repetitions, at least one reads no character, and more repetitions can also read no character. Raises ExpressionError
    if the program is too large.
    """
    least = min(least, longest + 1)
    size = len(program)
    if most is None:
        _check_size((size + 1) * max(least, 1))
        if least == 0:
            return [Jump((1, size + 2)), *program, Jump((-size - 1,))]
        return [*(program * least), Jump((1, -size))]
    optional = min(most, longest + 1) - least
    _check_size(size * least + (size + 1) * optional)
    steps = program * least
    for remaining in range(optional, 0, -1):
        steps += [Jump((1, remaining * (size + 1))), *program]
    return steps


def _check_size(instructions: int) -> None:
    if instructions > MOST_INSTRUCTIONS:
        raise ExpressionError(f"expression too large (more than {MOST_INSTRUCTIONS} instructions)")
