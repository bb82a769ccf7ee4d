"""The commands of `kafkaproto` that need no broker: `decode`, `encode`, `show` and `apis`."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kafkaproto import primitives, releases
from kafkaproto.api import APIS
from kafkaproto.arguments import Parser
from kafkaproto.arrays import ArrayType
from kafkaproto.data import DATA, RECORDS
from kafkaproto.decode_command import decode
from kafkaproto.errors import ProtocolError
from kafkaproto.json_form import from_json, wire_name
from kafkaproto.lookup import RECORD_BATCH, CommandError, find, find_data, find_data_name, find_key, is_data, read_input
from kafkaproto.message import Message, NullableStruct
from kafkaproto.wire_type import WireType

COMMANDS = {
    "decode": "Decode a request, a response, record batches or other data of Kafka, and print it as JSON. The list\n"
    "`fields` at the end has the position of each field in the input (`offset`) and its `size`, in bytes.\n"
    "Record batches have `offset` and `size` for each batch instead.",
    "encode": "Encode a request, a response or other data of Kafka to bytes, without a header. The input is JSON:\n"
    "either only the fields of the message, or the output of `kafkaproto decode`.",
    "show": "Print the fields of an API's request and response in one version with their types, and the Python\n"
    "code that decodes and encodes them.",
    "apis": "List APIs with their keys and versions: those of this package, or those of a Kafka release.",
}
EXAMPLES = {
    "decode": [
        (
            "decode a request with its header; the length before the header may be missing",
            "kafkaproto decode --file request.bin",
        ),
        ("decode a request that is given as hex digits", "kafkaproto decode --hex 0000000c001200000000000700026d65"),
        (
            "decode a Fetch response of version 11 with its length and header",
            "kafkaproto decode --api fetch --version 11 --response --frame --file response.bin",
        ),
        (
            "decode a Metadata request of version 1 without a header",
            "kafkaproto decode --api metadata --version 1 --hex 00000000",
        ),
        (
            "decode the value of a record in __consumer_offsets that has a committed offset",
            "kafkaproto decode --data offset-commit-value --version 3 --file value.bin",
        ),
        (
            "decode the record batches in a log segment file",
            "kafkaproto decode --data record-batch --file 00000000000000000000.log",
        ),
    ],
    "encode": [
        (
            "encode a Metadata request of version 1 and print it as hex digits",
            "kafkaproto encode --api metadata --version 1 --hex --file request.json",
        ),
        (
            "encode a Fetch response that was decoded and then edited",
            "kafkaproto encode --api fetch --version 11 --response --file changed.json > response.bin",
        ),
    ],
    "show": [
        ("fields and code of Fetch version 12", "kafkaproto show fetch 12"),
        (
            "only the fields of the value of a record with a committed offset",
            "kafkaproto show offset-commit-value 3 --layout",
        ),
    ],
    "apis": [
        ("the APIs and versions that this package can decode and encode", "kafkaproto apis"),
        (
            "the APIs of Kafka 4.2, and the versions that `kafkaproto broker --release 4.2` supports",
            "kafkaproto apis --release 4.2",
        ),
        ("data other than requests and responses, for the option --data of decode", "kafkaproto apis --data"),
    ],
}

ENCODE_USAGE = """%(prog)s [-h] (--api API | --data NAME) --version N [--response]
                         [--file FILE] [--hex]"""
"""The usage line in the help of `encode`, which shows `--version` as required.

argparse would show the option as optional: it accepts a command line without the option, and then `encode` itself reports the missing version.
"""

Served = Callable[[str], Mapping[int, tuple[int, int]]]
"""A function that maps a release to the APIs that this project's broker serves with `--release`: API key to (lowest version, highest version)."""


def main(command: str, arguments: Sequence[str], served: Served | None = None) -> int:
    """Run `decode`, `encode`, `show` or `apis`. Returns exit status 0, or 2 after an error, which is printed in one line on stderr.

    command: the name of the command. arguments: the command line after this name. served: a function that returns the versions that this project's
    broker serves, for a column in the output of `apis --release`; None omits the column.
    """
    options = parser(command).parse_args(arguments)
    options.served = served
    try:
        sys.stdout.writelines(f"{line}\n" for line in RUN[command](options))
        sys.stdout.flush()
    except (ProtocolError, CommandError) as error:
        sys.stdout.flush()
        sys.stderr.write(f"kafkaproto {command}: {error}\n")
        return 2
    except BrokenPipeError:  # the reader closed the pipe
        forget_output()
    except OSError as error:  # errors of reading are reported elsewhere
        forget_output()
        sys.stderr.write(f"kafkaproto {command}: cannot write to standard output: {error.strerror}\n")
        return 2
    return 0


