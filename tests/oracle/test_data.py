"""Data formats inside messages and records, compared with the classes of Kafka's jars."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION, kafka_jars
from kafkaproto.coordinator_records import data_class, read_record, write_key, write_value
from kafkaproto.data import DATA, RECORDS
from kafkaproto.generator import SCHEMAS
from kafkaproto.generator.refresh import OLDER_DATA, data, to_text
from kafkaproto.json_form import to_json
from tests.support.codec.catalogue import DATA_ENTRIES, Entry
from tests.support.codec.values import Values
from tests.support.oracle.instances import Instances
from tests.support.oracle.oracle import Oracle, Refused

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]


COORDINATORS = {"__consumer_offsets": "group", "__transaction_state": "transaction", "__share_group_state": "share"}
KEYS = {key for records in RECORDS.values() for key, _ in records.values()} - OLDER_DATA.keys()
IN_BOTH = {name for name in KEYS if re.match("ConsumerGroup(?!Regular)|GroupMetadata", name)}


ONLY_NEWER = {
    "EndTxnMarker-v0",  # the older release has no definition for it
    "ConsumerGroupMetadataValue-v0",  # it has a new tagged field
    "ConsumerGroupRegularExpressionKey-v16",
    "ConsumerGroupRegularExpressionValue-v0",
    "OffsetCommitValue-v4",
    "TransactionLogValue-v1",
}
"""Formats that are missing or different in the older release, in addition to the groups that the older release lacks completely."""


@pytest.fixture(scope="module")
def newer() -> Iterator[Oracle]:
    with Oracle(kafka_jars(NEWER_VERSION)) as process:
        yield process


def test_schemas_of_coordinator_records_and_consumer_protocol_equal_those_of_kafka() -> None:
    theirs = data(kafka_jars(KAFKA_VERSION), kafka_jars(NEWER_VERSION))
    ours = {path.stem: path.read_text() for path in (SCHEMAS / "data").glob("*.json")}
    assert ours == {name: to_text(definition) for name, definition in theirs.items()}
    assert not any("about" in json.loads(text) for text in ours.values())


@pytest.mark.rule("X-1")
@pytest.mark.parametrize("entry", DATA_ENTRIES, ids=lambda entry: entry.id)
def test_kafkaproto_and_kafka_encode_coordinator_records_to_equal_bytes_and_json(
    oracle: Oracle, newer: Oracle, entry: Entry
) -> None:
    instances = Instances(entry)
    # the newer release numbers the versions of a key from 0; the older one uses the number in front of the key
    version = 0 if entry.name in KEYS else entry.version
    if entry.name not in OLDER_DATA:
        instances.compare(newer, version)
    if entry.name in OLDER_DATA or same_in_both(oracle, newer, entry, version):
        instances.compare(oracle, entry.version)


def same_in_both(oracle: Oracle, newer: Oracle, entry: Entry, version: int) -> bool:
    """Return whether both releases have the version with the same meaning."""
    try:
        older = oracle.layouts(entry.name).get(str(entry.version))
    except Refused:
        return False
    return older is not None and older == newer.layouts(entry.name)[str(version)]


def test_only_listed_coordinator_record_formats_differ_between_kafka_3_9_and_4_2(oracle: Oracle, newer: Oracle) -> None:
    otherwise = set()
    for entry in DATA_ENTRIES:
        version = 0 if entry.name in KEYS else entry.version
        if entry.name not in OLDER_DATA and not same_in_both(oracle, newer, entry, version):
            otherwise.add(entry.id)
    newer_groups = {name for name in otherwise if name.startswith(("Share", "Streams"))}
    assert otherwise - newer_groups == ONLY_NEWER


@pytest.mark.parametrize("topic", RECORDS)
def test_version_of_a_coordinator_record_key_selects_the_same_record_type_as_kafka(newer: Oracle, topic: str) -> None:
    theirs = json.loads(newer.ask("recordtypes", COORDINATORS[topic]))
    named = {int(number): tuple(name.removeprefix("Legacy") for name in names) for number, names in theirs.items()}
    assert RECORDS[topic] == named


@pytest.mark.parametrize(
    "entry", [entry for entry in DATA_ENTRIES if entry.name in IN_BOTH], ids=lambda entry: entry.id
)
def test_group_record_keys_encoded_by_kafkaproto_have_the_same_bytes_as_in_kafka_3_9(
    oracle: Oracle, entry: Entry
) -> None:
    for obj in Values(entry.id).objects(entry.layout):
        assert entry.layout.encode(obj) == oracle.encode(entry.name, entry.version, to_json(entry.layout, obj))


@pytest.mark.parametrize("kind", RECORDS["__consumer_offsets"])
def test_kafka_group_coordinator_decodes_records_written_by_kafkaproto(newer: Oracle, kind: int) -> None:
    names = RECORDS["__consumer_offsets"][kind]
    versions = range(DATA[names[1]].min_version, DATA[names[1]].max_version + 1)
    for version in versions if kind else (0,):  # the oldest key exists only with the oldest value
        values = Values(f"{names} {version}")
        key = write_key(values.object(data_class(names[0]).layout(kind)), kind)
        value = write_value(values.object(data_class(names[1]).layout(version)), version)
        assert newer.ask("record", key.hex(), value.hex()).split() == [key.hex(), value.hex()]
        again = read_record("__consumer_offsets", key, value)
        assert again[1] is not None
        assert (write_key(again[0], kind), write_value(again[1], version)) == (key, value)
