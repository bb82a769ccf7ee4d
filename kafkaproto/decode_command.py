"""`kafkaproto decode`: prints a message, a whole frame or record batches as JSON, with the byte offset of every field.

This module does not depend on the broker.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from kafkaproto.api import APIS, Codec, codec
from kafkaproto.errors import DecodeError, UnsupportedVersion
from kafkaproto.frame import LENGTH_BYTES, frame_length
from kafkaproto.header import decode_request_header, response_version
from kafkaproto.json_form import camel_case, to_json
from kafkaproto.lookup import RECORD_BATCH, CommandError, find, find_data, find_data_name, find_key, plain, read_input
from kafkaproto.message import Message
from kafkaproto.messages.request_header import LAYOUTS as REQUEST_HEADERS
from kafkaproto.messages.response_header import LAYOUTS as RESPONSE_HEADERS
from kafkaproto.places import places
from kafkaproto.records.entries import batches, check_crc, complete_bytes, records
from kafkaproto.records.record import Record


def decode(options: argparse.Namespace) -> Iterator[str]:
    """Yield the lines of JSON that `kafkaproto decode` prints.

    Raises CommandError for options that cannot be combined or input that is too short, UnsupportedVersion for an unknown API or version, and
    DecodeError for damaged input.
    """
    _check(options)
    data = _bytes(options)
    if options.data is not None:
        return _data(options, data)
    if options.api is None:
        return _request_frame(data)
    api_codec = find(options.api, options.version)
    if options.frame:
        length = frame_length(data)
        if length is None or length > len(data) - LENGTH_BYTES:
            raise CommandError(
                f"the frame is incomplete: the input has {len(data)} bytes, but the frame needs {LENGTH_BYTES} bytes for its length "
                f"and {length or 0} bytes after it; drop --frame if the input does not begin with a length"
            )
        data, bytes_left = data[: LENGTH_BYTES + length], len(data) - LENGTH_BYTES - length
        return _parts(api_codec, options.response, data, LENGTH_BYTES, with_header=True, left=bytes_left)
    return _parts(api_codec, options.response, data, 0, with_header=options.header)


def _check(options: argparse.Namespace) -> None:
    """Raise CommandError for options of `kafkaproto decode` that exclude each other, or that need another option that is missing."""
    is_batch = options.data is not None and plain(options.data) == RECORD_BATCH.lower()
    if options.data is not None and (options.response or options.header or options.frame):
        raise CommandError(
            "--response, --header and --frame cannot be combined with --data: only requests and responses have a header; "
            "drop these options, or give --api instead of --data"
        )
    if options.api is not None:
        key = find_key(options.api)
        if options.version is None:
            raise CommandError(
                f"--version N is missing; give the version of {APIS[key].name} as N, or drop --api if the input is a whole request frame"
            )
    elif options.data is not None and not is_batch:
        name = find_data_name(options.data)
        if options.version is None:
            raise CommandError(f"--version N is missing; give the version of {name} as N")
    if options.version is not None and (is_batch or (options.api is None and options.data is None)):
        raise CommandError(
            "drop --version, because the version stands in the input: "
            "whole request frames and record batches contain their version"
        )
    if options.response and options.api is None:
        raise CommandError(
            "--response needs --api API and --version N of the request, because a response contains neither"
        )


# ---- frames ------------------------------------------------------------------------------------------------------------------------


def _request_frame(data: bytes) -> Iterator[str]:
    """Yield the lines of JSON for the request in `data`, whose header has API and version. A length prefix may precede the header."""
    length = int.from_bytes(data[:LENGTH_BYTES], "big", signed=True)
    if len(data) < LENGTH_BYTES or length < 0:
        return _request(data, 0)
    bytes_left = len(data) - LENGTH_BYTES - length
    payload = data[LENGTH_BYTES : LENGTH_BYTES + length]
    if bytes_left == 0 or (bytes_left > 0 and _is_request(payload)):
        return _request(data[: LENGTH_BYTES + length], LENGTH_BYTES, bytes_left)
    if not _is_request(data) and _begins_with_header(payload) and not _begins_with_header(data):
        if bytes_left < 0:
            missing_bytes = -bytes_left
            raise CommandError(f"the request frame is incomplete: {missing_bytes} of its {length} bytes are missing")
        return _request(data[: LENGTH_BYTES + length], LENGTH_BYTES, bytes_left)
    return _request(data, 0)


def _is_request(data: bytes) -> bool:
    """Return whether the bytes are exactly one request without its length prefix."""
    view = memoryview(data)
    try:
        header, position = decode_request_header(view, 0, len(view))
        _, end = codec(header.api_key, header.api_version).decode_request(view, position, len(view))
    except (DecodeError, UnsupportedVersion):
        return False
    return end == len(view)


def _begins_with_header(data: bytes) -> bool:
    """Return whether the bytes begin with the key of a known API and one of its versions."""
    key, version = int.from_bytes(data[:2], "big"), int.from_bytes(data[2:4], "big")
    return key in APIS and APIS[key].min_version <= version <= APIS[key].max_version


def _request(data: bytes, start: int, left: int = 0) -> Iterator[str]:
    header, _ = decode_request_header(memoryview(data), start, len(data))
    return _parts(codec(header.api_key, header.api_version), False, data, start, with_header=True, left=left)


def _parts(
    api_codec: Codec, is_response: bool, data: bytes, start: int, *, with_header: bool, left: int = 0
) -> Iterator[str]:
    """Yield the lines of a JSON object that describes the message at index `start` of `data`.

    api_codec: the codec of the message's API and version. is_response: False for a request. with_header: whether a header precedes the message. left:
    the number of input bytes that are not in `data`. If input bytes follow the message, the JSON states their number: the rest of `data`, plus
    `left`.
    """
    if is_response and with_header:
        api_codec = codec(api_codec.key, response_version(api_codec.key, api_codec.version, memoryview(data)[start:]))
    document: dict[str, Any] = {
        "api": api_codec.name,
        "kind": "response" if is_response else "request",
        "version": api_codec.version,
    }
    if start:
        document["length"] = len(data) - start
    rows: list[Mapping[str, Any]] = []
    layouts = [("message", api_codec.response if is_response else api_codec.request)]
    if with_header:
        layouts.insert(0, ("header", _header(api_codec, is_response)))
    for name, layout in layouts:
        message, end = layout.decode_flat(memoryview(data), start, len(data))
        document[name] = to_json(layout, message)
        rows += [place._asdict() for place in places(layout, data, start)]
        start = end
    return _output(document, rows, len(data) - start + left)


def _header(api_codec: Codec, is_response: bool) -> Message[Any]:
    if is_response:
        return RESPONSE_HEADERS[api_codec.response_header_version]
    return REQUEST_HEADERS[api_codec.request_header_version]


# ---- data --------------------------------------------------------------------------------------------------------------------------


def _data(options: argparse.Namespace, data: bytes) -> Iterator[str]:
    if plain(options.data) == RECORD_BATCH.lower():
        return _batches(data)
    name, layout = find_data(options.data, options.version)
    message, end = layout.decode_flat(memoryview(data), 0, len(data))
    rows = [place._asdict() for place in places(layout, data)]
    return _output(
        {"data": name, "version": options.version, "message": to_json(layout, message)}, rows, len(data) - end
    )


def _batches(data: bytes) -> Iterator[str]:
    """Yield the JSON of all complete record batches. An incomplete batch at the end, as in a fetch response, is not decoded."""
    whole = complete_bytes(data)
    shown_batches = []
    for entry in batches(data[:whole] if whole else data):  # without a whole batch, this names what is wrong
        facts = {camel_case(name): value for name, value in entry.header._asdict().items()}
        shown_records = [_record(record) for record in records(entry.view)]
        place = {"offset": entry.position, "size": entry.header.size}
        shown_batches.append({**place, "header": facts, "crcIsValid": check_crc(entry.view), "records": shown_records})
    return _output({"data": RECORD_BATCH, "batches": shown_batches}, None, len(data) - whole)


def _record(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": _readable(record.key),
        "value": _readable(record.value),
        "headers": [{"key": key, "value": _readable(value)} for key, value in record.headers],
    }


def _readable(data: bytes | None) -> str | dict[str, str] | None:
    """Return the JSON value for bytes: a string if they are printable UTF-8, otherwise ``{"hex": "<digits>"}``; None for null."""
    if data is None:
        return None
    try:
        text = bytes(data).decode()
    except UnicodeDecodeError:
        return {"hex": data.hex()}
    return text if text.isprintable() else {"hex": data.hex()}


# ---- in and out --------------------------------------------------------------------------------------------------------------------


def _output(entries: dict[str, Any], rows: Sequence[Mapping[str, Any]] | None, left: int) -> Iterator[str]:
    """Yield the lines of a JSON object: `entries`, then `left` if it is not 0, then the list of the message's fields.

    entries: the first entries of the object, such as the API and its version. rows: the fields, each printed on one line; None for an object without
    such a list. left: the number of input bytes after the decoded ones.
    """
    if left:
        entries["left"] = left
    text = json.dumps(entries, indent=2)
    if rows is None:
        yield text
        return
    yield text[:-2] + ',\n  "fields": ['
    for i, row in enumerate(rows):
        line = json.dumps({name: row[name] for name in ("offset", "size", "path", "value")})
        yield f"    {line}{',' if i < len(rows) - 1 else ''}"
    yield "  ]\n}"


def _bytes(options: argparse.Namespace) -> bytes:
    if options.hex:
        return _unhex(options.hex)
    data = read_input(options.file)
    return data if options.hex is None else _unhex(data.decode("ascii", "replace"))


def _unhex(text: str) -> bytes:
    try:
        return bytes.fromhex(re.sub(r"\s|:|0x", "", text))
    except ValueError:
        raise CommandError(
            "the input is not hexadecimal: it must be pairs of the digits 0 to 9 and a to f, for example 0012"
        ) from None
