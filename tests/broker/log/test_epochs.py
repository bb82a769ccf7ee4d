"""The leader epoch cache, with the numbers of Kafka's LeaderEpochFileCacheTest and PartitionTest (rules E-3, E-4)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.log.epochs import UNDEFINED_END, EpochCache


def cache(entries: dict[int, int]) -> EpochCache:
    epochs = EpochCache()
    for epoch, start_offset in entries.items():
        epochs.assign(epoch, start_offset)
    return epochs


@pytest.mark.rule("E-3")
@pytest.mark.parametrize(
    ("entries", "log_end_offset", "asked", "answer"),
    [
        ({2: 10}, 11, 2, (2, 11)),
        ({5: 11, 6: 12, 7: 13}, 14, 4, (4, 11)),
        ({1: 11, 2: 13, 3: 15}, 17, 2, (2, 15)),
        ({0: 10, 2: 13, 4: 17}, 20, 1, (0, 13)),
        ({0: 10, 2: 13, 4: 17}, 20, 2, (2, 17)),
        ({0: 10, 2: 13, 4: 17}, 20, 3, (2, 17)),
        ({2: 100}, 101, 3, UNDEFINED_END),
        ({2: 100}, 101, -1, UNDEFINED_END),
        ({}, 5, 0, UNDEFINED_END),
        ({0: 0, 1: 0}, 7, 0, (0, 0)),
        ({0: 0, 1: 0}, 7, 1, (1, 7)),
        ({0: 0, 5: 1, 8: 4}, 4, 8, (8, 4)),
        ({0: 0, 5: 1, 8: 4}, 4, 7, (5, 4)),
    ],
)
def test_where_an_epoch_ended(
    entries: dict[int, int], log_end_offset: int, asked: int, answer: tuple[int, int]
) -> None:
    assert cache(entries).end_offset_for(asked, log_end_offset) == answer


@pytest.mark.rule("E-3")
def test_the_latest_epoch_again_changes_nothing() -> None:
    epochs = cache({2: 6})
    epochs.assign(2, 7)
    assert epochs.entries() == [(2, 6)] and epochs.latest == 2


@pytest.mark.rule("E-4")
def test_an_epoch_that_begins_where_another_did_replaces_it() -> None:
    assert cache({0: 0, 1: 0}).entries() == [(1, 0)]


@pytest.mark.rule("E-4")
def test_entries_stay_monotonic() -> None:
    assert cache({1: 5, 2: 6, 3: 7}).entries() == [(1, 5), (2, 6), (3, 7)]
    assert cache({1: 5, 3: 7, 2: 6}).entries() == [(1, 5), (2, 6)]
    assert cache({1: 5, 2: 6, 4: 5}).entries() == [(4, 5)]
    later_start_lower = cache({1: 5, 2: 6})
    later_start_lower.assign(2, 3)
    assert later_start_lower.entries() == [(2, 3)]


@pytest.mark.rule("E-4")
@pytest.mark.parametrize(
    ("end", "left"),
    [(12, [(2, 6), (3, 8), (4, 11)]), (11, [(2, 6), (3, 8)]), (9, [(2, 6), (3, 8)]), (8, [(2, 6)]), (6, []), (1, [])],
)
def test_truncation_removes_epochs_that_begin_at_the_new_end_or_later(end: int, left: list[tuple[int, int]]) -> None:
    epochs = cache({2: 6, 3: 8, 4: 11})
    epochs.truncate_from_end(end)
    assert epochs.entries() == left and epochs.latest == (left[-1][0] if left else -1)


@pytest.mark.rule("E-4")
@pytest.mark.parametrize(
    ("start", "left"),
    [
        (5, [(2, 6), (3, 8), (4, 11)]),
        (6, [(2, 6), (3, 8), (4, 11)]),
        (7, [(2, 7), (3, 8), (4, 11)]),
        (8, [(3, 8), (4, 11)]),
        (9, [(3, 9), (4, 11)]),
        (11, [(4, 11)]),
        (15, [(4, 15)]),
    ],
)
def test_a_raised_log_start_rebases_the_epoch_that_covers_it(start: int, left: list[tuple[int, int]]) -> None:
    epochs = cache({2: 6, 3: 8, 4: 11})
    epochs.truncate_from_start(start)
    assert epochs.entries() == left and epochs.latest == 4


def test_the_epoch_of_an_offset() -> None:
    epochs = cache({2: 6, 3: 8})
    assert [epochs.epoch_at(offset) for offset in (5, 6, 7, 8, 100)] == [-1, 2, 2, 3, 3]


def test_negative_epochs_and_offsets_are_refused() -> None:
    with pytest.raises(ValueError, match="must be >= 0"):
        EpochCache().assign(-1, 0)
    with pytest.raises(ValueError, match="must be >= 0"):
        EpochCache().assign(0, -1)


def test_clear_forgets_everything() -> None:
    epochs = cache({2: 6})
    epochs.clear()
    assert epochs.entries() == [] and epochs.latest == -1 and epochs.earliest() is None
