"""Command `kafkaproto trace show`: prints a trace, one line per request or event, or as JSON lines with decoded messages.

Entries with the offsets of logs (`State`), of which a trace may have one for each Produce request, are printed only with the option `--state`.
This module does not depend on the recorder.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from typing import Any

from kafkaproto.error_codes import ErrorCode
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Event, State
from kafkaproto.trace.reading import Trace, files_of

NS_PER_MS = 1_000_000


def run(options: argparse.Namespace) -> int:
    """Print a trace (`kafkaproto trace show`). Returns the exit status: 0, or 1 if the trace ends in the middle of an entry.

    Raises TraceError and OSError, after printing the entries before the error.
    """
    status = 0
    for path in files_of(options.path):
        trace = Trace(path)
        for line in _lines(trace, options):
            sys.stdout.write(line + "\n")
        if trace.torn:
            sys.stderr.write(f"kafkaproto trace: {trace.torn}\n")
            status = 1
    return status


def _lines(trace: Trace, options: argparse.Namespace) -> Iterator[str]:
    api, client, as_json = options.api, options.client, options.json
    began_ns = int(trace.meta.get("at_ns", 0))
    for entry in trace.entries():
        if isinstance(entry, State):
            if options.state:
                yield from _state_json(entry) if as_json else _state_lines(entry, began_ns)
            continue
        if isinstance(entry, Event):
            if api is None and client is None:
                yield _event_json(entry) if as_json else _event_line(entry, began_ns)
            continue
        exchange = Seen(entry)
        if (api is None or exchange.api == api) and (client is None or exchange.client == client):
            yield json.dumps(exchange.as_json()) if as_json else exchange.line(began_ns)


class Seen(Decoded):
    """A recorded request and its response (an exchange), decoded for printing as a line of text or as JSON."""

    def line(self, began_ns: int) -> str:
        entry, header = self.entry, self.header
        version = "" if header is None else f" v{header.api_version} #{header.correlation_id}"
        took_ms = (entry.ready_ns - entry.received_ns) / NS_PER_MS
        response = f"{entry.response_bytes} B out" if entry.answered else "no response"
        parts = [f"{self.api}{version}, {entry.request_bytes} B in, {response}, {took_ms:.3f} ms"]
        if entry.throttle_ms:
            parts.append(f"{'held back' if entry.held else 'throttled'} {entry.throttle_ms} ms")
        if entry.closes:
            parts.append("closes")
        errors = sorted(set(self.errors()))
        parts += [ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code) for code in errors]
        if self.problem:
            parts.append(f"cannot be read: {self.problem}")
        return f"{_at(entry.received_ns, began_ns)} broker {entry.broker} connection {entry.connection} {self.client}: {', '.join(parts)}"

    def as_json(self) -> dict[str, Any]:
        fields = self.entry._asdict()
        for name in ("request", "response"):
            fields.pop(name)
        header = self.header
        if header is not None:
            fields |= {"api": self.api, "version": header.api_version, "client_id": header.client_id}
            fields["correlation_id"] = header.correlation_id
            versions = header.api_version, self.response_version
            for name, message, version in zip(
                ("request", "response"), (self.request, self.response), versions, strict=True
            ):
                fields[name] = None if message is None else message.to_json(version)
        return fields | ({"problem": self.problem} if self.problem else {})


def _at(at_ns: int, began_ns: int) -> str:
    return f"+{(at_ns - began_ns) / 1e9:.6f}"


def _state_lines(entry: State, began_ns: int) -> Iterator[str]:
    for log in entry.logs:
        prefix = f"{_at(entry.at_ns, began_ns)} broker {entry.broker}: {log.topic}-{log.partition}"
        yield f"{prefix}: high watermark {log.high_watermark}, stable {log.last_stable_offset}, log {log.log_start} to {log.log_end}"


def _state_json(entry: State) -> Iterator[str]:
    fields = entry._asdict()
    fields.pop("logs")
    for log in entry.logs:
        yield json.dumps({"state": log.topic, **fields, **log._asdict()})


def _event_line(entry: Event, began_ns: int) -> str:
    facts = {k: v for k, v in entry.facts.items() if k not in ("seq", "clock_ms", "at_ns", "broker")}
    text = " ".join(f"{'reason' if name == 'why' else name}={_value(value)}" for name, value in facts.items())
    return f"{_at(int(entry.facts.get('at_ns', began_ns)), began_ns)} broker {entry.facts.get('broker')}: {entry.kind}: {text}"


def _value(value: Any) -> str:
    """Return a value as JSON. A string that contains only word characters and `.:<>-` is returned without quotes."""
    if isinstance(value, str) and re.fullmatch(r"[\w.:<>-]+", value):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _event_json(entry: Event) -> str:
    return json.dumps({"event": entry.kind, **entry.facts})
