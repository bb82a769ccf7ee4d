"""`kafkaproto decode`, `encode`, `show` and `apis`: messages as people read them. This module must never know a broker."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from kafkaproto import primitives, releases
from kafkaproto.api import APIS, Codec, codec
from kafkaproto.arrays import ArrayType
from kafkaproto.coordinator_records import data_class
from kafkaproto.data import DATA, RECORDS
from kafkaproto.errors import ProtocolError
from kafkaproto.json_form import from_json, to_json, wire_name
from kafkaproto.message import Message, NullableStruct
from kafkaproto.messages.request_header import LAYOUTS as REQUEST_HEADERS
from kafkaproto.messages.response_header import LAYOUTS as RESPONSE_HEADERS
from kafkaproto.places import places
from kafkaproto.wire_type import WireType

COMMANDS = {
    "decode": "bytes to JSON, with the offset of every field",
    "encode": "JSON to bytes",
    "show": "the layout of a version, and the code made from it",
    "apis": "API keys and versions, of this codec or of a Kafka release",
}


class CommandError(ValueError):
    """What was asked for cannot be done; the message is all that is printed."""


def main(command: str, arguments: Sequence[str]) -> int:
    """Run one command. Exit status 0, or 2 with one line on stderr."""
    options = parser(command).parse_args(arguments)
    try:
        sys.stdout.writelines(f"{line}\n" for line in RUN[command](options))
        sys.stdout.flush()
    except (ProtocolError, CommandError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"kafkaproto {command}: {error}\n")
        return 2
    except BrokenPipeError:  # whoever reads has seen enough
        forget_output()
    except OSError as error:  # reading says it itself
        forget_output()
        sys.stderr.write(f"kafkaproto {command}: cannot write: {error.strerror}\n")
        return 2
    return 0


def forget_output() -> None:
    """What is still to be written goes nowhere, or Python would complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser(command: str) -> argparse.ArgumentParser:
    """The options of one command."""
    made = argparse.ArgumentParser(prog=f"kafkaproto {command}", description=COMMANDS[command], allow_abbrev=False)
    if command == "apis":
        made.add_argument("--release", help=f"a release of Kafka: {', '.join(releases.releases())}")
        made.add_argument("--data", action="store_true", help="what travels inside messages and records instead")
    if command == "show":
        made.add_argument("api", help="name or key, for example fetch; or what travels inside: offset-commit-value")
        made.add_argument("version", type=int)
        made.add_argument("--layout", action="store_true", help="the layout only, without the code made from it")
    if command in ("decode", "encode"):
        which = made.add_mutually_exclusive_group(required=True)
        which.add_argument("--api", help="name or key, for example fetch")
        which.add_argument("--data", help="what travels inside messages and records, for example offset-commit-value")
        made.add_argument("--version", required=True, type=int)
        made.add_argument("--response", action="store_true", help="a response; else it is a request")
        made.add_argument("--file", type=Path, help="where to read from; else standard input")
    if command == "decode":
        made.add_argument(
            "--hex", nargs="?", const="", help="the bytes as hex digits; without a value, the file holds hex digits"
        )
        made.add_argument("--header", action="store_true", help="the header of the request or response is in front")
    if command == "encode":
        made.add_argument("--hex", action="store_true", help="print hex digits, not bytes")
    return made


def find(api: str, version: int) -> Codec:
    """The codec of an API that a person named: ``fetch``, ``Fetch``, ``list-offsets``, ``1``. Raises CommandError."""
    for key, info in APIS.items():
        if _plain(api) in (info.name.lower(), str(int(key))):
            return codec(key, version)
    raise CommandError(f"no API is called {api!r}; `kafkaproto apis` lists them")


def find_data(name: str, version: int) -> tuple[str, Message[Any]]:
    """Name and layout of what travels inside messages or records. Raises CommandError, UnsupportedVersion."""
    for info in DATA.values():
        if _plain(name) == info.name.lower():
            return info.name, data_class(info.name).layout(version)
    raise CommandError(f"nothing is called {name!r}; `kafkaproto apis --data` lists what there is")


def _plain(name: str) -> str:
    return re.sub("[-_ ]", "", name).lower()


def _subject(options: argparse.Namespace) -> tuple[dict[str, Any], Message[Any]]:
    """What is decoded or encoded, as JSON tells of it, and its layout."""
    if options.data:
        if options.response or getattr(options, "header", False):
            raise CommandError(
                "--response and --header belong to an API; what --data names is neither and has no header"
            )
        name, layout = find_data(options.data, options.version)
        return {"data": name, "version": options.version}, layout
    found = find(options.api, options.version)
    kind = "response" if options.response else "request"
    return {"api": found.name, "kind": kind, "version": found.version}, getattr(found, kind)


def decode(options: argparse.Namespace) -> Iterator[str]:
    """JSON: the message, and every piece of it with its offset and size."""
    told, layout = _subject(options)
    data = _bytes(options)
    start = 0
    pieces: list[Any] = []
    if options.header:
        header = _header(find(options.api, options.version), options.response)
        told["header"], start = _read(header, data, 0)
        pieces += places(header, data)
    told["message"], end = _read(layout, data, start)
    pieces += places(layout, data, start)
    if end < len(data):
        told["left"] = len(data) - end
    yield json.dumps(told, indent=2)[:-2] + ',\n  "fields": ['
    rows = [json.dumps({"offset": p.offset, "size": p.size, "path": p.path, "value": p.value}) for p in pieces]
    yield from (f"    {row}{',' if i < len(rows) - 1 else ''}" for i, row in enumerate(rows))
    yield "  ]\n}"


