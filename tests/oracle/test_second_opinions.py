"""Three other Python codecs read what we write and write what they read: the same bytes, or Java is asked who is right.

Without unknown tags: they lose or refuse them.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests.support.codec.catalogue import ENTRIES, Entry
from tests.support.codec.values import Values
from tests.support.oracle.oracle import Releases
from tests.support.oracle.second_opinions import OPINIONS

pytestmark = [pytest.mark.java, pytest.mark.timeout(300)]

INSTANCES = 30
KNOWN_CODES = 100
"""kio knows all error codes below."""
AGREES, DIFFERS = "agrees", "writes other bytes"


class Disagreement(NamedTuple):
    """A library, messages (a pattern of our entries' ids), what it does there (a pattern), and why it is wrong."""

    library: str
    entries: str
    does: str
    why: str


DISAGREEMENTS = [
    Disagreement(
        "kafka-python",
        r"ApiVersionsResponse-v[12]",
        DIFFERS,
        "reads a response with any error as version 0 and forgets the throttle time",
    ),
    Disagreement(
        "kafka-python",
        r"ApiVersionsResponse-v[34]",
        "unpack_from requires a buffer",
        "reads a response with any error as version 0, which has no compact array",
    ),
    Disagreement(
        "aiokafka",
        r"ListOffsetsRequest-v[45]",
        ".",
        "knows no current leader epoch, which partitions have from version 4 on",
    ),
    Disagreement(
        "aiokafka",
        r"DescribeAcls(Request|Response)-v2",
        ".",
        "takes version 2 for one like version 1, but it is the first flexible one",
    ),
    Disagreement("kio", r".*Response-v\d+", r"is not a valid ErrorCode", "refuses error codes that it does not know"),
    Disagreement(
        "kio",
        r".*",
        r"Cannot parse negative timestamp|year -?\d+ is out of range",
        "makes Python's dates of timestamps",
    ),
    Disagreement("kio", r".*", r"timedelta milliseconds overflow", "has no durations of more than 2**31 milliseconds"),
]

ASKED = [
    pytest.param(library, entry, id=f"{library} {entry.id}")
    for library, opinions in OPINIONS.items()
    for entry in ENTRIES
    if (entry.name, entry.version) in opinions
]


def outcome(library: str, entry: Entry, data: bytes) -> str:
    try:
        back = OPINIONS[library][entry.name, entry.version](data)
    except Exception as error:  # noqa: BLE001  # whatever it raises, it has not read Kafka's bytes
        return str(error) or type(error).__name__
    return AGREES if back == data else DIFFERS


def samples(library: str, entry: Entry) -> Iterator[bytes]:
    for obj in Values(f"second {entry.id}").objects(entry.layout, INSTANCES):
        yield entry.layout.encode(obj)
        if library == "kio":
            make_plausible(obj)
            yield entry.layout.encode(obj)


def make_plausible(obj: Any) -> None:
    """Error codes that exist, and times of this century: a message that is refused for its error code proves no more."""
    for field in dataclasses.fields(obj):
        value = getattr(obj, field.name)
        if field.name.endswith("error_code"):
            setattr(obj, field.name, value % KNOWN_CODES)
        elif field.name.endswith("_ms") and value != -1:
            setattr(obj, field.name, value % 2**31)
        for item in value if isinstance(value, list) else (value,):
            if dataclasses.is_dataclass(item):
                make_plausible(item)


def listed(library: str, entry: Entry, does: str) -> list[Disagreement]:
    return [
        one
        for one in DISAGREEMENTS
        if one.library == library and re.fullmatch(one.entries, entry.id) and re.search(one.does, does)
    ]


@pytest.mark.parametrize(("library", "entry"), ASKED)
def test_another_codec_agrees_or_stands_in_the_list(library: str, entry: Entry) -> None:
    agreed = 0
    for data in samples(library, entry):
        does = outcome(library, entry, data)
        assert does == AGREES or listed(library, entry, does), (does, data.hex())
        agreed += does == AGREES
    assert agreed or library == "aiokafka"


@pytest.mark.parametrize("one", DISAGREEMENTS, ids=lambda one: f"{one.library} {one.why}")
def test_what_stands_in_the_list_is_still_so_and_java_is_on_our_side(releases: Releases, one: Disagreement) -> None:
    found = 0
    for entry in ENTRIES:
        if (entry.name, entry.version) not in OPINIONS[one.library] or not re.fullmatch(one.entries, entry.id):
            continue
        for data in samples(one.library, entry):
            if one in listed(one.library, entry, outcome(one.library, entry, data)):
                for kafka in releases.having(entry.name, entry.version):
                    read, back, _ = kafka.decode(entry.name, entry.version, data)
                    assert (read, back) == (len(data), data)
                found += 1
                break
    assert found, "it agrees by now; take it from the list"


def test_each_of_our_messages_has_a_second_opinion() -> None:
    assert {entry.name for entry in ENTRIES} <= {name for opinions in OPINIONS.values() for name, _ in opinions}
