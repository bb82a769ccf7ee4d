"""The history of transactions, and the journal's events about them: when each began, what it included, how it ended and why."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.observe.past_transaction import PastTransaction
from kafkaproto.broker.observe.transaction_history import MOST_IDS, MOST_OF_ID, TransactionHistory
from kafkaproto.broker.transaction.changes import Cause, TransactionChange
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.transactions import Producer
from tests.support.broker.transaction_bench import TransactionBench


@pytest.fixture(params=["3.9", "4.2"])
def bench(request: pytest.FixtureRequest) -> TransactionBench:
    return TransactionBench(newer=request.param == "4.2")


@pytest.fixture
def topic(bench: TransactionBench) -> Topic:
    return bench.topic(2)


def past(bench: TransactionBench, producer: Producer) -> list[PastTransaction]:
    return bench.cluster.state.transaction_history.of_id(producer.id)


def only(bench: TransactionBench, producer: Producer) -> PastTransaction:
    [transaction] = past(bench, producer)
    return transaction


@pytest.mark.parametrize("commit", [True, False])
def test_transaction_history_shows_partitions_offsets_and_outcome(
    bench: TransactionBench, topic: Topic, commit: bool
) -> None:
    producer = bench.begin(topic)
    open_one = only(bench, producer)
    assert (open_one.state, open_one.partitions, open_one.cause) == ("Ongoing", ((topic.name, 0),), None)
    assert open_one.decided_ms is None and open_one.duration_ms is None and "with" in str(open_one)
    producer.add({topic.name: [0, 1]})
    group = Group(bench)
    assert producer.add_offsets(group) == 0
    bench.pass_ms(500)
    producer.finish(commit=commit)
    transaction = only(bench, producer)
    assert (
        transaction.state == ("CompleteCommit" if commit else "CompleteAbort")
        and transaction.cause == "the producer ended it"
    )
    assert transaction.partitions == ((topic.name, 0), (topic.name, 1), ("__consumer_offsets", group.index))
    assert transaction.decided_ms is not None and transaction.duration_ms is not None and transaction.epoch == 0
    assert 500 <= transaction.decided_ms <= transaction.duration_ms
    assert f"{transaction.state} after {transaction.decided_ms} ms and" in str(transaction) and str(
        transaction
    ).endswith(": the producer ended it")


def test_transaction_history_names_the_timeout_as_the_cause_of_an_abort(bench: TransactionBench, topic: Topic) -> None:
    producer = bench.begin(topic, timeout_ms=5_000)
    bench.pass_ms(30_000)
    transaction = only(bench, producer)
    assert (transaction.state, transaction.cause) == ("CompleteAbort", "its timeout passed")
    assert transaction.decided_ms is not None and 5_000 < transaction.decided_ms < 20_000


def test_transaction_history_names_a_newer_producer_as_the_cause_of_an_abort(
    bench: TransactionBench, topic: Topic
) -> None:
    producer = bench.begin(topic)
    newer = Producer(bench, producer.id)
    newer.init()
    transaction = only(bench, producer)
    assert (transaction.state, transaction.cause) == ("CompleteAbort", "a newer producer fenced it")
    events = [event.facts for event in bench.cluster.state.journal.events("transaction")]
    assert [(facts["state"], facts["cause"]) for facts in events][-3:] == [
        ("PrepareAbort", "a newer producer fenced it"),
        ("CompleteAbort", "a newer producer fenced it"),
        ("Empty", "the producer got a new epoch"),
    ]


def test_transaction_history_contains_the_commit_that_a_new_coordinator_completes(
    bench: TransactionBench, topic: Topic
) -> None:
    producer = bench.begin(topic)
    first = only(bench, producer).broker_id
    bench.move(producer)
    producer.finish(commit=True)
    transaction = only(bench, producer)
    assert (transaction.state, transaction.cause) == (
        "CompleteCommit",
        "the producer ended it",
    ) and transaction.broker_id != first
    producer.add_once_free(topic)
    assert [entry.state for entry in past(bench, producer)] == ["CompleteCommit", "Ongoing"]


def test_journal_gets_an_event_when_a_producer_gets_a_new_epoch(bench: TransactionBench) -> None:
    producer = Producer(bench)
    producer.init()
    producer.init()
    events = [event.facts for event in bench.cluster.state.journal.events("transaction")]
    assert [(facts["before"], facts["state"], facts["epoch"]) for facts in events] == [
        (None, "Empty", 0),
        ("Empty", "Empty", 1),
    ]
    assert past(bench, producer) == []


def change(name: str, state: str, **more: Any) -> TransactionChange:
    return TransactionChange(name, "Empty", state, 1, 0, 1, Cause.ADDED, **more)


def test_transaction_history_has_a_bounded_size_and_can_be_cleared() -> None:
    history = TransactionHistory(0)
    for number in range(MOST_OF_ID + 5):
        history.transaction_changed(0, change("busy", "Ongoing"), number)
        history.transaction_changed(0, change("busy", "CompleteCommit"), number)
    assert [entry.at_ms for entry in history.of_id("busy")] == list(range(5, MOST_OF_ID + 5))
    for number in range(MOST_IDS):
        history.transaction_changed(0, change(f"id {number}", "Ongoing"), 1000 + number)
    assert "busy" not in history and "id 0" in history and len(history.latest(5000)) == MOST_IDS
    assert [entry.transactional_id for entry in history.latest(2)] == [f"id {MOST_IDS - 2}", f"id {MOST_IDS - 1}"]
    history.cleared(5000)
    assert history.latest(1) == [] and history.of_id("id 0") == []


def test_transaction_history_omits_a_transaction_whose_beginning_was_not_observed() -> None:
    history = TransactionHistory(0)
    for state in ("PrepareAbort", "CompleteAbort", "Dead"):
        history.transaction_changed(0, change("x", state), 1)
    assert history.latest(10) == [] and "x" not in history
