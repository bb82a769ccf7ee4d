"""Every version of every message in both directions, compared with the classes of kafka-clients."""

from __future__ import annotations

import math
import random
from itertools import product

import pytest

from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.json_form import from_json, to_json
from kafkaproto.message import parts
from kafkaproto.primitives import Float64
from tests.support.codec.catalogue import ENTRIES, Entry
from tests.support.codec.values import Values
from tests.support.oracle.instances import Instances
from tests.support.oracle.oracle import Refused, Releases

# the first question downloads the jars if they are missing
pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

MUTATIONS = 60


@pytest.mark.rule("X-1")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_kafkaproto_and_kafka_convert_every_message_to_the_same_bytes_and_json(
    releases: Releases, entry: Entry
) -> None:
    kafkas = releases.having(entry.name, entry.version)
    assert kafkas
    instances = Instances(entry)
    for kafka in kafkas:
        instances.compare(kafka, entry.version)


@pytest.mark.parametrize(
    "entry", [entry for entry in ENTRIES if Float64 in parts(entry.layout)], ids=lambda entry: entry.id
)
@pytest.mark.parametrize("number", [math.inf, -math.inf, math.nan])
def test_infinity_and_nan_are_written_to_json_as_in_kafka_and_can_be_read_back(
    releases: Releases, entry: Entry, number: float
) -> None:
    values = Values(entry.id)
    values.floats = (number,)
    ours = entry.layout.encode(values.object(entry.layout, "small"))
    for kafka in releases.having(entry.name, entry.version):
        read, rewritten, fields = kafka.decode(entry.name, entry.version, ours)
        assert (read, rewritten) == (len(ours), ours)
        assert fields == to_json(entry.layout, entry.layout.decode(ours))
        assert entry.layout.encode(from_json(entry.layout, fields)) == ours


@pytest.mark.parametrize("name", sorted({entry.name for entry in ENTRIES}))
def test_kafkaproto_and_kafka_agree_on_dropping_or_rejecting_fields_a_version_lacks(
    releases: Releases, name: str
) -> None:
    versions = [entry for entry in ENTRIES if entry.name == name]
    refused = 0
    for entry in versions:
        for shape in ("default", "small", "random", "random", "null"):
            obj = Values(entry.id).object(entry.layout, shape)
            data = entry.layout.encode(obj)
            for other in versions:
                having = releases.having(name, entry.version, other.version)
                if not having:
                    continue  # no release has both versions
                try:
                    moved = having[0].move(name, entry.version, other.version, data)
                except Refused:
                    refused += 1
                    with pytest.raises(EncodeError):
                        other.layout.encode(obj)
                else:
                    assert other.layout.encode(obj) == moved
    assert refused or name not in {"FetchRequest", "FetchResponse", "MetadataRequest", "OffsetFetchRequest"}


@pytest.mark.rule("W-5")
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.id)
def test_kafkaproto_and_kafka_reject_the_same_damaged_messages(releases: Releases, entry: Entry) -> None:
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
            _, rewritten, _ = releases.decode(entry.name, entry.version, damaged)
        except Refused:  # Kafka reads the bytes but does not write such a message: it repeats an unknown tag
            with pytest.raises(EncodeError):
                entry.layout.encode(obj)
        else:
            assert entry.layout.encode(obj) == rewritten


def damage(whole: bytes, chance: random.Random) -> bytes:
    """Return the message with one byte changed or its end removed."""
    at = chance.randrange(len(whole))
    if chance.random() < 0.3:
        return whole[:at]
    return whole[:at] + bytes([chance.choice((0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256)))]) + whole[at + 1 :]


def assert_kafka_agrees(releases: Releases, entry: Entry, damaged: bytes, error: DecodeError) -> None:
    if "does not fill" in error.reason or "(tag " in error.path:
        return  # unlike this codec, Kafka does not check the announced size of a known tagged field
    with pytest.raises(Refused):
        releases.decode(entry.name, entry.version, damaged)


def test_kafkaproto_and_kafka_decode_invalid_utf8_to_the_same_text(releases: Releases) -> None:
    entry = next(entry for entry in ENTRIES if entry.id == "MetadataRequest-v1")
    leads = (0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF, 0x80, 0x41)
    others = (0x41, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC2, 0xED, 0xF1)
    names = [bytes((lead, *rest)) for n in range(4) for lead in leads for rest in product(others, repeat=n)]
    data = len(names).to_bytes(4, "big") + b"".join(len(name).to_bytes(2, "big") + name for name in names)
    for kafka in releases.having(entry.name, entry.version):
        _, _, fields = kafka.decode(entry.name, entry.version, data)
        assert fields == to_json(entry.layout, entry.layout.decode(data))
