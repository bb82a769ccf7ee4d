"""Parsers of text, numbers and lists that accept the same text as Java's parsers, for settings and requests. They do not depend on Kafka."""

from __future__ import annotations

import math
import re

_DECIMAL = re.compile(r"(?P<number>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?\Z")
_HEXADECIMAL = re.compile(r"(?P<number>[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\Z")
_SPECIAL = re.compile(r"[+-]?(NaN|Infinity)\Z")
_TRIMMED = "".join(map(chr, range(0x21)))
"""The characters that Java's `String.trim` removes: U+0000 to U+0020. Python's `str.strip` removes others, such as U+00A0, and not U+0000."""
_COMMA = re.compile(r"[ \t\n\v\f\r]*,[ \t\n\v\f\r]*")


def java_trim(text: str) -> str:
    """Return the text without the characters U+0000 to U+0020 at its start and its end, as Java's `String.trim` does."""
    return text.strip(_TRIMMED)


def java_items(text: str) -> list[str]:
    """Split the value of a list setting into its items, as Kafka's `ConfigDef.parseType` does. Returns one empty item for blank text.

    The whole text is trimmed (`java_trim`). Around commas, only blanks, tabs and line breaks are removed.
    """
    return _COMMA.split(java_trim(text))


def java_double(text: str) -> float | None:
    """Parse a number as Java's `Double.parseDouble` does; None if `text` is invalid. `NaN`, `0.5f` and `0x1p-1` are valid, `1_0` is not."""
    if _SPECIAL.match(text):
        return float(text)
    match = _HEXADECIMAL.match(text)
    if match is not None:
        try:
            return float.fromhex(match["number"])
        except OverflowError:
            return math.inf
    match = _DECIMAL.match(text)
    return None if match is None else float(match["number"])


def java_split(text: str) -> list[str]:
    """Split a comma-separated list as Java's `String.split` does: drop empty items at its end, but return one empty item for empty text."""
    return text.rstrip(",").split(",") if text.strip(",") else [""] * (text == "")
