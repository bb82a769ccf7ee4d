"""Permitted and forbidden differences between two recordings of one traffic."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkaproto.pipeline.trace import tables as job
from kafkaproto.trace.format import Entry, Event, Exchange
from tests.support.pipeline.alike import OF_COORDINATORS, OF_RECORDS, assert_same
from tests.support.pipeline.group_traffic import group_entries
from tests.support.pipeline.recorded import traffic, write

Change = Callable[[list[Entry]], list[Entry]]


def built(folder: Path, entries: list[Entry]) -> Path:
    folder.mkdir()
    write(folder / "trace", entries)
    job.build(folder / "trace", folder / "out", job.without_spark)
    return folder / "out"


def places(entries: list[Entry]) -> list[int]:
    return [place for place, entry in enumerate(entries) if isinstance(entry, Exchange)]


def without_answer(which: int) -> Change:
    def change(entries: list[Entry]) -> list[Entry]:
        at = places(entries)[which]
        exchange = entries[at]
        assert isinstance(exchange, Exchange)
        facts = {
            "seq": 1000,
            "clock_ms": 0,
            "at_ns": 0,
            "broker": exchange.broker,
            "of": exchange.seq,
            "why": "it ended",
        }
        cut = exchange._replace(answered=False, response=b"", response_bytes=0, response_records=())
        return [*entries[:at], Event("problem", facts), cut, *entries[at + 1 :]]

    return change


def without(which: int) -> Change:
    return lambda entries: [entry for place, entry in enumerate(entries) if place != places(entries)[which]]


def with_another_request(entries: list[Entry]) -> list[Entry]:
    last = entries[places(entries)[-1]]
    assert isinstance(last, Exchange)
    return without_answer(-1)([*without(-1)(entries), last._replace(request_bytes=last.request_bytes + 1)])


def unchanged(entries: list[Entry]) -> list[Entry]:
    return entries


@pytest.mark.parametrize(("change", "cut"), [(unchanged, 0), (without_answer(-1), 1)], ids=["all", "but one"])
def test_trace_comparison_finds_no_difference_if_only_the_last_response_is_missing(
    change: Change, cut: int, tmp_path: Path
) -> None:
    entries = traffic()
    both = assert_same(built(tmp_path / "seen", change(entries)), built(tmp_path / "second", entries))
    assert both["requests"] == len(places(entries)) - cut and all(both[table] > 0 for table in OF_RECORDS)


def test_trace_comparison_fails_if_a_group_id_or_transactional_id_differs(tmp_path: Path) -> None:
    entries = group_entries()
    whole = built(tmp_path / "whole", entries)
    both = assert_same(whole, whole)
    assert all(both[table] > 0 for table in OF_COORDINATORS)
    for which in (-1, -2):  # a transactional producer, a commit
        changed = list(entries)
        exchange = entries[places(entries)[which]]
        assert isinstance(exchange, Exchange)
        other_id = exchange.request.replace(b"x", b"y") if which == -1 else exchange.request.replace(b"g", b"h")
        assert other_id != exchange.request
        changed[places(entries)[which]] = exchange._replace(request=other_id)
        with pytest.raises(AssertionError, match="only the closer recording has it"):
            assert_same(built(tmp_path / f"changed {which}", changed), whole)


@pytest.mark.parametrize(
    ("change", "other_change", "error_text"),
    [
        (without(-1), unchanged, "the closer recording lacks it"),
        (without(2), unchanged, "the closer recording lacks it"),
        (with_another_request, unchanged, "the closer recording lacks it"),
        (unchanged, without(-1), "only the closer recording has it"),
        (without_answer(-2), unchanged, "a later request of the connection has a response"),
    ],
    ids=["lacks the last", "lacks one", "another request", "has more", "lacks an answer before the last"],
)
def test_trace_comparison_raises_an_error_if_requests_of_the_two_traces_differ(
    change: Change, other_change: Change, error_text: str, tmp_path: Path
) -> None:
    entries = traffic()
    first, other = built(tmp_path / "seen", change(entries)), built(tmp_path / "second", other_change(entries))
    with pytest.raises(AssertionError, match=error_text):
        assert_same(first, other)


def test_trace_comparison_raises_an_error_if_record_lengths_of_a_response_differ(tmp_path: Path) -> None:
    entries = traffic()
    changed = list(entries)
    at = places(entries)[-1]
    last = entries[at]
    assert isinstance(last, Exchange)
    changed[at] = last._replace(response_records=tuple(length + 1 for length in last.response_records))
    with pytest.raises(AssertionError, match="only the closer recording has it"):
        assert_same(built(tmp_path / "seen", changed), built(tmp_path / "second", entries))
