"""What the fuzzer found in the past is fed to its targets again, without a fuzzer."""

from __future__ import annotations

import pytest

from tests.fuzz import corpus
from tests.fuzz.targets import REQUESTS, RESPONSES, TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_holds_for_the_whole_corpus(target: str) -> None:
    found = corpus.load(target)
    assert len(found) > 5
    for data in found:
        TARGETS[target](data)


@pytest.mark.parametrize(("target", "entries"), [("requests", REQUESTS), ("responses", RESPONSES)])
def test_the_corpus_reaches_most_layouts(target: str, entries: list[object]) -> None:
    reached = {int.from_bytes(data[:2], "big") % len(entries) for data in corpus.load(target)}
    assert len(reached) > 0.8 * len(entries)


def test_the_corpus_is_small() -> None:
    assert sum(path.stat().st_size for path in corpus.FOLDER.iterdir()) < 2_000_000
