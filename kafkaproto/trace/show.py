"""`kafkaproto trace show`: a trace as people read it, one line for each exchange and event, or JSON lines with both messages decoded.
States, of which there may be one for each produce, are shown where they are asked for.

Must never know who recorded it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from kafkaproto.error_codes import ErrorCode
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Event, State
from kafkaproto.trace.reading import Trace, files_of

NS_PER_MS = 1_000_000


def run(options: argparse.Namespace) -> int:
    """Exit status 0; 1 for a trace that ends in the middle of an entry. Raises TraceError and OSError, after what could be read."""
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
        seen = Seen(entry)
        if (api is None or seen.api == api) and (client is None or seen.client == client):
            yield json.dumps(seen.as_json()) if as_json else seen.line(began_ns)


class Seen(Decoded):
    """An exchange as it is shown."""

    def line(self, began_ns: int) -> str:
        one, header = self.entry, self.header
        version = "" if header is None else f" v{header.api_version} #{header.correlation_id}"
        took_ms = (one.ready_ns - one.received_ns) / NS_PER_MS
        answer = f"{one.response_bytes} B out" if one.answered else "no answer"
        parts = [f"{self.api}{version}, {one.request_bytes} B in, {answer}, {took_ms:.3f} ms"]
        if one.throttle_ms:
            parts.append(f"{'held back' if one.held else 'throttled'} {one.throttle_ms} ms")
        if one.closes:
            parts.append("closes")
        errors = sorted(set(self.errors()))
        parts += [ErrorCode(code).name if code in ErrorCode._value2member_map_ else str(code) for code in errors]
        if self.trouble:
            parts.append(f"cannot be read: {self.trouble}")
        return f"{_at(one.received_ns, began_ns)} broker {one.broker} connection {one.connection} {self.client}: {', '.join(parts)}"

    def as_json(self) -> dict[str, Any]:
        told = self.entry._asdict()
        for name in ("request", "response"):
            told.pop(name)
        header = self.header
        if header is not None:
            told |= {"api": self.api, "version": header.api_version, "client_id": header.client_id}
            told["correlation_id"] = header.correlation_id
            asked, answered = header.api_version, self.response_version
            for name, message, version in (("request", self.request, asked), ("response", self.response, answered)):
                told[name] = None if message is None else message.to_json(version)
        return told | ({"trouble": self.trouble} if self.trouble else {})


def _at(at_ns: int, began_ns: int) -> str:
    return f"+{(at_ns - began_ns) / 1e9:.6f}"


def _state_lines(entry: State, began_ns: int) -> Iterator[str]:
    for one in entry.logs:
        where = f"{_at(entry.at_ns, began_ns)} broker {entry.broker}: {one.topic}-{one.partition}"
        yield f"{where}: high watermark {one.high_watermark}, stable {one.last_stable_offset}, log {one.log_start} to {one.log_end}"


def _state_json(entry: State) -> Iterator[str]:
    told = entry._asdict()
    told.pop("logs")
    for one in entry.logs:
        yield json.dumps({"state": one.topic, **told, **one._asdict()})


def _event_line(entry: Event, began_ns: int) -> str:
    facts = {k: v for k, v in entry.facts.items() if k not in ("seq", "clock_ms", "at_ns", "broker")}
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    return f"{_at(int(entry.facts.get('at_ns', began_ns)), began_ns)} broker {entry.facts.get('broker')}: {entry.kind}: {told}"


def _event_json(entry: Event) -> str:
    return json.dumps({"event": entry.kind, **entry.facts})