def _read(layout: Message[Any], data: bytes, start: int) -> tuple[Any, int]:
    obj, end = layout.decode_flat(memoryview(data), start, len(data))
    return to_json(layout, obj), end


def _header(found: Codec, response: bool) -> Message[Any]:
    return (
        RESPONSE_HEADERS[found.response_header_version] if response else REQUEST_HEADERS[found.request_header_version]
    )


def _bytes(options: argparse.Namespace) -> bytes:
    if options.hex:
        return _unhex(options.hex)
    data = _input(options.file)
    return data if options.hex is None else _unhex(data.decode("ascii", "replace"))


def _input(file: Path | None) -> bytes:
    try:
        return file.read_bytes() if file else sys.stdin.buffer.read()
    except OSError as error:
        raise CommandError(f"{file}: {error.strerror}") from None


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(re.sub(r"\s|:|0x", "", text))
    except ValueError:
        raise CommandError("these are no hex digits, two for each byte") from None


def encode(options: argparse.Namespace) -> Iterator[str]:
    """The bytes of a message that is given as JSON; what `decode` printed will do too."""
    _, layout = _subject(options)
    text = _input(options.file)
    try:
        given = json.loads(text)
    except ValueError as error:
        raise CommandError(f"this is no JSON: {error}") from None
    except RecursionError:
        raise CommandError("this JSON is nested deeper than any message") from None
    if isinstance(given, dict) and {"version", "message", "fields"} <= given.keys():
        given = given["message"]
    data = layout.encode(from_json(layout, given))
    if options.hex:
        yield data.hex()
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def show(options: argparse.Namespace) -> Iterator[str]:
    """The layouts of request and response of one version, or of what travels inside."""
    if _plain(options.api) in {name.lower() for name in DATA}:
        name, layout = find_data(options.api, options.version)
        yield f"{name}, version {options.version}"
        shown = [("data", layout)]
    else:
        found = find(options.api, options.version)
        headers = f"request header {found.request_header_version}, response header {found.response_header_version}"
        yield f"{found.name}, key {int(found.key)}, version {found.version}: {headers}"
        shown = [("request", found.request), ("response", found.response)]
    for kind, layout in shown:
        yield f"\n{kind}"
        yield from _layout_lines(layout, 1)
        if not options.layout:
            yield f"\n{layout.decoder_text()[0]}\n{layout.encoder_text()[0]}".rstrip()


def _layout_lines(layout: Message[Any], depth: int) -> Iterator[str]:
    for name, kind in layout.fields:
        yield from _field_lines(wire_name(layout, name), kind, depth)
    for field in layout.tags.fields if layout.tags else ():
        yield from _field_lines(f"{wire_name(layout, field.name)} (tag {field.tag})", field.type, depth)
    if layout.tags:
        yield f"{'  ' * depth}(tags)"


def _field_lines(name: str, kind: WireType, depth: int) -> Iterator[str]:
    inner: WireType = kind
    while isinstance(inner, ArrayType | NullableStruct):
        inner = inner.item if isinstance(inner, ArrayType) else inner.struct
    yield f"{'  ' * depth}{name}: {type_name(kind)}"
    if isinstance(inner, Message):
        yield from _layout_lines(inner, depth + 1)


def type_name(kind: WireType) -> str:
    """A wire type as a layout in ``kafkaproto.messages`` writes it."""
    match kind:
        case Message():
            return str(kind.cls.__name__)
        case NullableStruct():
            return f"{type(kind).__name__}({type_name(kind.struct)})"
        case ArrayType():
            prefix = ("Compact" if kind.compact else "") + ("Nullable" if kind.nullable else "")
            return f"{prefix}Array({type_name(kind.item)})"
    return next(name for name, value in vars(primitives).items() if value is kind)


def apis(options: argparse.Namespace) -> Iterator[str]:
    """A table: key, name, versions, the first flexible one."""
    if options.data:
        yield from data_names(options.release)
        return
    try:
        offered = releases.versions(options.release) if options.release is not None else None
    except ValueError as error:
        raise CommandError(str(error)) from None
    if offered is None:
        offered = {int(key): (info.min_version, info.max_version) for key, info in APIS.items()}
    yield f"{'key':>3}  {'name':<32} {'versions':<8}  flexible from"
    for key, (low, high) in sorted(offered.items()):
        info = APIS.get(key)
        flexible = (
            "" if info is None or info.first_flexible is None or info.first_flexible > high else info.first_flexible
        )
        name = info.name if info else releases.NAMES[key]
        yield f"{key:>3}  {name:<32} {f'{low}-{high}':<8}  {flexible}".rstrip()


def data_names(release: str | None) -> Iterator[str]:
    """A table of what travels inside: name, versions; for keys of a coordinator's topic the version is the number in front."""
    if release:
        raise CommandError("--data is not known by release; leave one of the two away")
    topics = {key: topic for topic, records in RECORDS.items() for key, _ in records.values()}
    yield f"{'name':<42} {'versions':<8}  key in"
    for info in DATA.values():
        versions = f"{info.min_version}-{info.max_version}"
        yield f"{info.name:<42} {versions:<8}  {topics.get(info.name, '')}".rstrip()


RUN: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "decode": decode,
    "encode": encode,
    "show": show,
    "apis": apis,
}
