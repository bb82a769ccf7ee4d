"""The stored fuzz corpus runs against all fuzz targets without a fuzzer."""

from __future__ import annotations

import pytest

from tests.fuzz import corpus
from tests.fuzz.targets import REQUESTS, RESPONSES, TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_fuzz_targets_raise_no_error_on_any_input_of_the_stored_corpus(target: str) -> None:
    inputs = corpus.load(target)
    assert len(inputs) > 5
    for data in inputs:
        TARGETS[target](data)


@pytest.mark.parametrize(("target", "entries"), [("requests", REQUESTS), ("responses", RESPONSES)])
def test_fuzz_corpus_has_inputs_for_more_than_80_percent_of_message_layouts(target: str, entries: list[object]) -> None:
    reached = {int.from_bytes(data[:2], "big") % len(entries) for data in corpus.load(target)}
    assert len(reached) > 0.8 * len(entries)


def test_fuzz_corpus_is_smaller_than_2_mb() -> None:
    assert sum(path.stat().st_size for path in corpus.FOLDER.iterdir()) < 2_000_000
