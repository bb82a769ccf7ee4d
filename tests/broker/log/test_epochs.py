"""The leader epoch cache, with the numbers of Kafka's LeaderEpochFileCacheTest and PartitionTest (E-3, E-4)."""

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
    ("entries", "log_end_offset", "requested_epoch", "answer"),
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
def test_leader_epoch_cache_returns_the_end_offset_of_an_epoch(
    entries: dict[int, int], log_end_offset: int, requested_epoch: int, answer: tuple[int, int]
) -> None:
    assert cache(entries).end_offset_for(requested_epoch, log_end_offset) == answer


@pytest.mark.rule("E-3")
def test_adding_the_latest_leader_epoch_twice_leaves_the_epoch_cache_unchanged() -> None:
    epochs = cache({2: 6})
    epochs.assign(2, 7)
    assert epochs.entries() == [(2, 6)] and epochs.latest == 2


@pytest.mark.rule("E-4")
def test_leader_epoch_replaces_an_older_epoch_that_starts_at_the_same_offset() -> None:
    assert cache({0: 0, 1: 0}).entries() == [(1, 0)]


@pytest.mark.rule("E-4")
def test_entries_of_the_leader_epoch_cache_stay_in_increasing_order() -> None:
    assert cache({1: 5, 2: 6, 3: 7}).entries() == [(1, 5), (2, 6), (3, 7)]
    assert cache({1: 5, 3: 7, 2: 6}).entries() == [(1, 5), (2, 6)]
    assert cache({1: 5, 2: 6, 4: 5}).entries() == [(4, 5)]
    later_start_lower = cache({1: 5, 2: 6})
    later_start_lower.assign(2, 3)
    assert later_start_lower.entries() == [(2, 3)]


@pytest.mark.rule("E-4")
@pytest.mark.parametrize(
    ("end", "remaining"),
    [(12, [(2, 6), (3, 8), (4, 11)]), (11, [(2, 6), (3, 8)]), (9, [(2, 6), (3, 8)]), (8, [(2, 6)]), (6, []), (1, [])],
)
def test_truncation_removes_leader_epochs_that_start_at_or_after_the_new_end_offset(
    end: int, remaining: list[tuple[int, int]]
) -> None:
    epochs = cache({2: 6, 3: 8, 4: 11})
    epochs.truncate_from_end(end)
    assert epochs.entries() == remaining and epochs.latest == (remaining[-1][0] if remaining else -1)


@pytest.mark.rule("E-4")
@pytest.mark.parametrize(
    ("start", "remaining"),
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
def test_raising_the_log_start_within_a_leader_epoch_moves_the_start_of_that_epoch(
    start: int, remaining: list[tuple[int, int]]
) -> None:
    epochs = cache({2: 6, 3: 8, 4: 11})
    epochs.truncate_from_start(start)
    assert epochs.entries() == remaining and epochs.latest == 4


def test_leader_epoch_cache_returns_the_leader_epoch_in_which_an_offset_was_written() -> None:
    epochs = cache({2: 6, 3: 8})
    assert [epochs.epoch_at(offset) for offset in (5, 6, 7, 8, 100)] == [-1, 2, 2, 3, 3]


def test_leader_epoch_cache_rejects_negative_epochs_and_offsets() -> None:
    with pytest.raises(ValueError, match="must be at least 0"):
        EpochCache().assign(-1, 0)
    with pytest.raises(ValueError, match="must be at least 0"):
        EpochCache().assign(0, -1)


def test_clearing_the_leader_epoch_cache_removes_all_entries() -> None:
    epochs = cache({2: 6})
    epochs.clear()
    assert epochs.entries() == [] and epochs.latest == -1 and epochs.earliest() is None
