"""Patterns of topic names, to which group members subscribe (KIP-848, `SubscribedTopicRegex`; GN-49, GN-50)."""

from __future__ import annotations

import string
from typing import Final

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.regular_expressions.pattern import Pattern, compile_pattern
from kafkaproto.broker.regular_expressions.program import ExpressionError
from kafkaproto.error_codes import ErrorCode

LONGEST_TOPIC_NAME: Final = 249
"""The maximum length of a topic name, in characters."""
TOPIC_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
"""The characters that may occur in the name of a topic."""


class TopicPattern:
    """A compiled pattern of topic names. text: the regular expression."""

    def __init__(self, text: str, pattern: Pattern) -> None:
        self.text = text
        self._pattern = pattern

    def matches(self, name: str) -> bool:
        """Return whether the pattern matches the whole name. A name with a character that topic names cannot have does not match."""
        return TOPIC_CHARACTERS.issuperset(name) and self._pattern.matches(name)


def compile_topic_pattern(text: str) -> TopicPattern:
    """Return the pattern that a regular expression describes.

    Raises KafkaError with INVALID_REGULAR_EXPRESSION and Kafka's message if the expression is invalid.
    """
    try:
        return TopicPattern(text, compile_pattern(text, LONGEST_TOPIC_NAME))
    except ExpressionError as error:
        message = f"SubscribedTopicRegex `{text}` is not a valid regular expression: {error}."
        raise KafkaError(ErrorCode.INVALID_REGULAR_EXPRESSION, message) from error
