"""Loading of transactional ids from records that are damaged, or that a newer Kafka wrote (TX-4)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.broker.replication.coordinator_log import LoggedRecord
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.records import Entry, entry
from kafkaproto.broker.transaction.store import Done, TransactionStore
from kafkaproto.broker.transaction.transaction import Transaction, TransactionData, TransactionState

GOOD = entry("good", TransactionData(producer_id=7, timeout_ms=60_000, update_ms=1_000), 0)
DAMAGED = {
    "cut value": (GOOD[0], (GOOD[1] or b"")[:-3]),
    "newer version of the value": (GOOD[0], b"\x00\x63"),
    "newer kind of key": (b"\x00\x63good", GOOD[1]),
    "state that is never stored": entry("bad", TransactionData(8, 60_000, 1_000, TransactionState.DEAD), 0),
}


class _Log:
    """A partition of the transaction topic with some records."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._entries = entries

    def append(self, index: int, entries: Sequence[Entry], now_ms: int, done: Done) -> None:
        raise AssertionError("loading must not write")

    def read(self, index: int) -> list[LoggedRecord]:
        return [LoggedRecord(offset, *record) for offset, record in enumerate(self._entries)]


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED)
def test_damaged_transaction_record_is_logged_and_other_transactions_are_loaded(
    damaged: Entry, caplog: pytest.LogCaptureFixture
) -> None:
    loaded: list[Transaction] = []
    store = TransactionStore(
        _Log([damaged, GOOD]),
        Timers(),
        lambda: 0,
        lambda: 0,
        loaded=lambda transactions, now_ms: loaded.extend(transactions),
        unloaded=lambda transactions: None,
        changed=lambda transaction, before, now_ms: None,
    )
    store.change({0: 5}, 1, 0)
    assert [(t.transactional_id, t.data.producer_id) for t in loaded] == [("good", 7)]
    [message] = [record.getMessage() for record in caplog.records]
    assert message.startswith("__transaction_state-0: the record at offset 0 is skipped: ")
