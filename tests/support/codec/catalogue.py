"""Every version of every message, for tests that run on all of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any, NamedTuple

import pytest

from kafkaproto.api import APIS, codec
from kafkaproto.generator import SCHEMAS
from kafkaproto.generator.spec import Message as Definition
from kafkaproto.generator.spec import load, snake_case
from kafkaproto.header import REQUEST_HEADERS
from kafkaproto.message import Message
from kafkaproto.messages.response_header import LAYOUTS as RESPONSE_HEADERS


class Entry(NamedTuple):
    """One version of one message."""

    name: str
    version: int
    layout: Message[Any]

    @property
    def id(self) -> str:
        return f"{self.name}-v{self.version}"


def entries() -> Iterator[Entry]:
    """Yield all versions of all requests, responses and headers."""
    for info in APIS.values():
        for version in range(info.min_version, info.max_version + 1):
            api_codec = codec(info.key, version)
            yield Entry(f"{info.name}Request", version, api_codec.request)
            yield Entry(f"{info.name}Response", version, api_codec.response)
    for version, header in REQUEST_HEADERS.items():
        yield Entry("RequestHeader", version, header)
    for version, response_header in RESPONSE_HEADERS.items():
        yield Entry("ResponseHeader", version, response_header)


def message_names() -> list[str]:
    """Return the names of all definitions under ``schemas/``."""
    return sorted(path.stem for path in (SCHEMAS / "messages").glob("*.json"))


def definition(name: str) -> Definition:
    """Return the checked definition of a message."""
    return load(SCHEMAS / "messages" / f"{name}.json")


def data_entries() -> Iterator[Entry]:
    """Yield all versions of the data structures inside messages and records."""
    for path in sorted((SCHEMAS / "data").glob("*.json")):
        module = import_module(f"kafkaproto.data.{snake_case(path.stem)}")
        for version, layout in module.LAYOUTS.items():
            yield Entry(path.stem, version, layout)


ENTRIES = list(entries())
DATA_ENTRIES = list(data_entries())
FIRST = [entry for entry in ENTRIES if entry.version == min(e.version for e in ENTRIES if e.name == entry.name)]
"""The lowest version of each message."""
LATEST = [entry for entry in ENTRIES if entry.version == max(e.version for e in ENTRIES if e.name == entry.name)]
"""The highest version of each message."""

CORE = frozenset(
    f"{api}{kind}"
    for api in ("ApiVersions", "CreateTopics", "Example", "Fetch", "ListOffsets", "Metadata", "OffsetCommit", "Produce")
    for kind in ("Request", "Response")
)
"""Messages that together contain every kind of field."""


def core_first(entries: Iterable[Entry]) -> pytest.MarkDecorator:
    """Parametrize a slow test over `entries`: `make test` runs the newest version of each CORE message, `make test-all` runs all."""
    entries = list(entries)
    newest = {entry.name: entry.version for entry in sorted(entries, key=lambda entry: entry.version)}
    return pytest.mark.parametrize(
        "entry",
        [
            pytest.param(entry, id=entry.id, marks=() if is_core(entry, newest) else pytest.mark.slow)
            for entry in entries
        ],
    )


def is_core(entry: Entry, newest: dict[str, int]) -> bool:
    return entry.name in CORE and entry.version == newest[entry.name]
