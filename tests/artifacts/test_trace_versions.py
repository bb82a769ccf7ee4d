"""Traces of the format versions 2 to 4: the current reader finds in them what the reader of the commit that wrote them found."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from kafkaproto.trace.format import Event, Exchange
from kafkaproto.trace.reading import Trace, files_of
from tests.artifacts.holding import expected, unpack
from tests.artifacts.make_versions import EXPECTED

VERSIONS = {"trace-2": 2, "trace": 3, "groups": 3, "transactions": 4}
"""The format version of the trace in each artifact."""
PRODUCE = bytes(2)
"""The first bytes of the request frame of a Produce: its API key."""


@pytest.mark.parametrize("name", VERSIONS)
def test_trace_of_an_older_format_version_yields_the_entries_that_were_written(name: str, tmp_path: Path) -> None:
    facts = expected(EXPECTED)[name]
    [path] = files_of(unpack(name, tmp_path) / "trace")
    trace = Trace(path)
    entries = list(trace.entries())
    assert trace.version == facts["version"] == VERSIONS[name] and not trace.torn
    assert Counter(type(entry).__name__ for entry in entries) == facts["entries"]
    exchanges = [entry for entry in entries if isinstance(entry, Exchange)]
    assert Counter(str(int.from_bytes(exchange.request[:2], "big")) for exchange in exchanges) == facts["requests"]
    assert sum(exchange.throttle_ms > 0 for exchange in exchanges) == facts["throttled"]
    produced = next(exchange for exchange in exchanges if exchange.request.startswith(PRODUCE))
    fields = {field: value.hex() if isinstance(value, bytes) else value for field, value in produced._asdict().items()}
    assert json.loads(json.dumps(fields)) == {"wait_ns": -1} | facts["first_produce"]
    events = [entry for entry in entries if isinstance(entry, Event)]
    renamed = {kind.replace("trouble", "problem"): count for kind, count in facts["events"].items()}
    assert Counter(event.kind for event in events) == renamed
    assert events[-1].facts == facts["last_event"]
