"""Random transactions with stopped brokers, moved coordinators and lost responses, and injected bugs that the tests must notice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from kafkaproto.broker.group.pending_offsets import PendingOffsets
from kafkaproto.broker.log.producer_state import ProducerStates
from kafkaproto.broker.log.transaction_index import TransactionIndex
from kafkaproto.broker.transaction.completion import Completion
from kafkaproto.broker.transaction.coordinator import TransactionCoordinator
from tests.support.broker.random_transactions import ABORTED, COMMITTED, UNKNOWN, RandomTransactions

SEEDS = 40


@pytest.mark.rule("TX-8", "TX-16", "TX-39", "TX-43", "TX-53", "TX-54", "TX-58")
@pytest.mark.parametrize("newer", [False, True])
def test_after_random_transactions_only_committed_records_and_offsets_are_visible(newer: bool) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(SEEDS):
        outcomes += RandomTransactions(seed, newer=newer).play()
    assert min(outcomes[COMMITTED], outcomes[ABORTED], outcomes[UNKNOWN]) >= SEEDS


Inject = Callable[[pytest.MonkeyPatch], None]


def markers_are_lost(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Completion, "begin", lambda *_: None)


def aborts_commit(patch: pytest.MonkeyPatch) -> None:
    end = TransactionIndex.end
    patch.setattr(TransactionIndex, "end", lambda index, *arguments, aborted: end(index, *arguments, aborted=False))


def decided_transactions_are_not_resumed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(TransactionCoordinator, "_loaded", lambda *_: None)


def open_transactions_are_not_verified(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(ProducerStates, "needs_verification", lambda *_: False)


def aborted_offsets_are_committed(patch: pytest.MonkeyPatch) -> None:
    end = PendingOffsets.end
    patch.setattr(
        PendingOffsets, "end", lambda offsets, producer_id, *, committed: end(offsets, producer_id, committed=True)
    )


@pytest.mark.parametrize(
    "inject",
    [
        markers_are_lost,
        aborts_commit,
        decided_transactions_are_not_resumed,
        open_transactions_are_not_verified,
        aborted_offsets_are_committed,
    ],
)
def test_random_transactions_test_fails_with_each_of_five_injected_bugs(
    monkeypatch: pytest.MonkeyPatch, inject: Inject
) -> None:
    inject(monkeypatch)
    with pytest.raises(AssertionError):
        play_all()


def play_all() -> None:
    for seed in range(SEEDS):
        for newer in (False, True):
            RandomTransactions(seed, newer=newer).play()
