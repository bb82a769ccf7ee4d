"""The frames of what broke a rule, field by field with the place of each: for a reader who wants to see it in the bytes.

Must never know Spark, nor the page.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from kafkaproto.api import codec
from kafkaproto.errors import ProtocolError
from kafkaproto.pipeline.sources import entries, runs_of
from kafkaproto.pipeline.trace.audit.rule import Outcome
from kafkaproto.pipeline.trace.runs import Run
from kafkaproto.places import Place, places
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Exchange, TraceError

MOST_LINES = 60
LONGEST_VALUE = 100


def exchanges(trace: Path, outcomes: Iterable[Outcome]) -> dict[str, list[str]]:
    """Number of a broken rule to request and response of its worst row, as text. What is not found again is left out."""
    wanted: dict[tuple[str, int], list[str]] = {}
    for one in outcomes:
        if one.broken and one.sample:
            wanted.setdefault((one.sample[0]["run"], one.sample[0]["seq"]), []).append(one.rule.number)
    shown: dict[str, list[str]] = {}
    of_runs = {run for run, _ in wanted}
    for run in _runs(trace) if wanted else ():
        for entry in entries(run) if run.name in of_runs else ():
            if isinstance(entry, Exchange):
                for number in wanted.get((run.name, entry.seq), ()):
                    shown[number] = list(_told(entry))
    return shown


def _runs(trace: Path) -> list[Run]:
    try:
        return runs_of(trace)[0]
    except TraceError:
        return []


def _told(entry: Exchange) -> Iterator[str]:
    """Offsets are those of the frame as the trace keeps it: records are cut to the headers of their batches."""
    seen = Decoded(entry)
    if seen.header is None:
        yield f"a request that cannot be read: {seen.trouble}"
        return
    key, version = seen.header.api_key, seen.header.api_version
    what = f"{seen.api} v{version}, correlation id {seen.header.correlation_id}, client-id {seen.client}"
    yield "\n".join([f"request: {what}", *_lines(_places(key, version, "request", entry.request, seen.request_at))])
    if entry.answered:
        answer = _places(key, seen.response_version, "response", entry.response, seen.response_at)
        yield "\n".join([f"response: {what}", *_lines(answer)])


def _places(key: int, version: int, which: str, frame: bytes, at: int) -> Iterator[Place]:
    """Raises ProtocolError, also for a version that nobody knows, whose header was read all the same."""
    yield from places(getattr(codec(key, version), which), frame, at)


def _lines(found: Iterator[Place]) -> Iterator[str]:
    try:
        for place in islice(found, MOST_LINES):
            value = str(place.value)
            yield f"{place.offset:>7} {place.size:>5}  {place.path} = {value if len(value) <= LONGEST_VALUE else value[:LONGEST_VALUE] + '…'}"
        if next(found, None) is not None:
            yield "        …"
    except ProtocolError as error:
        yield f"        cannot be read from here on: {error}"
