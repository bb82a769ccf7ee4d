"""The trace file format: writing and reading, truncated files, and errors with file name and byte offset."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.trace.format import (
    VERSION,
    Entry,
    Event,
    Exchange,
    Positions,
    State,
    TraceError,
    encoded,
    event,
    header,
)
from kafkaproto.trace.reading import Trace, files_of

lengths = st.lists(st.integers(0, 2**32 - 1), max_size=5).map(tuple)
numbers = st.integers(0, 2**63 - 1)
exchanges = st.builds(
    Exchange,
    numbers,
    st.integers(-1, 2**31 - 1),
    numbers,
    numbers,
    numbers,
    numbers,
    numbers,
    numbers,
    st.integers(0, 2**31 - 1),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.binary(max_size=50),
    st.binary(max_size=50),
    lengths,
    lengths,
    numbers,
    st.integers(-1, 2**63 - 1),
)
offsets = st.integers(-1, 2**63 - 1)
logs = st.builds(
    Positions, st.text(max_size=9), st.integers(0, 2**31 - 1), st.booleans(), offsets, offsets, offsets, offsets
)
states = st.builds(State, numbers, st.integers(-1, 2**31 - 1), numbers, numbers, st.lists(logs, max_size=3).map(tuple))
events = st.builds(
    Event,
    st.text(max_size=10),
    st.dictionaries(st.sampled_from("abcd"), st.integers() | st.text() | st.none() | st.lists(st.floats(0, 1))),
)


@given(entries=st.lists(exchanges | states | events, max_size=6), cut=st.integers(0, 400))
def test_trace_file_truncated_at_any_byte_still_yields_all_its_complete_entries(
    entries: list[Entry], cut: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    parts = [encoded(entry) for entry in entries]
    header_bytes = header({"run": "r"})
    whole = header_bytes + b"".join(parts)
    end = max(len(header_bytes), len(whole) - cut)
    path = tmp_path_factory.mktemp("trace") / "a.kptrace"
    path.write_bytes(whole[:end])
    complete, at = [], len(header_bytes)
    for entry, part in zip(entries, parts, strict=True):
        at += len(part)
        if at <= end:
            complete.append(entry)
    trace = Trace(path)
    assert trace.meta == {"run": "r"}
    assert list(trace.entries()) == complete
    rest = end - len(header_bytes) - sum(len(encoded(entry)) for entry in complete)
    assert bool(trace.torn) == bool(rest)
    if rest:
        assert f"{rest} bytes at byte {end - rest}" in trace.torn and "a.kptrace" in trace.torn


def test_reading_a_trace_file_can_continue_from_a_saved_position(tmp_path: Path) -> None:
    """Entries read before any position, and those read from it, are together all entries."""
    path = tmp_path / "a.kptrace"
    path.write_bytes(header({}) + b"".join(event("a", {"seq": seq}) for seq in range(3)))
    size = path.stat().st_size
    whole = list(Trace(path).entries())
    for end in range(len(header({})), size + 1):
        first, second = Trace(path), Trace(path)
        before = list(first.entries(ends=end))
        assert first.read_bytes <= end and bool(first.torn) == (first.read_bytes < end)
        assert before + list(second.entries(first.read_bytes)) == whole
        assert second.read_bytes == size and not second.torn


@pytest.mark.parametrize(
    ("data", "error_text"),
    [
        (b"", "is not a trace"),
        (b"\xd4\xc3\xb2\xa1 a capture", "is not a trace"),
        (b"kptrace\n\x00", "is not a trace"),
        (b"kptrace\n" + (99).to_bytes(2, "big") + bytes(4), "version 99, and this program reads versions 2, 3, 4, 5"),
        (b"kptrace\n\x00\x02\x00\x00\x00\x05{...", "its header cannot be read"),
        (b"kptrace\n\x00\x02\x00\x00\x00\x02[]", "its header cannot be read"),
        (b"kptrace\n\x00\x02\x00\x00\x00\x03{}", "its header cannot be read"),
        (b"kptrace\n\x00\x02\x00\x01\x86\xa0" + b"[" * 100_000, "its header cannot be read"),
    ],
)
def test_error_for_a_file_that_is_no_trace_contains_the_file_name(tmp_path: Path, data: bytes, error_text: str) -> None:
    path = tmp_path / "x.kptrace"
    path.write_bytes(data)
    with pytest.raises(TraceError, match=error_text) as caught:
        Trace(path)
    assert str(path) in str(caught.value)


@given(exchange=exchanges, happened=events)
def test_request_wait_time_in_a_trace_of_file_format_2_is_read_as_unknown(
    exchange: Exchange, happened: Event, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lengths = (*exchange.request_records, *exchange.response_records)
    flags = exchange.answered | exchange.held << 1 | exchange.closes << 2
    counts = (exchange.request_bytes, exchange.response_bytes, len(exchange.request), len(exchange.response))
    counts += (len(exchange.request_records), len(exchange.response_records))
    body = struct.pack(">QiQqqqqqiBIIIIHHq", *exchange[:9], flags, *counts, exchange.handled_ms)
    body += struct.pack(f">{len(lengths)}I", *lengths) + exchange.request + exchange.response
    header_bytes = header({"run": "r"}).replace(VERSION.to_bytes(2, "big"), b"\x00\x02", 1)
    path = tmp_path_factory.mktemp("trace") / "a.kptrace"
    path.write_bytes(header_bytes + struct.pack(">IB", len(body), 1) + body + encoded(happened))
    assert list(Trace(path).entries()) == [exchange._replace(wait_ns=-1), happened]


@given(written=st.lists(exchanges | states | events, max_size=5))
def test_event_trouble_in_a_trace_of_file_format_3_is_read_as_event_problem(
    written: list[Entry], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("trace") / "a.kptrace"
    facts = {"seq": 1, "clock_ms": 0, "broker": 0}
    header_bytes = header({"run": "r"}).replace(VERSION.to_bytes(2, "big"), b"\x00\x03", 1)
    path.write_bytes(header_bytes + b"".join(map(encoded, written)) + event("trouble", facts))
    trace = Trace(path)
    assert trace.version == 3 and list(trace.entries()) == [*written, Event("problem", facts)]


@pytest.mark.parametrize(("version", "kind"), [(5, 0), (5, 4), (5, 255), (4, 4), (3, 4), (2, 3)])
def test_invalid_entry_kind_in_a_trace_is_reported_with_its_byte_offset(
    tmp_path: Path, version: int, kind: int
) -> None:
    path = tmp_path / "x.kptrace"
    header_bytes = header({}).replace(VERSION.to_bytes(2, "big"), bytes([0, version]), 1) + event("a", {})
    path.write_bytes(header_bytes + (5).to_bytes(4, "big") + bytes([kind]) + b"12345")
    entries = []
    with pytest.raises(TraceError, match=f"x.kptrace: no entry of a trace begins at byte {len(header_bytes)}"):
        entries.extend(Trace(path).entries())


@pytest.mark.parametrize("body", [b"", b"12", b"{", b"{}", bytes(81), b"[" * 100_000], ids=lambda body: str(body[:9]))
@pytest.mark.parametrize("kind", [1, 2, 3])
def test_unreadable_trace_entry_raises_an_error_that_contains_its_byte_offset(
    tmp_path: Path, kind: int, body: bytes
) -> None:
    path = tmp_path / "x.kptrace"
    path.write_bytes(header({}) + len(body).to_bytes(4, "big") + bytes([kind]) + body)
    with pytest.raises(TraceError, match=f"the entry at byte {len(header({}))} cannot be read"):
        list(Trace(path).entries())


def test_trace_files_are_read_in_name_order_and_a_folder_without_traces_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="contains no trace"):
        files_of(tmp_path)
    with pytest.raises(TraceError, match="contains no trace"):
        files_of(tmp_path / "nowhere")
    for name in ("r-00001.kptrace", "r-00000.kptrace", "other.txt"):
        (tmp_path / name).write_bytes(header({}))
    assert [path.name for path in files_of(tmp_path)] == ["r-00000.kptrace", "r-00001.kptrace"]
    assert files_of(tmp_path / "other.txt") == [tmp_path / "other.txt"]


def test_trace_event_values_that_json_cannot_represent_are_written_as_text() -> None:
    assert json.loads(event("k", {"entity": frozenset([1])})[5:])["entity"] == "frozenset({1})"
