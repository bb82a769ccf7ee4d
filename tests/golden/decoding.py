"""Golden runs in readable form: each line decoded, and the decoded difference between two runs."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from kafkaproto.api import APIS, codec
from kafkaproto.client import correlation_id_of
from kafkaproto.errors import DecodeError
from kafkaproto.frame import take_frame
from kafkaproto.header import decode_request_header, decode_response_header, response_version
from kafkaproto.trace import format as trace_format
from kafkaproto.trace.reading import READERS
from kafkaproto.trace.show import Seen

MOST_DIFFERENCES = 10
MOST_LINES = 80


class Sent(NamedTuple):
    """A request with the data that decoding its response needs."""

    api_key: int
    version: int
    text: str


class Decoder:
    """Decodes the lines of one run in order: a response needs its request."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, int], Sent] = {}
        self._unread: dict[str, bytearray] = {}
        self.answered: list[tuple[int, int]] = []
        """(API key, version) of each request that got a response that can be decoded."""

    def decode(self, line: str) -> str:
        """Return the line in readable form, with the messages below it as JSON. Undecodable lines stay unchanged."""
        try:
            return self._decode(line)
        except ValueError:
            return line

    def _decode(self, line: str) -> str:
        kind, _, rest = line.partition(" ")
        if kind in ("request", "response"):
            number, at, data = rest.split(" ")
            make = self._requests if kind == "request" else self._response
            return f"{kind} on connection {number} {at}: {make(number, bytes.fromhex(data))}"
        if kind == "entry":
            return f"trace {_safely(_entry, bytes.fromhex(rest))}"
        if kind == "header":
            return f"trace header {bytes.fromhex(rest)!r}"
        if rest.startswith("{"):
            return f"journal {kind} {_json(json.loads(rest))}"
        return line

    def _requests(self, number: str, data: bytes) -> str:
        """Return every complete frame: a client may send many frames at once, and parts of one."""
        received = self._unread.setdefault(number, bytearray())
        received += data
        texts = []
        with suppress(DecodeError):  # bytes that are no frame stay unchanged
            while (frame := take_frame(received)) is not None:
                texts.append(_safely(lambda frame: self._request(number, frame), frame))
        if received:
            texts.append(f"{len(received)} bytes of a frame that is not whole: {received[:40].hex()}")
        return "\n".join(texts)

    def _request(self, number: str, frame: bytes) -> str:
        view = memoryview(frame)
        header, at = decode_request_header(view, 0, len(view))
        name = f"{APIS[header.api_key].name} v{header.api_version} #{header.correlation_id}"
        self._sent[(number, header.correlation_id)] = Sent(header.api_key, header.api_version, name)
        request, _ = codec(header.api_key, header.api_version).decode_request(view, at, len(view))
        return f"{name} of {header.client_id} {_json(request.to_json(header.api_version))}"

    def _response(self, number: str, data: bytes) -> str:
        frame = memoryview(data)[4:]
        sent = self._sent.get((number, correlation_id_of(frame)))
        if sent is None:
            return f"to no request: {data.hex()}"
        return f"to {sent.text} {_safely(lambda f: self._answer(sent, f), frame)}"

    def _answer(self, sent: Sent, frame: memoryview) -> str:
        text = _response(sent, frame)
        self.answered.append((sent.api_key, sent.version))
        return text


def _response(sent: Sent, frame: memoryview) -> str:
    version = response_version(sent.api_key, sent.version, frame)
    _, at = decode_response_header(sent.api_key, sent.version, frame, 0, len(frame))
    response, _ = codec(sent.api_key, version).decode_response(frame, at, len(frame))
    return _json(response.to_json(version))


def _entry(data: bytes) -> str:
    entry = READERS[trace_format.VERSION][data[4]](data[5:])
    if isinstance(entry, trace_format.Exchange):
        return f"exchange {_json(Seen(entry).as_json())}"
    if isinstance(entry, trace_format.Event):
        return f"event {entry.kind} {_json(entry.facts)}"
    return f"state {_json(entry._asdict())}"


def _safely(decode: Callable[[Any], str], data: Any) -> str:
    """Return undecodable bytes unchanged: a changed byte may break anything."""
    try:
        return decode(data)
    except Exception as error:  # noqa: BLE001 - a difference must be shown in any case
        return f"cannot be decoded ({error}): {bytes(data).hex()}"


def _json(data: Any) -> str:
    return json.dumps(data, indent=1, default=str)


def exchange_of(line: str, decoded: str) -> str:
    """Return the bytes of an exchange, for a difference that decoding does not show."""
    return f"{decoded}\n{line}"


def differences(old: list[str], new: list[str]) -> Iterator[str]:
    """Yield a decoded unified diff for each place where two runs differ."""
    before, after = decoded_lines(old), decoded_lines(new)
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, i, j, k, l in matcher.get_opcodes():  # noqa: E741
        if kind != "equal":
            yield _difference(old[i:j], new[k:l], before[i:j], after[k:l], f"line {i + 1}")


def decoded_lines(lines: list[str]) -> list[str]:
    decoder = Decoder()
    return [decoder.decode(line) for line in lines]


def _difference(old: list[str], new: list[str], before: list[str], after: list[str], place: str) -> str:
    if before == after:
        before, after = (list(map(exchange_of, *pair)) for pair in ((old, before), (new, after)))
    texts = ["\n".join(side).split("\n") for side in (before, after)]
    difference = list(difflib.unified_diff(*texts, f"committed, {place}", "now", n=6, lineterm=""))
    left_out = len(difference) - MOST_LINES
    return "\n".join([*difference[:MOST_LINES], *([f"... {left_out} more lines"] if left_out > 0 else [])])


def report(name: str, old: list[str], new: list[str], most: int | None = MOST_DIFFERENCES) -> str:
    """Return the differences between the committed and the new text of a run, or "" if there are none."""
    if old == new:
        return ""
    if not old:
        return f"{name}: nothing is committed; run python -m tests.golden --write"
    changes = differences(old, new)
    first_changes = list(islice(changes, most))
    more = sum(1 for _ in changes)
    last = [f"... and {more} more differences"] if more else []
    return "\n\n".join([f"{name} differs:", *first_changes, *last])
