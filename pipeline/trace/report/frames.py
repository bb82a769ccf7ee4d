"""The decoded request and response of the worst violation of each audit rule, field by field with byte offsets, for the report.

This module does not depend on Spark or on the HTML page of the report.
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

MAX_LINES = 60
MAX_VALUE_LENGTH = 100


def exchanges(trace: Path, outcomes: Iterable[Outcome]) -> dict[str, list[str]]:
    """Return two texts for each broken rule, by number of the rule: the decoded request and response of the worst violation of the rule.

    If the trace lacks the response, or the header of the request cannot be decoded, there is only one text. trace: the file or folder that is
    searched for these requests. outcomes: the results of the rules. A rule whose request is not found is left out.
    """
    rules_by_exchange: dict[tuple[str, int], list[str]] = {}
    for outcome in outcomes:
        if outcome.broken and outcome.sample:
            rules_by_exchange.setdefault((outcome.sample[0]["run"], outcome.sample[0]["seq"]), []).append(
                outcome.rule.number
            )
    texts: dict[str, list[str]] = {}
    run_names = {run for run, _ in rules_by_exchange}
    for run in _runs(trace) if rules_by_exchange else ():
        for entry in entries(run) if run.name in run_names else ():
            if isinstance(entry, Exchange):
                for number in rules_by_exchange.get((run.name, entry.seq), ()):
                    texts[number] = list(_exchange_texts(entry))
    return texts


def _runs(trace: Path) -> list[Run]:
    try:
        return runs_of(trace)[0]
    except TraceError:
        return []


def _exchange_texts(entry: Exchange) -> Iterator[str]:
    """Yield two texts, which list the fields of a request and of its response, each field with its byte offset in the recorded frame.

    entry: the recorded request and response. A trace does not store records, only the headers of their batches, so offsets after records are lower
    than in the original frame. A request whose header cannot be decoded yields one text with the reason; a request without a response yields only
    its own text.
    """
    decoded = Decoded(entry)
    if decoded.header is None:
        yield f"a request that cannot be decoded: {decoded.problem}"
        return
    key, version = decoded.header.api_key, decoded.header.api_version
    title = f"{decoded.api} v{version}, correlation id {decoded.header.correlation_id}, client-id {decoded.client}"
    yield "\n".join([f"request: {title}", *_lines(_fields(key, version, "request", entry.request, decoded.request_at))])
    if entry.answered:
        fields = _fields(key, decoded.response_version, "response", entry.response, decoded.response_at)
        yield "\n".join([f"response: {title}", *_lines(fields)])


def _fields(key: int, version: int, kind: str, frame: bytes, offset: int) -> Iterator[Place]:
    """Yield each field of the body of a frame, with its path, byte offset, size and value. kind: "request" or "response".

    key, version: API key and version of the frame. offset: byte position in the frame at which the body begins. Raises ProtocolError while
    iterating if the frame cannot be decoded, or if its API version is unknown.
    """
    yield from places(getattr(codec(key, version), kind), frame, offset)


def _lines(fields: Iterator[Place]) -> Iterator[str]:
    try:
        for field in islice(fields, MAX_LINES):
            value = str(field.value)
            yield f"{field.offset:>7} {field.size:>5}  {field.path} = {value if len(value) <= MAX_VALUE_LENGTH else value[:MAX_VALUE_LENGTH] + '…'}"
        if next(fields, None) is not None:
            yield "        …"
    except ProtocolError as error:
        yield f"        cannot be decoded from here on: {error}"
