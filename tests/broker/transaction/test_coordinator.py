"""The transaction coordinator: moves, restarts, timeouts, expiration and exhausted epochs (TX-7 to TX-17, TX-58 to TX-62)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkaproto.broker.log.errors import StorageError
from kafkaproto.broker.log.store import Store
from kafkaproto.broker.testing.records import stored
from kafkaproto.broker.transaction.records import parse
from kafkaproto.broker.transaction.transaction import TransactionData, TransactionState
from kafkaproto.conformance.scene import Topic, new_topic, read
from kafkaproto.conformance.transactions import Producer, producers
from kafkaproto.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.list_transactions import ListTransactionsRequest
from tests.support.broker.transaction_bench import TRANSACTIONS, TransactionBench

LOADING, UNAVAILABLE, NOT_COORDINATOR, MAPPING, CONCURRENT, FENCED = 14, 15, 16, 49, 51, 90
LAST_EPOCH = 32_766


@pytest.fixture
def bench() -> Iterator[TransactionBench]:
    transaction_bench = TransactionBench()
    yield transaction_bench
    transaction_bench.stop()


@pytest.fixture
def newer() -> Iterator[TransactionBench]:
    transaction_bench = TransactionBench(newer=True)
    yield transaction_bench
    transaction_bench.stop()


def visible(topic: Topic) -> tuple[int, int, list[tuple[int, int]]]:
    """Return high watermark, last stable offset, and (producer id, first offset) of the aborted transactions of a whole topic."""
    data = read(topic, 0, isolation=1)
    aborted = [(entry.producer_id, entry.first_offset) for entry in data.aborted_transactions]
    return data.high_watermark, data.last_stable_offset, aborted


def logged(bench: TransactionBench) -> list[tuple[str, TransactionData | None]]:
    """Return the records of the transaction topic, in order of each partition."""
    return [parse(record.key or b"", record.value) for record in stored(bench.cluster.state, TRANSACTIONS, None)]


@pytest.mark.rule("TX-1", "TX-3", "TX-8")
def test_open_transaction_can_be_committed_after_its_coordinator_moves(bench: TransactionBench) -> None:
    topic = bench.topic()
    producer = bench.begin(topic)
    old = producer.coordinator()
    bench.move(producer)
    assert producer.describe().transaction_state == "Ongoing"
    assert error_on(producer, old) == NOT_COORDINATOR
    producer.finish(commit=True)
    assert visible(topic) == (2, 2, [])


def error_on(producer: Producer, broker_id: int) -> int:
    """Return the error with which a broker describes the producer's transaction."""
    request = DescribeTransactionsRequest([producer.id])
    return int(producer.subject.ask_once(request, 0, broker_id).transaction_states[0].error_code)


@pytest.mark.rule("TX-8")
@pytest.mark.parametrize("commit", [True, False])
def test_prepared_commit_or_abort_is_completed_by_the_next_coordinator(bench: TransactionBench, commit: bool) -> None:
    topic = bench.topic()
    producer = bench.begin(topic)
    assert producer.end(commit=commit)[0] == 0
    assert bench.transaction(producer).data.state.name.startswith("PREPARE")  # nothing is complete before time passes
    bench.move(producer)
    producer.wait_for("CompleteCommit" if commit else "CompleteAbort")
    assert visible(topic) == (2, 2, [] if commit else [(producer.producer_id, 0)])


@pytest.mark.rule("TX-39", "TX-49")
def test_commit_completes_only_when_a_leaderless_partition_has_a_leader_again(bench: TransactionBench) -> None:
    topic = new_topic(bench, assignment={0: [2]})
    producer = bench.begin(topic)
    while producer.coordinator() == 2:
        bench.move(producer)
    bench.stop_broker(2)
    assert producer.end(commit=True)[0] == 0
    bench.pass_ms(60_000)
    assert producer.describe().transaction_state == "PrepareCommit"
    bench.start_broker(2)
    producer.wait_for("CompleteCommit")
    assert visible(topic) == (2, 2, [])


@pytest.mark.rule("TX-49")
def test_transaction_completes_although_one_of_its_topics_was_deleted(bench: TransactionBench) -> None:
    topic = bench.topic()
    producer = bench.begin(topic)
    bench.cluster.state.controller.delete_topic(topic.name)
    bench.cluster.run()
    producer.finish(commit=True)


