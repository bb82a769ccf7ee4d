"""Character classes of regular expressions: Perl, POSIX and Unicode classes, ranges of characters, and case folding."""

from __future__ import annotations

import string
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Final

from kafkaproto.broker.regular_expressions.unicode_tables import (
    CATEGORIES,
    FOLD_CATEGORIES,
    FOLD_SCRIPTS,
    LONGER_ORBITS,
    PAIRS,
    SCRIPTS,
)

END_OF_CODE_POINTS: Final = 0x110000
"""One more than the largest Unicode code point."""
NEWLINE: Final = "\n"
WORD_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "_")
r"""The characters that `\w` matches. A word boundary lies between a word character and another character, or the start or end of the text."""

_FIRST_FOLDED, _LAST_FOLDED = 0x41, 0x1044F
"""The first and the last code point for which RE2J 1.8 adds case variants to a character class if case is ignored."""


class Characters:
    """An immutable set of characters, stored as ranges of code points.

    The ranges are stored as one sorted tuple, with two items for each range: its first code point, and the code point after its last one.
    """

    __slots__ = ("_bounds",)

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Create the set of all code points in these ranges, given as (first, last)."""
        bounds: list[int] = []
        for low, high in sorted(ranges):
            if bounds and low <= bounds[-1]:
                bounds[-1] = max(bounds[-1], high + 1)
            else:
                bounds += [low, high + 1]
        self._bounds = tuple(bounds)

    def __contains__(self, character: str) -> bool:
        return bisect_right(self._bounds, ord(character)) % 2 == 1

    def ranges(self) -> Iterator[tuple[int, int]]:
        """Return the (first, last) code points of each range, ascending."""
        return ((low, end - 1) for low, end in zip(self._bounds[::2], self._bounds[1::2], strict=True))

    def __or__(self, other: Characters) -> Characters:
        return Characters([*self.ranges(), *other.ranges()])

    def __invert__(self) -> Characters:
        """Return the set of all characters that are not in this set."""
        bounds = [0, *self._bounds, END_OF_CODE_POINTS]
        return Characters((low, end - 1) for low, end in zip(bounds[::2], bounds[1::2], strict=True) if low < end)


def one_of(characters: str) -> Characters:
    return Characters((ord(c), ord(c)) for c in characters)


ANY: Final = Characters([(0, END_OF_CODE_POINTS - 1)])
NOT_NEWLINE: Final = ~one_of(NEWLINE)

PERL_CLASSES: Final[dict[str, Characters]] = {
    "d": one_of(string.digits),
    "s": one_of("\t\n\f\r "),
    "w": one_of("".join(WORD_CHARACTERS)),
}
POSIX_CLASSES: Final[dict[str, Characters]] = {
    "alnum": one_of(string.ascii_letters + string.digits),
    "alpha": one_of(string.ascii_letters),
    "ascii": Characters([(0, 0x7F)]),
    "blank": one_of("\t "),
    "cntrl": Characters([(0, 0x1F), (0x7F, 0x7F)]),
    "digit": one_of(string.digits),
    "graph": Characters([(0x21, 0x7E)]),
    "lower": one_of(string.ascii_lowercase),
    "print": Characters([(0x20, 0x7E)]),
    "punct": one_of(string.punctuation),
    "space": one_of("\t\n\v\f\r "),
    "upper": one_of(string.ascii_uppercase),
    "word": one_of("".join(WORD_CHARACTERS)),
    "xdigit": one_of(string.hexdigits),
}
GROUPS_OF_CATEGORIES: Final = "CLMNPSZ"
UNICODE_CLASS_NAMES: Final = frozenset({"Any", *GROUPS_OF_CATEGORIES, *CATEGORIES, *SCRIPTS})
r"""The names that `\p{...}` accepts: the general categories and scripts of Unicode 6.0, and `Any`."""


@cache
def unicode_class(name: str, *, ignore_case: bool) -> Characters:
    """Return the characters of the Unicode class `name`, one of `UNICODE_CLASS_NAMES`.

    ignore_case: whether to include the characters that RE2J's tables add to the class if case is ignored.
    """
    if name == "Any":
        return ANY
    if name in SCRIPTS:
        range_texts = [SCRIPTS[name]]
        folded = FOLD_SCRIPTS.get(name, "")
    else:
        range_texts = [text for category, text in CATEGORIES.items() if category.startswith(name)]
        folded = FOLD_CATEGORIES.get(name, "")
    return Characters(part for text in [*range_texts, folded if ignore_case else ""] for part in _parsed(text))


def _parsed(text: str) -> Iterator[tuple[int, int]]:
    """Yield the (first, last) code points of each range in an entry of the Unicode tables, such as "61-7a 100-12e/2".

    Numbers are hexadecimal, except the decimal step after the slash: "100-12e/2" stands for every second code point from 100 to 12e.
    """
    for word in text.split():
        limits, _, step = word.partition("/")
        low, _, high = limits.partition("-")
        first, last = int(low, 16), int(high or low, 16)
        if step:
            yield from ((code_point, code_point) for code_point in range(first, last + 1, int(step)))
        else:
            yield first, last


@cache
def _folds() -> dict[int, int]:
    """Return the case variants of code points as cycles: maps each code point to the next one of its cycle.

    For example, k maps to the Kelvin sign, which maps to K, which maps to k. Code points without variants are missing.
    """
    folds = {}
    for word in PAIRS.split():
        limits, _, distance = word.partition("+")
        for low, high in _parsed(limits):
            for code_point in range(low, high + 1):
                folds[code_point] = code_point + int(distance, 16)
                folds[code_point + int(distance, 16)] = code_point
    for word in LONGER_ORBITS.split():
        letter, _, other = word.partition(">")
        folds[int(letter, 16)] = int(other, 16)
    return folds


def _orbit(code_point: int) -> set[int]:
    """Return the set of `code_point` and its case variants: the code points that are equivalent to it if case is ignored."""
    folds, orbit = _folds(), {code_point}
    while (code_point := folds.get(code_point, code_point)) not in orbit:
        orbit.add(code_point)
    return orbit


def literal(code_point: int, *, ignore_case: bool) -> Characters:
    """Return the set of characters that match this code point in an expression: the character itself and, if case is ignored, its case variants."""
    if not ignore_case:
        return Characters([(code_point, code_point)])
    return Characters((other, other) for other in _orbit(code_point))


def folded(characters: Characters) -> Characters:
    """Return a set with these characters and their case variants.

    As in RE2J 1.8, only characters from U+0041 to U+1044F get case variants.
    """
    ranges = list(characters.ranges())
    folded_ranges = [
        (other, other)
        for low, high in ranges
        for code_point in _folds()
        if max(low, _FIRST_FOLDED) <= code_point <= min(high, _LAST_FOLDED)
        for other in _orbit(code_point)
    ]
    return Characters(ranges + folded_ranges)


def in_range(low: int, high: int, *, ignore_case: bool) -> Characters:
    """Return the set of the code points from `low` to `high`, both included, with their case variants if case is ignored."""
    characters = Characters([(low, high)])
    return folded(characters) if ignore_case else characters
