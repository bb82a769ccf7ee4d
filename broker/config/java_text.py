"""Texts as Java reads them: numbers and lists in the values of settings. This module does not depend on Kafka."""

from __future__ import annotations

import math
import re

_DECIMAL = re.compile(r"(?P<number>[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?)[fFdD]?\Z")
_HEXADECIMAL = re.compile(r"(?P<number>[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\Z")
_SPECIAL = re.compile(r"[+-]?(NaN|Infinity)\Z")


def java_double(text: str) -> float | None:
    """Return the number that Java's `Double.parseDouble` reads, None if it reads none. It accepts `NaN`, `0.5f` and `0x1p-1`, but not `1_0`."""
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
    """Return the items of a list as Java's `String.split` does: without the empty ones at the end, but empty text is one empty item."""
    return text.rstrip(",").split(",") if text.strip(",") else [""] * (text == "")