@pytest.mark.rule("TX-7", "TX-17")
def test_end_txn_that_cannot_be_written_to_the_transaction_log_changes_no_state() -> None:
    bench = TransactionBench({"transaction.state.log.min.isr": "3"})
    topic = bench.topic()
    producer = bench.begin(topic)
    broken = next(broker_id for broker_id in range(3) if broker_id not in (producer.coordinator(), topic.leader()))
    bench.stop_broker(broken)
    before = bench.transaction(producer).data
    assert producer.end(commit=True)[0] == UNAVAILABLE
    assert producer.add({topic.name: [0]}) == {
        (topic.name, 0): 0
    }  # it is part of the transaction, so nothing is written
    assert bench.transaction(producer).data == before
    for _ in range(2):
        assert Producer(bench, producer.id).init_once()[0] == UNAVAILABLE
        assert bench.transaction(producer).data.epoch == before.epoch + 1  # the second attempt uses the same epoch
    bench.start_broker(broken)
    assert Producer(bench, producer.id).init() == (producer.producer_id, before.epoch + 2)
    assert visible(topic) == (2, 2, [(producer.producer_id, 0)])
    bench.stop()


@pytest.mark.rule("TX-58", "TX-59", "TX-60", "TX-61", "SN-58")
@pytest.mark.parametrize("is_newer", [False, True])
def test_coordinator_aborts_a_transaction_after_the_transaction_timeout(is_newer: bool) -> None:
    """Scenario SN-58. With transaction version 2 the producer may go on with the raised epoch."""
    bench = TransactionBench(newer=is_newer)
    topic = bench.topic()
    producer = bench.begin(topic, timeout_ms=500)
    start_ms = bench.now_ms()
    bench.pass_ms(400)
    assert producer.add({topic.name: [0]}) == {(topic.name, 0): 0}  # traffic does not extend the timeout
    producer.wait_for("CompleteAbort")
    assert bench.now_ms() - start_ms <= 500 + 10_000 + 100
    assert producer.describe().producer_epoch == 1
    assert producer.end(commit=True)[0] == FENCED
    assert producer.send(topic, 1)[0] == 47
    assert producer.init_once(producer.producer_id, 0) == (
        (0, producer.producer_id, 1) if is_newer else (FENCED, -1, -1)
    )
    assert producers(topic)[1][0][:3] == (producer.producer_id, 1, -1)
    bench.stop()


@pytest.mark.rule("TX-58")
def test_timed_out_transaction_is_aborted_only_after_a_stopped_replica_restarts() -> None:
    bench = TransactionBench({"transaction.state.log.min.isr": "3"})
    topic = bench.topic()
    producer = bench.begin(topic, timeout_ms=500)
    broken = next(broker_id for broker_id in range(3) if broker_id not in (producer.coordinator(), topic.leader()))
    bench.stop_broker(broken)
    bench.pass_ms(30_000)
    assert producer.describe().transaction_state == "Ongoing"
    bench.start_broker(broken)
    bench.pass_ms(11_000)
    assert producer.describe().transaction_state == "CompleteAbort"
    assert visible(topic) == (2, 2, [(producer.producer_id, 0)])
    bench.stop()


@pytest.mark.rule("TX-8", "TX-58")
def test_new_coordinator_aborts_a_timed_out_transaction_at_the_next_timeout_check() -> None:
    bench = TransactionBench({"kafkaproto.transaction.load.ms": "6000"})
    start_ms = bench.now_ms()
    topic = bench.topic()
    producer = bench.begin(topic, timeout_ms=500)
    bench.pass_ms(start_ms + 9_000 - bench.now_ms())
    bench.move(producer)  # waits until the next coordinator has loaded it, 6 s later
    assert bench.now_ms() >= start_ms + 14_000
    bench.pass_ms(start_ms + 19_900 - bench.now_ms())
    assert producer.describe().transaction_state == "Ongoing"
    bench.pass_ms(200)
    assert producer.describe().transaction_state == "CompleteAbort"
    bench.stop()


