"""Texts of responses, error messages above all, as texts that are equal on each subject."""

from __future__ import annotations

import re
from base64 import urlsafe_b64encode
from collections.abc import Mapping

GENERATED_ID = re.compile(r"[\w.-]*-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
"""A member id that a broker generated."""
NUMBER = re.compile(r"-?\d{13,19}")
FIRST_MS, LAST_MS = 1_700_000_060_000, 9_999_999_999_999
"""Numbers between these are times of a clock. The times in the batches of producers are lower."""
LOWEST = -(2**63)
"""Minus the largest time difference of Kafka. A time minus this difference is the start of a range that allows all earlier times."""


def shown(text: str, instead: Mapping[str, str]) -> str:
    """Return a text with each name of one subject, also inside the text, replaced by what it stands for, and each time by words.

    instead: maps names and ids to what they stand for.
    """
    if text in instead:
        return instead[text]
    for name in sorted(filter(None, instead), key=len, reverse=True):
        text = text.replace(name, instead[name])
    return NUMBER.sub(_number, GENERATED_ID.sub("an id", text))


def id_in_texts(topic_id: bytes) -> str:
    """Return a topic id as error messages contain it."""
    return urlsafe_b64encode(topic_id).decode().rstrip("=")


def _number(match: re.Match[str]) -> str:
    number = int(match[0])
    if FIRST_MS <= number <= LAST_MS:
        return "a time"
    return "the earliest time" if LOWEST <= number <= LOWEST + LAST_MS else match[0]
