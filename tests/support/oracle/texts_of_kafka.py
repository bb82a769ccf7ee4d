"""Which of the broker's error texts are Kafka's own: they occur in the class files of Kafka's jars, or of RE2/J, which Kafka uses.

The broker sends them word for word, so they are not reworded and not rated in the samples of `tests.documentation.samples`.

usage: python -m tests.support.oracle.texts_of_kafka     write them to tests/documentation/texts_of_kafka.json
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from collections.abc import Iterable

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from tests.documentation.samples import KINDS, OF_KAFKA
from tests.documentation.source_texts import SHOWN_AFTER

ROOMS = ("config", "group", "handlers", "log", "metadata", "quota", "regular_expressions", "requests")
"""The folders of `broker/` that send texts of Kafka."""
FEWEST_WORDS = 3
"""A text with fewer words between its placeholders, such as `{name} must be {value}`, is in many classes by chance."""
LONGEST_CHANCE = len("must be")
JARS = ("kafka*.jar", "re2j*.jar")
"""Patterns of the jars' names."""
_INVALID_REGEX = SHOWN_AFTER["ExpressionError"]
"""The start of the broker's messages about regular expressions. It is Kafka's, and what follows it is mostly RE2/J's."""


def literals(text: str) -> list[bytes]:
    """Return the parts of a text between its placeholders `{...}`, split into sentences, without punctuation at their ends.

    Messages about regular expressions have only the literals that RE2/J adds, if there are any.
    """
    added = text.removeprefix(_INVALID_REGEX)
    text = added if re.sub(r"\{.*?\}+", "", added).strip(".") else text
    parts = (re.sub(r"^[^A-Za-z]+|[^A-Za-z]+$", "", part) for part in re.split(r"\{.*?\}+|(?<=\.) ", text))
    return [part.encode() for part in parts if part]


def texts_of_kafka() -> dict[str, str]:
    """Return the error texts of the broker that Kafka has, too. Maps each to the class file of 3.9.1 or 4.2.0 that contains all its literals."""
    texts = {
        text for path, text in KINDS["messages"].texts() if path.startswith(tuple(f"broker/{room}/" for room in ROOMS))
    }
    return dict(sorted(_classes_with({text: literals(text) for text in sorted(texts)})))


def _classes_with(candidates: dict[str, list[bytes]]) -> Iterable[tuple[str, str]]:
    remaining = {
        text: parts
        for text, parts in candidates.items()
        if sum(len(part.split()) for part in parts) >= FEWEST_WORDS and max(map(len, parts), default=0) > LONGEST_CHANCE
    }
    for version in (KAFKA_VERSION, NEWER_VERSION):
        for jar in sorted(jar for pattern in JARS for jar in kafka_jars(version).glob(pattern)):
            with zipfile.ZipFile(jar) as archive:
                for name in archive.namelist():
                    content = archive.read(name) if name.endswith(".class") else b""
                    for text in [text for text, parts in remaining.items() if all(part in content for part in parts)]:
                        del remaining[text]
                        yield text, f"{jar.name}: {name}"


if __name__ == "__main__":
    OF_KAFKA.write_text(json.dumps(texts_of_kafka(), indent=1, ensure_ascii=False) + "\n")
    sys.stdout.write(f"{OF_KAFKA} is written\n")