def forget_output() -> None:
    """Discard the buffered output after a failed write, because Python would write it at exit and report the error again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def parser(command: str) -> argparse.ArgumentParser:
    """Return the command-line parser of one command."""
    main_parser = Parser(
        prog=f"kafkaproto {command}",
        usage=ENCODE_USAGE if command == "encode" else None,
        description=COMMANDS[command],
        allow_abbrev=False,
        examples=EXAMPLES[command],
    )
    if command == "apis":
        main_parser.add_argument(
            "--release",
            metavar="RELEASE",
            help='list the APIs and versions of this Kafka release. The column "this broker" has the versions that `kafkaproto broker '
            f'--release RELEASE` supports, or "no". The releases are {", ".join(releases.releases())}',
        )
        main_parser.add_argument(
            "--data",
            action="store_true",
            help="list the other formats instead: keys and values of records in internal topics, and data inside fields of messages, such "
            "as a consumer's subscription",
        )
    if command == "show":
        main_parser.add_argument(
            "api",
            metavar="API",
            help="name or key of an API, for example fetch or 1; or a name that `kafkaproto apis --data` lists, for example "
            "offset-commit-value",
        )
        main_parser.add_argument("version", type=int, metavar="VERSION", help="version of the API or of the data")
        main_parser.add_argument("--layout", action="store_true", help="print only the fields, not the code")
    if command == "encode":
        _message_options(main_parser, is_required=True)
        main_parser.add_argument("--hex", action="store_true", help="print the bytes as hex digits")
    if command == "decode":
        _message_options(main_parser, is_required=False)
        main_parser.add_argument(
            "--hex",
            nargs="?",
            const="",
            metavar="DIGITS",
            help="DIGITS are the input, as hex digits; without DIGITS, the file or standard input contains hex digits",
        )
        front = main_parser.add_mutually_exclusive_group()
        front.add_argument(
            "--header",
            action="store_true",
            help="with --api: the input begins with the header of the request or response",
        )
        front.add_argument(
            "--frame",
            action="store_true",
            help="with --api: the input begins with the length in four bytes, and then the header",
        )
    return main_parser


def _message_options(parser: Parser, is_required: bool) -> None:
    message_group = parser.add_mutually_exclusive_group(required=is_required)
    itself = "" if is_required else " (default: the input is a request whose header has the API and version)"
    message_group.add_argument("--api", metavar="API", help=f"name or key of the API, for example fetch or 1{itself}")
    required = "" if is_required else " with --api or --data, except for record-batch"
    batch = (
        ""
        if is_required
        else ", or record-batch for record batches, from a log segment or cut out of a request or response"
    )
    message_group.add_argument(
        "--data",
        metavar="NAME",
        help="other data than a request or response: a name that `kafkaproto apis --data` lists, for example "
        f"offset-commit-value{batch}",
    )
    parser.add_argument(
        "--version", type=int, metavar="N", help=f"version of the API or of the data (required{required})"
    )
    parser.add_argument(
        "--response", action="store_true", help="with --api: the message is a response (default: a request)"
    )
    parser.add_argument("--file", type=Path, metavar="FILE", help="file to read (default: standard input)")


def encode(options: argparse.Namespace) -> Iterator[str]:
    """Encode a message given as JSON or as the output of `decode`. Writes the bytes to stdout, or with --hex yields them as hex digits.

    options: those of `kafkaproto encode`.
    """
    layout = _layout(options)
    text = read_input(options.file)
    try:
        json_value = json.loads(text)
    except ValueError as error:
        raise CommandError(f"the input is not valid JSON: {error}") from None
    except RecursionError:
        raise CommandError("the JSON input is nested deeper than any Kafka message") from None
    if isinstance(json_value, dict) and {"version", "message", "fields"} <= json_value.keys():
        json_value = json_value["message"]
    data = layout.encode(from_json(layout, json_value))
    if options.hex:
        yield data.hex()
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def _layout(options: argparse.Namespace) -> Message[Any]:
    """Return the wire layout (fields and wire types) of the message that `--api` selects, or of the other format that `--data` selects.

    Other formats are those of keys and values of records, and of bytes fields in messages. Raises CommandError if the name is unknown, the version is
    missing, or options contradict each other; UnsupportedVersion for an unknown version.
    """
    if options.version is None:
        api_or_structure = find_data_name(options.data) if options.api is None else APIS[find_key(options.api)].name
        raise CommandError(f"--version N is missing; give the version of {api_or_structure} as N")
    if options.data is None:
        api_codec = find(options.api, options.version)
        return api_codec.response if options.response else api_codec.request
    if options.response:
        raise CommandError(
            "--response cannot be combined with --data, because data has no responses; drop --response, or give --api instead of --data"
        )
    return find_data(options.data, options.version)[1]


def show(options: argparse.Namespace) -> Iterator[str]:
    """Yield lines with the fields and wire types of an API's request and response in one version.

    `options.api` may also name the format of a record's key or value, or of a bytes field in messages, such as ConsumerProtocolSubscription. The
    lines are then about this format. Without the option --layout, each list of fields is followed by the source text of the generated decoder and
    encoder.
    """
    if is_data(options.api):
        name, layout = find_data(options.api, options.version)
        yield f"{name}, version {options.version}"
        layouts = [("data", layout)]
    else:
        api_codec = find(options.api, options.version)
        headers = (
            f"request header {api_codec.request_header_version}, response header {api_codec.response_header_version}"
        )
        yield f"{api_codec.name}, key {int(api_codec.key)}, version {api_codec.version}: {headers}"
        layouts = [("request", api_codec.request), ("response", api_codec.response)]
    for kind, layout in layouts:
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
    """Return the name of a wire type in Python source, for example ``CompactNullableArray(Int32)``."""
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
    """Yield the lines of the table of APIs that `kafkaproto apis` prints.

    Columns: key, name, lowest and highest version, first flexible version. Without options, the versions are those of this package. With --release,
    they are those of a release of Kafka, and one more column has the versions that this project's broker serves when it emulates the release. With
    --data, the table lists no APIs but the other formats: those of keys and values of records (for example in `__consumer_offsets`), and of bytes
    fields in messages, such as a consumer's subscription in JoinGroup.
    """
    if options.data:
        yield from data_names(options.release)
        return
    if options.release is None:
        yield from api_table({int(key): (info.min_version, info.max_version) for key, info in APIS.items()}, None)
        return
    try:
        versions = releases.versions(options.release)
    except ValueError as error:
        raise CommandError(str(error)) from None
    yield from api_table(versions, None if options.served is None else options.served(options.release))


def api_table(offered: Mapping[int, tuple[int, int]], served: Mapping[int, tuple[int, int]] | None) -> Iterator[str]:
    """Yield the lines of the table of APIs.

    offered: maps the key of each API in the table to (lowest version, highest version). served: maps API keys to the versions that this project's
    broker serves, as (lowest version, highest version), for a column of its own; None omits this column.
    """
    marked = "" if served is None else f"{'this broker':<13}"
    yield f"{'key':>3}  {'name':<32} {'versions':<10}{marked}flexible from"
    for key, versions in sorted(offered.items()):
        info = APIS.get(key)
        first = None if info is None else info.first_flexible
        flexible = "" if first is None or first > versions[1] else first
        name = info.name if info else releases.NAMES[key]
        if served is not None:
            marked = f"{_range(served[key]) if key in served else 'no':<13}"
        yield f"{key:>3}  {name:<32} {_range(versions):<10}{marked}{flexible}".rstrip()


def _range(versions: tuple[int, int]) -> str:
    low, high = versions
    return f"{low}-{high}"


def data_names(release: str | None) -> Iterator[str]:
    """Yield the lines of a table of the formats of keys and values of records, and of bytes fields in messages.

    The columns are: the name of the format, such as ConsumerProtocolSubscription; its versions; the topic. Only formats of the keys of coordinators'
    records have a topic: the topic of these records. The version of such a key is the int16 that precedes the key. release: the value of the option
    --release, None if the option is not given. Raises CommandError if `release` is given, because --data and --release cannot be combined.
    """
    if release:
        raise CommandError(
            "--release cannot be combined with --data, because a release selects APIs, not data; drop one of the two"
        )
    topics = {key: topic for topic, records in RECORDS.items() for key, _ in records.values()}
    yield f"{'name':<42} {'versions':<8}  key in"
    for info in DATA.values():
        versions = f"{info.min_version}-{info.max_version}"
        yield f"{info.name:<42} {versions:<8}  {topics.get(info.name, '')}".rstrip()
    yield f"{RECORD_BATCH:<42} 0-2       (decode only; the bytes name their version)"


RUN: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "decode": decode,
    "encode": encode,
    "show": show,
    "apis": apis,
}
