"""The states of one transactional id, without a coordinator."""

from __future__ import annotations

import pytest

from kafkaproto.broker.transaction.transaction import Transaction, TransactionData, TransactionState


@pytest.mark.rule("TX-5")
@pytest.mark.parametrize("state", [TransactionState.EMPTY, TransactionState.ONGOING, TransactionState.COMPLETE_ABORT])
def test_transaction_in_state_empty_ongoing_or_complete_abort_cannot_be_completed(state: TransactionState) -> None:
    transaction = Transaction("shop", TransactionData(producer_id=7, timeout_ms=60_000, update_ms=0, state=state), 0)
    with pytest.raises(AssertionError, match=r"transactional id shop: the state must not change from .* to .*"):
        transaction.prepare_complete(1)
    assert transaction.pending is None
