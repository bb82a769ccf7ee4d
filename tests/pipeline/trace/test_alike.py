"""What two recordings of the same traffic may differ in, and what they may not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from kafkaproto.pipeline.trace import tables as job
from kafkaproto.trace.format import Entry, Event, Exchange
from tests.support.pipeline.alike import assert_same
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
        one = entries[at]
        assert isinstance(one, Exchange)
        facts = {"seq": 1000, "clock_ms": 0, "at_ns": 0, "broker": one.broker, "of": one.seq, "why": "it ended"}
        cut = one._replace(answered=False, response=b"", response_bytes=0, response_records=())
        return [*entries[:at], Event("trouble", facts), cut, *entries[at + 1 :]]

    return change


def without(which: int) -> Change:
    return lambda entries: [entry for place, entry in enumerate(entries) if place != places(entries)[which]]


def with_another_request(entries: list[Entry]) -> list[Entry]:
    last = entries[places(entries)[-1]]
    assert isinstance(last, Exchange)
    return without_answer(-1)([*without(-1)(entries), last._replace(request_bytes=last.request_bytes + 1)])


def as_they_are(entries: list[Entry]) -> list[Entry]:
    return entries


@pytest.mark.parametrize(("seen", "cut"), [(as_they_are, 0), (without_answer(-1), 1)], ids=["all", "but one"])
def test_who_stood_between_may_lack_the_last_answer_of_a_connection(seen: Change, cut: int, tmp_path: Path) -> None:
    entries = traffic()
    both = assert_same(built(tmp_path / "seen", seen(entries)), built(tmp_path / "told", entries))
    assert both["requests"] == len(places(entries)) - cut and min(both.values()) > 0


@pytest.mark.parametrize(
    ("seen", "told", "said"),
    [
        (without(-1), as_they_are, "nobody who stood between has it"),
        (without(2), as_they_are, "nobody who stood between has it"),
        (with_another_request, as_they_are, "nobody who stood between has it"),
        (as_they_are, without(-1), "only who stood between has it"),
        (without_answer(-2), as_they_are, "it was answered afterwards"),
    ],
    ids=["lacks the last", "lacks one", "another request", "has more", "lacks an answer before the last"],
)
def test_nothing_else_may_differ(seen: Change, told: Change, said: str, tmp_path: Path) -> None:
    entries = traffic()
    one, other = built(tmp_path / "seen", seen(entries)), built(tmp_path / "told", told(entries))
    with pytest.raises(AssertionError, match=said):
        assert_same(one, other)


def test_an_answer_that_differs_is_found_in_any_table(tmp_path: Path) -> None:
    entries = traffic()
    changed = list(entries)
    at = places(entries)[-1]
    last = entries[at]
    assert isinstance(last, Exchange)
    changed[at] = last._replace(response_records=tuple(length + 1 for length in last.response_records))
    with pytest.raises(AssertionError, match="only who stood between has it"):
        assert_same(built(tmp_path / "seen", changed), built(tmp_path / "told", entries))
