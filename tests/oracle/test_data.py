"""What travels inside messages and records, against the classes of the jars, which are the coordinators' for log records."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from kafkaproto.generator import SCHEMAS
from kafkaproto.generator.refresh import OLDER_DATA, data, to_text
from tests.kafkaproto.catalogue import DATA_ENTRIES, Entry
from tests.kafkaproto.values import Values
from tests.oracle.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from tests.oracle.oracle import Oracle

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def newer() -> Iterator[Oracle]:
    with Oracle(kafka_jars(NEWER_VERSION)) as process:
        yield process


def test_the_definitions_are_those_of_the_jars() -> None:
    theirs = data(kafka_jars(KAFKA_VERSION), kafka_jars(NEWER_VERSION))
    ours = {path.stem: path.read_text() for path in (SCHEMAS / "data").glob("*.json")}
    assert ours == {name: to_text(definition) for name, definition in theirs.items()}
    assert not any("about" in json.loads(text) for text in ours.values())


@pytest.mark.parametrize("entry", DATA_ENTRIES, ids=lambda entry: entry.id)
def test_X1_both_write_and_read_the_same_bytes_and_the_same_json(oracle: Oracle, newer: Oracle, entry: Entry) -> None:
    kafka = oracle if entry.name in OLDER_DATA else newer
    for obj in Values(entry.id).objects(entry.layout):
        ours, told = entry.layout.encode(obj), entry.layout.to_json(obj)
        assert ours == kafka.encode(entry.name, entry.version, told)
        assert kafka.decode(entry.name, entry.version, ours) == (len(ours), ours, told)
