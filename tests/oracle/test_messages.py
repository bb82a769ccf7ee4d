"""Every version of every message, both directions, against the classes of kafka-clients."""

from __future__ import annotations

import random

import pytest

from kafkaproto.errors import DecodeError, EncodeError
from tests.kafkaproto.catalogue import ENTRIES, Entry
from tests.kafkaproto.values import Values
from tests.oracle.oracle import Refused, Releases, without_records

# the first question waits for the jars on a machine that has none yet
pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

MUTATIONS = 60


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_X1_our_bytes_are_kafkas_bytes(releases: Releases, entry: Entry) -> None:
    for obj in Values(entry.id).objects(entry.layout):
        ours = entry.layout.encode(obj)
        assert ours == releases.encode(entry.name, entry.version, entry.layout.to_json(obj)), obj


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_X1_kafka_reads_what_we_wrote_and_writes_it_back(releases: Releases, entry: Entry) -> None:
    for obj in Values(entry.id).objects(entry.layout):
        ours = entry.layout.encode(obj)
        read, back, fields = releases.decode(entry.name, entry.version, ours)
        assert (read, back) == (len(ours), ours)
        assert fields == without_records(entry.layout, entry.layout.to_json(obj))
        assert entry.layout.decode(back) == obj


@pytest.mark.parametrize("name", sorted({entry.name for entry in ENTRIES}))
def test_a_field_that_another_version_lacks_is_dropped_or_refused_as_in_kafka(releases: Releases, name: str) -> None:
    versions = [entry for entry in ENTRIES if entry.name == name]
    refused = 0
    for entry in versions:
        for shape in ("default", "small", "random", "random", "null"):
            obj = Values(entry.id).object(entry.layout, shape)
            data = entry.layout.encode(obj)
            for other in versions:
                having = releases.having(name, entry.version, other.version)
                if not having:
                    continue  # one version is gone from the release that has the other
                try:
                    moved = having[0].move(name, entry.version, other.version, data)
                except Refused:
                    refused += 1
                    with pytest.raises(EncodeError):
                        other.layout.encode(obj)
                else:
                    assert other.layout.encode(obj) == moved
    assert refused or name not in {"FetchRequest", "FetchResponse", "MetadataRequest", "OffsetFetchRequest"}


FLEXIBLE = [entry for entry in ENTRIES if entry.layout.tags]


@pytest.mark.parametrize("entry", FLEXIBLE, ids=lambda entry: entry.id)
def test_W16_unknown_tags_come_back_from_kafka_as_we_wrote_them(releases: Releases, entry: Entry) -> None:
    values = Values(entry.id)
    for obj in values.objects(entry.layout):
        values.add_unknown_tags(entry.layout, obj)
        ours = entry.layout.encode(obj)
        read, back, _ = releases.decode(entry.name, entry.version, ours)
        assert (read, back) == (len(ours), ours)
        assert entry.layout.decode(ours) == obj


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_W5_damaged_bytes_are_refused_where_kafka_refuses_them(releases: Releases, entry: Entry) -> None:
    chance = random.Random(entry.id)
    whole = entry.layout.encode(Values(entry.id).object(entry.layout, "small"))
    for _ in range(MUTATIONS if whole else 0):
        damaged = damage(whole, chance)
        try:
            obj = entry.layout.decode(damaged)
        except DecodeError as error:
            assert_kafka_agrees(releases, entry, damaged, error)
            continue
        try:
            _, back, _ = releases.decode(entry.name, entry.version, damaged)
        except Refused:  # it read the bytes, but would not write such a thing: one unknown tag twice
            with pytest.raises(EncodeError):
                entry.layout.encode(obj)
        else:
            assert entry.layout.encode(obj) == back


def damage(whole: bytes, chance: random.Random) -> bytes:
    """One byte changed, or the end cut off."""
    at = chance.randrange(len(whole))
    if chance.random() < 0.3:
        return whole[:at]
    return whole[:at] + bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))]) + whole[at + 1 :]


def assert_kafka_agrees(releases: Releases, entry: Entry, damaged: bytes, error: DecodeError) -> None:
    if "does not fill" in error.reason or "(tag " in error.path:
        return  # Kafka does not look at the size that a tagged field of its own announces; we do
    with pytest.raises(Refused):
        releases.decode(entry.name, entry.version, damaged)
