"""`kafkaproto trace show`: a trace as people read it, one line for each exchange and event, or JSON lines with both messages decoded.

Must never know who recorded it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from kafkaproto.api import APIS
from kafkaproto.command_line import forget_output
from kafkaproto.error_codes import ErrorCode
from kafkaproto.trace.decoded import Decoded
from kafkaproto.trace.format import Event, Trace, TraceError, files_of

NS_PER_MS = 1_000_000


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="kafkaproto trace", description="Recorded traffic.", allow_abbrev=False)
    commands = made.add_subparsers(dest="command", required=True)
    show = commands.add_parser("show", help="print a trace, a line for each request", allow_abbrev=False)
    show.add_argument("path", type=Path, help="a file *.kptrace, or a folder with such files")
    show.add_argument("--api", help="only this API, for example Produce")
    show.add_argument("--client", help="only this client-id")
    show.add_argument(
        "--json", action="store_true", help="JSON lines, with requests and responses as Kafka's own tools write them"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    """Exit status 0; 2 for a trace that cannot be read, after what could be; 1 for one that ends in the middle of an entry."""
    options = parser().parse_args(arguments)
    names = {info.name for info in APIS.values()}
    if options.api is not None and options.api not in names:
        sys.stderr.write(f"kafkaproto trace: --api {options.api}: no such API; for example --api Produce\n")
        return 2
    status = 0
    try:
        for path in files_of(options.path):
            trace = Trace(path)
            for line in _lines(trace, options.api, options.client, options.json):
                sys.stdout.write(line + "\n")
            if trace.torn:
                sys.stderr.write(f"kafkaproto trace: {trace.torn}\n")
                status = 1
        sys.stdout.flush()
    except BrokenPipeError:  # whoever reads has seen enough
        forget_output()
    except (TraceError, OSError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"kafkaproto trace: {error}\n")
        return 2
    return status


def _lines(trace: Trace, api: str | None, client: str | None, as_json: bool) -> Iterator[str]:
    began_ns = int(trace.meta.get("at_ns", 0))
    for entry in trace.entries():
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
            for name, message in (("request", self.request), ("response", self.response)):
                told[name] = None if message is None else message.to_json(header.api_version)
        return told | ({"trouble": self.trouble} if self.trouble else {})


def _at(at_ns: int, began_ns: int) -> str:
    return f"+{(at_ns - began_ns) / 1e9:.6f}"


def _event_line(entry: Event, began_ns: int) -> str:
    facts = {k: v for k, v in entry.facts.items() if k not in ("seq", "clock_ms", "at_ns", "broker")}
    told = ", ".join(f"{name} {value}" for name, value in facts.items())
    return f"{_at(int(entry.facts.get('at_ns', began_ns)), began_ns)} broker {entry.facts.get('broker')}: {entry.kind}: {told}"


def _event_json(entry: Event) -> str:
    return json.dumps({"event": entry.kind, **entry.facts})
