"""The model of a committed offset finds each response that contradicts earlier ones."""

from __future__ import annotations

import pytest

from tests.support.broker.committed_offset import NOTHING, CommittedOffset


def test_committed_offset_model_accepts_acknowledged_offset_5_or_unanswered_offset_6() -> None:
    offset = CommittedOffset()
    offset.check(NOTHING)
    offset.acknowledge(offset.send(5))
    offset.send(6)
    for fetched in (5, 6, 5):
        offset.check(fetched)
    with pytest.raises(AssertionError, match=r"the committed offset is 7, not one of \[5, 6\]"):
        offset.check(7)


def test_committed_offset_model_rejects_offset_5_after_replicated_offset_6_was_read() -> None:
    offset = CommittedOffset()
    offset.acknowledge(offset.send(5))
    number = offset.send(6)
    offset.send(7)
    offset.check(6, is_replicated=True)
    with pytest.raises(AssertionError, match=r"the committed offset is 5, not one of \[6, 7\]"):
        offset.check(5)
    offset.acknowledge(number)
    offset.check(6, is_replicated=True)


def test_committed_offset_model_rejects_a_decrease_of_the_acknowledged_offset() -> None:
    offset = CommittedOffset()
    offset.acknowledge(offset.send(5))
    with pytest.raises(AssertionError, match="the committed offset went back from 5 to 4"):
        offset.acknowledge(offset.send(4))