@pytest.mark.rule("TX-62")
def test_transactional_id_expiration_that_cannot_be_stored_is_retried() -> None:
    bench = TransactionBench({"transaction.state.log.min.isr": "3"})
    producer = Producer(bench)
    producer.init()
    broken = next(broker_id for broker_id in range(3) if broker_id not in (0, producer.coordinator()))
    bench.stop_broker(broken)
    bench.pass_ms(7 * 24 * 3_600_000 + 3_600_000)
    assert producer.describe().transaction_state == "Empty"
    bench.start_broker(broken)
    bench.pass_ms(3_600_000 + 1)
    assert producer.end(commit=True)[0] == MAPPING
    bench.stop()


@pytest.mark.rule("TX-39")
def test_transaction_stays_in_prepare_commit_until_the_disk_is_no_longer_full(
    bench: TransactionBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = bench.topic()
    producer = bench.begin(topic)
    state = bench.cluster.state.nodes[producer.coordinator()].replicas.find(
        TRANSACTIONS, bench.state_partition(producer).index
    )
    assert state is not None and producer.end(commit=True)[0] == 0
    with monkeypatch.context() as patch:
        append = Store.append

        def fail(store: Store, batch: memoryview) -> int:
            if store is state.log.store:
                raise StorageError("the disk is full")
            return append(store, batch)

        patch.setattr(Store, "append", fail)
        bench.pass_ms(5_000)
        assert producer.describe().transaction_state == "PrepareCommit"
    bench.pass_ms(5_000)
    assert producer.describe().transaction_state == "CompleteCommit"


@pytest.mark.rule("TX-38")
def test_second_end_txn_during_a_commit_gets_error_concurrent_transactions(newer: TransactionBench) -> None:
    """The producer may have the new epoch already, so that no other check may come first."""
    topic, producer = newer.topic(), Producer(newer)
    producer.init()
    assert producer.send(topic, 0, version=12)[0] == 0
    assert producer.end(commit=True, version=5)[0] == 0
    for commit in (True, False):
        for epoch in (producer.epoch, producer.epoch + 1):
            assert producer.end(commit=commit, epoch=epoch, version=5)[0] == CONCURRENT
        assert producer.end(commit=commit, producer_id=producer.producer_id + 1, version=5)[0] == CONCURRENT


@pytest.mark.rule("TX-62", "SN-62")
def test_unused_transactional_id_expires_after_seven_days(bench: TransactionBench) -> None:
    producer = Producer(bench)
    producer.init()
    bench.pass_ms(7 * 24 * 3_600_000 - 1)
    assert producer.describe().error_code == 0
    bench.pass_ms(3_600_000 + 1)
    assert producer.end(commit=True)[0] == MAPPING
    assert (producer.id, None) in logged(bench)
    old_id = producer.producer_id
    producer_id, epoch = producer.init()
    assert producer_id != old_id and epoch == 0


@pytest.mark.rule("TX-15", "SN-61")
def test_producer_whose_epochs_are_exhausted_gets_a_new_producer_id(bench: TransactionBench) -> None:
    producer = Producer(bench)
    old_id, _ = producer.init()
    transaction = bench.transaction(producer)
    transaction.data = transaction.data._replace(epoch=LAST_EPOCH)
    assert producer.init_once(old_id, LAST_EPOCH - 1) == (-1, -1, -1)
    error, new_id, epoch = producer.init_once(old_id, LAST_EPOCH)
    assert (error, epoch) == (0, 0) and new_id != old_id
    assert producer.init_once(old_id, LAST_EPOCH) == (0, new_id, 0)  # the same request again
    transaction.data = transaction.data._replace(producer_id=old_id, epoch=LAST_EPOCH)
    error, other_id, epoch = producer.init_once()
    assert (error, epoch) == (0, 0) and other_id not in (old_id, new_id)
    assert producer.init_once(old_id, LAST_EPOCH)[0] == FENCED


@pytest.mark.rule("TX-15", "TX-38")
def test_end_txn_with_the_last_producer_epoch_returns_a_new_producer_id(newer: TransactionBench) -> None:
    topic, producer = newer.topic(), Producer(newer)
    old_id, _ = producer.init()
    transaction = newer.transaction(producer)
    transaction.data = transaction.data._replace(epoch=LAST_EPOCH)
    producer.epoch = LAST_EPOCH
    assert producer.send(topic, 0, version=12)[0] == 0
    error, new_id, epoch = producer.end(commit=True, version=5)
    assert (error, epoch) == (0, 0) and new_id != old_id
    producer.wait_for("CompleteCommit")
    assert producer.end(commit=True, version=5) == (0, new_id, 0)  # the same request again
    assert producers(topic)[1][0][:3] == (old_id, LAST_EPOCH + 1, -1)
    producer.producer_id, producer.epoch = new_id, 0
    assert producer.send(topic, 0, version=12)[0] == 0


@pytest.mark.rule("TX-25", "TX-39")
def test_add_partitions_gets_error_concurrent_transactions_until_commit_completes() -> None:
    """`test_pipelined_requests` checks that this also holds if the completion takes 0 ms."""
    completion_ms = 30
    bench = TransactionBench({"kafkaproto.transaction.completion.ms": str(completion_ms)})
    topic = bench.topic()
    producer = bench.begin(topic)
    frames = bench.connect(producer.coordinator())
    add = AddPartitionsToTxnRequest(
        [], producer.id, producer.producer_id, 0, [AddPartitionsToTxnTopic(topic.name, [0])]
    )
    bench.send(frames, EndTxnRequest(producer.id, producer.producer_id, 0, True), 3)
    bench.send(frames, add, 3)
    start_ms = bench.now_ms()
    assert bench.answer(frames).message.error_code == 0
    [added] = bench.answer(frames).message.results_by_topic_v3_and_below
    assert added.results_by_partition[0].partition_error_code == CONCURRENT
    producer.add_once_free(topic)
    assert completion_ms <= bench.now_ms() - start_ms <= completion_ms + 100
    bench.stop()


@pytest.mark.rule("TX-31")
def test_produce_waits_up_to_100_ms_for_the_previous_transaction_to_complete() -> None:
    """Transaction version 2: the broker tries again for 100 ms, then the producer gets CONCURRENT_TRANSACTIONS."""
    for completion_ms, expected in ((50, 0), (500, CONCURRENT)):
        bench = TransactionBench({"kafkaproto.transaction.completion.ms": str(completion_ms)}, newer=True)
        topic, producer = bench.topic(), Producer(bench)
        producer.init()
        assert producer.send(topic, 0, version=12)[0] == 0
        assert producer.end(commit=True, version=5)[0] == 0
        producer.epoch += 1
        start_ms = bench.now_ms()
        assert producer.send(topic, 0, version=12)[0] == expected
        assert bench.now_ms() - start_ms == (60 if expected == 0 else 100)
        bench.stop()


@pytest.mark.rule("TX-4", "TX-5")
@pytest.mark.parametrize("is_newer", [False, True])
def test_transaction_log_gets_one_record_per_state_change_of_a_committed_transaction(is_newer: bool) -> None:
    bench = TransactionBench(newer=is_newer)
    topic = bench.topic()
    producer = bench.begin(topic)
    producer.finish(commit=True)
    states = [data for transactional_id, data in logged(bench) if transactional_id == producer.id and data is not None]
    assert [data.state for data in states] == [
        TransactionState.EMPTY,
        TransactionState.ONGOING,
        TransactionState.PREPARE_COMMIT,
        TransactionState.COMPLETE_COMMIT,
    ]
    assert [list(data.partitions) for data in states] == [[], [(topic.name, 0)], [(topic.name, 0)], []]
    assert {(data.previous_producer_id, data.next_producer_id) for data in states} == {(-1, -1)}
    bench.stop()


@pytest.mark.rule("TX-3")
def test_loading_transaction_coordinator_returns_error_coordinator_load_in_progress() -> None:
    bench = TransactionBench({"kafkaproto.transaction.load.ms": "500"})
    producer = Producer(bench)
    producer.init()
    state = bench.state_partition(producer)
    other = next(r for r in state.replicas if r != state.leader)
    bench.cluster.state.controller.elect(TRANSACTIONS, state.index, other)
    bench.cluster.run()
    assert error_on(producer, other) == LOADING
    assert bench.ask_once(ListTransactionsRequest(), 0, other).error_code == LOADING
    bench.pass_ms(500)
    assert error_on(producer, other) == 0
    bench.stop()
