"""The list of error texts that are Kafka's own, compared with Kafka's jars."""

from __future__ import annotations

import json

import pytest

from tests.documentation.samples import OF_KAFKA
from tests.support.oracle.texts_of_kafka import literals, texts_of_kafka


@pytest.mark.java
def test_stored_list_of_kafka_error_texts_equals_the_texts_in_the_kafka_jars() -> None:
    """If it fails, `python -m tests.support.oracle.texts_of_kafka` writes the list again."""
    assert json.loads(OF_KAFKA.read_text()) == texts_of_kafka()


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("Topic '{name}' already exists.", [b"Topic", b"already exists"]),
        ("Invalid level {level}. Can't be less than 0.", [b"Invalid level", b"Can't be less than"]),
        ("voter {voter} of [{', '.join(own)}]", [b"voter", b"of"]),
        ("{a}{b}", []),
    ],
)
def test_error_text_template_is_split_at_its_placeholders_into_literal_parts(text: str, parts: list[bytes]) -> None:
    assert literals(text) == parts
