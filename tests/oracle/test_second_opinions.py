"""Three other Python codecs read and write the bytes that kafkaproto writes and reads; Java decides where they disagree.

Messages contain no unknown tagged fields, because these codecs drop or reject them.
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
"""kio knows all error codes below this one."""
AGREES, DIFFERS = "agrees", "writes other bytes"


class Disagreement(NamedTuple):
    """A known disagreement: library, messages (a pattern of entry ids), its outcome (a pattern), and why it is wrong."""

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

COMPARED = [
    pytest.param(library, entry, id=f"{library} {entry.id}")
    for library, opinions in OPINIONS.items()
    for entry in ENTRIES
    if (entry.name, entry.version) in opinions
]


def outcome(library: str, entry: Entry, data: bytes) -> str:
    try:
        rewritten = OPINIONS[library][entry.name, entry.version](data)
    except Exception as error:  # noqa: BLE001  # any error means that it could not read Kafka's bytes
        return str(error) or type(error).__name__
    return AGREES if rewritten == data else DIFFERS


def samples(library: str, entry: Entry) -> Iterator[bytes]:
    for obj in Values(f"second {entry.id}").objects(entry.layout, INSTANCES):
        yield entry.layout.encode(obj)
        if library == "kio":
            make_plausible(obj)
            yield entry.layout.encode(obj)


def make_plausible(obj: Any) -> None:
    """Set valid error codes and times of this century: a message rejected for its error code proves nothing else."""
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
        disagreement
        for disagreement in DISAGREEMENTS
        if disagreement.library == library
        and re.fullmatch(disagreement.entries, entry.id)
        and re.search(disagreement.does, does)
    ]


@pytest.mark.parametrize(("library", "entry"), COMPARED)
def test_python_kafka_libraries_decode_like_kafkaproto_except_for_listed_differences(
    library: str, entry: Entry
) -> None:
    agreed = 0
    for data in samples(library, entry):
        does = outcome(library, entry, data)
        assert does == AGREES or listed(library, entry, does), (does, data.hex())
        agreed += does == AGREES
    assert agreed or library == "aiokafka"


@pytest.mark.parametrize(
    "disagreement", DISAGREEMENTS, ids=lambda disagreement: f"{disagreement.library} {disagreement.why}"
)
def test_kafka_decodes_messages_that_kafka_python_aiokafka_or_kio_decode_wrongly(
    releases: Releases, disagreement: Disagreement
) -> None:
    disagreements = 0
    for entry in ENTRIES:
        if (entry.name, entry.version) not in OPINIONS[disagreement.library] or not re.fullmatch(
            disagreement.entries, entry.id
        ):
            continue
        for data in samples(disagreement.library, entry):
            if disagreement in listed(disagreement.library, entry, outcome(disagreement.library, entry, data)):
                for kafka in releases.having(entry.name, entry.version):
                    read, rewritten, _ = kafka.decode(entry.name, entry.version, data)
                    assert (read, rewritten) == (len(data), data)
                disagreements += 1
                break
    assert disagreements, "the library agrees now; remove the entry"


def test_every_message_is_supported_by_at_least_one_other_python_kafka_library() -> None:
    assert {entry.name for entry in ENTRIES} <= {name for opinions in OPINIONS.values() for name, _ in opinions}
