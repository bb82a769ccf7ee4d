"""Clients of ``Oracle.java`` and ``Conversions.java``: Java processes that answer one line per question."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafkaproto.arrays import ArrayType
from kafkaproto.generator.refresh import served
from kafkaproto.json_form import wire_name
from kafkaproto.message import Message, NullableStruct
from kafkaproto.primitives import RecordsType
from kafkaproto.versions import NO_VERSIONS, VersionRange
from kafkaproto.wire_type import WireType

JAVA_FLAGS = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", "-Xmx256m")


Decoded = tuple[int, bytes, dict[str, Any]]
"""Number of bytes read, the bytes that Kafka writes for the message, and the message as JSON."""


class Refused(Exception):
    """An exception of Kafka's classes; the text is Java's."""


class Process:
    """A Java program that answers line by line. Use as a context manager; questions raise Refused."""

    program: str

    def __init__(self, jars: Path) -> None:
        command = ["java", *JAVA_FLAGS, "-cp", f"{jars}/*", str(Path(__file__).with_name(self.program))]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.process.communicate(timeout=20)

    def ask(self, *words: object) -> str:
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write((" ".join(map(str, words)) + "\n").encode())
        self.process.stdin.flush()
        line = self.process.stdout.readline().decode().rstrip("\n")
        if line.startswith("! "):
            raise Refused(line[2:])
        assert line or self.process.poll() is None, "the Java process has exited; see its standard error"
        return line


class Oracle(Process):
    """Kafka's own message and record classes."""

    program = "Oracle.java"

    def encode(self, name: str, version: int, fields: dict[str, Any]) -> bytes:
        """Return the bytes that Kafka writes for a message given as Kafka's JSON."""
        return bytes.fromhex(self.ask("enc", name, version, json.dumps(fields)))

    def decode(self, name: str, version: int, data: bytes) -> Decoded:
        """Return the number of bytes that Kafka reads, the bytes that it writes back, and the message as JSON."""
        return _decoded(self.ask("dec", name, version, data.hex()))

    def many(
        self, name: str, version: int, messages: list[dict[str, Any]], sent: list[bytes]
    ) -> list[tuple[bytes, Decoded]]:
        """Encode each JSON message and decode the bytes at the same index, all in one question."""
        pairs = [[fields, data.hex()] for fields, data in zip(messages, sent, strict=True)]
        results = json.loads(self.ask("many", name, version, json.dumps(pairs, separators=(",", ":"))))
        return [(bytes.fromhex(written), _decoded(read)) for written, read in results]

    def move(self, name: str, version: int, other: int, data: bytes) -> bytes:
        """Decode a message in one version and return the bytes that Kafka writes in another version."""
        return bytes.fromhex(self.ask("move", name, version, f"{other},{data.hex()}"))

    def layouts(self, name: str) -> dict[str, Any]:
        """Return Kafka's ``SCHEMA_n`` constants by version, as trees."""
        return dict(json.loads(self.ask("layouts", name)))

    def batch(self, spec: dict[str, Any]) -> bytes:
        """Return a record batch built by Kafka, of any magic."""
        return bytes.fromhex(self.ask("batch", json.dumps(spec, separators=(",", ":"))))

    def records(self, data: bytes) -> list[dict[str, Any]]:
        """Return the batches that Kafka reads, with verified checksums."""
        return list(json.loads(self.ask("records", data.hex())))

    def end_txn_marker(self, spec: dict[str, Any]) -> bytes:
        """Return the control batch that ends a transaction."""
        return bytes.fromhex(self.ask("marker", json.dumps(spec, separators=(",", ":"))))


class Conversions(Process):
    """The conversions of a 3.x broker for clients that support only old magics."""

    program = "Conversions.java"

    def down_convert(self, data: bytes, magic: int, first_offset: int = 0) -> bytes:
        """Return the records field that a broker sends for an old fetch request."""
        return bytes.fromhex(self.ask("down", magic, first_offset, data.hex()))

    def up_convert(self, spec: dict[str, Any]) -> bytes:
        """Return the batch that a broker's LogValidator makes of old messages."""
        return bytes.fromhex(self.ask("up", json.dumps(spec, separators=(",", ":"))))


def _decoded(answer: str) -> Decoded:
    read, rewritten, fields = answer.split(" ", 2)
    return int(read), bytes.fromhex(rewritten), json.loads(fields)


class Releases:
    """Two releases of Kafka, with the message versions that each has. A single question goes to the older release if it has the version."""

    def __init__(self, *releases: tuple[Oracle, Path]) -> None:
        """Start one process per release. Its kafka-clients jar defines which versions are stable."""
        self.all = [(oracle, versions_in(jar)) for oracle, jar in releases]

    def having(self, name: str, *versions: int) -> list[Oracle]:
        """Return the releases that have all these versions."""
        return [oracle for oracle, has in self.all if all(v in has.get(name, NO_VERSIONS) for v in versions)]

    def decode(self, name: str, version: int, data: bytes) -> Decoded:
        return self._that_has(name, version).decode(name, version, data)

    def _that_has(self, name: str, version: int) -> Oracle:
        layouts = self.having(name, version)
        assert layouts, f"no release has {name} v{version}"
        return layouts[0]


def versions_in(jar: Path) -> dict[str, VersionRange]:
    """Return the stable versions of each message in a jar."""
    return {name: VersionRange.parse(api_json["validVersions"]) for name, api_json in served(jar).items()}


def without_records(layout: Message[Any], fields: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON as Kafka writes it, which only says whether record bytes are null."""
    kinds = [*layout.fields, *((f.name, f.type) for f in (layout.tags.fields if layout.tags else ()))]
    named = {wire_name(layout, name): kind for name, kind in kinds}
    return {name: _blank(named[name], value) for name, value in fields.items()}


def _blank(kind: WireType, value: Any) -> Any:
    if value is None:
        return None
    match kind:
        case RecordsType():
            return ""
        case Message():
            return without_records(kind, value)
        case NullableStruct():
            return without_records(kind.struct, value)
        case ArrayType():
            return [_blank(kind.item, item) for item in value]
    return value
